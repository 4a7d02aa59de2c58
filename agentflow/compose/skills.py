"""Skills: named in the prompt, and opened by a tool or from the beginning."""

from typing import Annotated

from msgspec import Meta

from agentflow.compose.capability import ContextChannel, ToolChannel
from agentflow.core.errors import InvalidFile, InvalidInput
from agentflow.core.messages import ToolResult
from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.skill_file import Skill, list_skill_files, read_body, read_skill_file
from agentflow.library.skills import Offer
from agentflow.loop.prompts import prompt_text
from agentflow.redact import visible

_PRIORITY = 50
"""Below the role's own prompt."""
_MAX_LINE = 180
MAX_BODY = 32_000
SKILL = "Skill"


class SkillInput(Record):
    skill: Annotated[str, Meta(min_length=1)]
    file: Annotated[str, Meta(description="Such as references/a.md.")] = ""


class UseSkills(Record):
    """Lists skills in the prompt with the tool that opens one; some are open from the beginning."""

    offer: Offer

    def install_tools(self, tools: ToolChannel) -> None:
        if self.offer.listed or self.offer.opened:
            tools.add(
                Tool(
                    name=SKILL,
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
            context.add(prompt_text("skills.md").format(skills=lines), priority=_PRIORITY)
        for skill in self.offer.opened:
            context.add(format_skill(skill), priority=_PRIORITY)

    def _open(self, wanted: SkillInput, context: ToolContext) -> Output:
        """Read a skill, or a file of it."""
        known = {skill.name: skill for skill in (*self.offer.listed, *self.offer.opened)}
        skill = known.get(wanted.skill)
        if skill is None:
            raise InvalidInput(f"there is no skill {wanted.skill} for you; yours are {', '.join(known)}")
        if wanted.file:
            return Output(content=read_skill_file(skill, wanted.file))
        if is_skill_open(context.run, skill.name, context.call_id):
            return Output(content=f"{skill.name} is already open above")
        try:
            return Output(content=format_skill(skill))
        except InvalidFile as error:
            raise InvalidInput(str(error)) from None


def format_skill(skill: Skill) -> str:
    """Return the current body of a skill, with the names of its other files. Raises InvalidFile."""
    body, names = read_body(skill), list_skill_files(skill)
    beside = f"\n\nFiles of this skill: {', '.join(names)}" if names else ""
    return f"{_mark(skill.name)}\n{body[:MAX_BODY]}{beside}\n</skill>"


def is_skill_open(run: Run, name: str, call_id: str) -> bool:
    """Return whether a run already shows a skill, or will after the calls before this one."""
    if _mark(name) in run.head.system:
        return True
    parts = (part for message in run.messages for part in message.parts)
    results = {part.call_id: part for part in (*parts, *run.answers) if isinstance(part, ToolResult)}
    for call in (call for message in run.messages for call in message.calls):
        if call.id == call_id:
            return False
        if call.name == SKILL and call.input.get("skill") == name and not call.input.get("file"):
            result = results.get(call.id)
            if result is None or result.content.startswith(_mark(name)):
                return True
    return False


def _mark(name: str) -> str:
    return f'<skill name="{visible(name)}">'


def _line(skill: Skill) -> str:
    whose = " (of this repository)" if skill.origin == "project" else ""
    line = visible(f"- {skill.name}{whose}: {skill.description}")
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…"
