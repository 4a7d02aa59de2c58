"""Skills: named in the prompt, and opened by a tool or from the beginning."""

from typing import Annotated

from msgspec import Meta

from agentflow.compose.channels import ContextChannel, ToolChannel
from agentflow.core.errors import InvalidFile, InvalidInput
from agentflow.core.messages import ToolResult
from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.skill_file import Skill, body_of, file_of, files_of
from agentflow.library.skills import Offer
from agentflow.loop.context import prompt_text
from agentflow.redact import visible

PLACE = 50
"""Below the role's own prompt."""
MAX_LINE = 180
MAX_BODY = 32_000
NAME = "Skill"


class SkillInput(Record):
    skill: Annotated[str, Meta(min_length=1)]
    file: Annotated[str, Meta(description="Such as references/a.md.")] = ""


class UseSkills(Record):
    """Offers skills in a line each, brings a body when it is asked for, and some from the beginning."""

    offer: Offer

    def install_tools(self, tools: ToolChannel) -> None:
        if self.offer.listed or self.offer.opened:
            tools.add(
                Tool(
                    name=NAME,
                    category=Category.STATE,
                    effect=Effect.READ,
                    input=SkillInput,
                    call=self._open,
                    granted=True,
                )
            )

    def install_context(self, context: ContextChannel) -> None:
        if self.offer.listed:
            lines = "\n".join(_line(skill) for skill in self.offer.listed)
            context.add(prompt_text("skills.md").format(skills=lines), priority=PLACE)
        for skill in self.offer.opened:
            context.add(shown(skill), priority=PLACE)

    def _open(self, wanted: SkillInput, context: ToolContext) -> Output:
        """Read a skill, or a file of it."""
        known = {skill.name: skill for skill in (*self.offer.listed, *self.offer.opened)}
        skill = known.get(wanted.skill)
        if skill is None:
            raise InvalidInput(f"there is no skill {wanted.skill} for you; yours are {', '.join(known)}")
        if wanted.file:
            return Output(content=file_of(skill, wanted.file))
        if is_open(context.run, skill.name, context.call_id):
            return Output(content=f"{skill.name} is already open above")
        try:
            return Output(content=shown(skill))
        except InvalidFile as error:
            raise InvalidInput(str(error)) from None


def shown(skill: Skill) -> str:
    """Return a skill's body as it is now, with the names of the files beside it. Raises InvalidFile."""
    body, names = body_of(skill), files_of(skill)
    beside = f"\n\nFiles of this skill: {', '.join(names)}" if names else ""
    return f"{_mark(skill.name)}\n{body[:MAX_BODY]}{beside}\n</skill>"


def is_open(run: Run, name: str, call_id: str) -> bool:
    """Tell whether a run shows a skill already, or will by a call before this one."""
    if _mark(name) in run.head.system:
        return True
    parts = (part for message in run.messages for part in message.parts)
    results = {part.call_id: part for part in (*parts, *run.answers) if isinstance(part, ToolResult)}
    for call in (call for message in run.messages for call in message.calls):
        if call.id == call_id:
            return False
        if call.name == NAME and call.input.get("skill") == name and not call.input.get("file"):
            result = results.get(call.id)
            if result is None or result.content.startswith(_mark(name)):
                return True
    return False


def _mark(name: str) -> str:
    return f'<skill name="{visible(name)}">'


def _line(skill: Skill) -> str:
    """Return name and description on one line of bounded length."""
    whose = " (of this repository)" if skill.origin == "project" else ""
    line = visible(f"- {skill.name}{whose}: {skill.description}")
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
