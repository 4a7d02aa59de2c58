"""Skills: named in the prompt, found by words, and opened by a tool or from the beginning."""

from typing import Annotated

from msgspec import Meta

from agentflow.compose.capability import ContextChannel, ToolChannel
from agentflow.core.errors import InvalidFile, InvalidInput, NotAllowed
from agentflow.core.ports import Runner
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.skill_file import Skill, SkillBody, list_skill_files, open_body, read_skill_file
from agentflow.library.skills import Offer, find_named, format_skill_line, rank_by_words
from agentflow.library.substitution import (
    Arguments,
    PartKind,
    is_using,
    split_arguments,
    split_body,
    substitute,
    substitute_in_shell,
)
from agentflow.loop.open_skills import ALREADY_OPEN, CLOSED, SKILL_TOOL, is_skill_open, mark_skill
from agentflow.loop.prompts import read_prompt
from agentflow.tools.shell import BashInput, bash

_PRIORITY = 50
"""Below the role's own prompt."""
_MAX_FOUND = 8
MAX_BODY = 32_000
_UNTRUSTED = "Commands of this skill were not run, because its file is not trusted."


class SkillInput(Record):
    skill: Annotated[str, Meta(min_length=1)]
    file: str = ""
    """One of the files beside it, such as references/a.md."""
    arguments: str = ""
    close: bool = False
    """Its work is done, and what it allows does not bound the role any more."""


class UseSkills(Record):
    """Lists skills in the prompt with the tool that opens one; some are open from the beginning."""

    offer: Offer
    reader: Runner | None = None
    """Runs the commands in a skill with the rights of a role that only reads."""

    def install_tools(self, tools: ToolChannel) -> None:
        if self.offer.all:
            tools.add(
                Tool(
                    name=SKILL_TOOL,
                    category=Category.STATE,
                    effect=Effect.READ,
                    input=SkillInput,
                    call=self._open,
                    granted=True,
                )
            )

    def install_context(self, context: ContextChannel) -> None:
        if self.offer.listed:
            lines = "\n".join(map(format_skill_line, self.offer.listed))
            more = read_prompt("more.md").format(count=len(self.offer.hidden)) if self.offer.hidden else ""
            text = read_prompt("skills.md").format(skills=lines)
            context.add("\n".join(filter(None, (text, more))), priority=_PRIORITY)
        for skill in self.offer.opened:
            context.add(format_skill(skill, open_body(skill).text), priority=_PRIORITY)

    def _open(self, wanted: SkillInput, context: ToolContext) -> Output:
        """Read a skill, or a file of it."""
        skill = find_named(self.offer.all, wanted.skill)
        if skill is None:
            ranked = rank_by_words(wanted.skill, self.offer.all)
            near = [skill for skill, score in ranked if score > 0] or [skill for skill, _ in ranked]
            listed = "\n".join(map(format_skill_line, near[:_MAX_FOUND]))
            return Output(content=f"there is no skill {wanted.skill} for you; the nearest are\n{listed}")
        if wanted.file:
            return Output(content=read_skill_file(skill, wanted.file))
        if wanted.close:
            return Output(content=f"{skill.name} {CLOSED}")
        if is_skill_open(context.run, skill.name, context.call_id):
            return Output(content=f"{skill.name} {ALREADY_OPEN}")
        try:
            found = open_body(skill)
        except InvalidFile as error:
            raise InvalidInput(str(error)) from None
        return Output(content=format_skill(skill, self._fill(skill, found, wanted.arguments, context)))

    def _fill(self, skill: Skill, found: SkillBody, words: str, context: ToolContext) -> str:
        places = {
            "CLAUDE_SKILL_DIR": str(skill.folder),
            "CLAUDE_SESSION_ID": context.task_id,
            "CLAUDE_PROJECT_DIR": str(context.workspace.root),
        }
        given = Arguments(text=words, words=split_arguments(words), names=skill.arguments, places=places)
        pieces, commands = list[str](), 0
        for part in split_body(found.text):
            match part.kind:
                case PartKind.TEXT:
                    pieces.append(_substitute(part.text, given))
                case PartKind.FILE:
                    pieces.append(f"@{part.text}")
                case PartKind.COMMAND if not found.is_trusted:
                    pieces.append(f"!`{part.text}`")
                    commands += 1
                case PartKind.COMMAND:
                    commands += 1
                    pieces.append(self._run(substitute_in_shell(part.text, given), commands, context))
        text = "".join(pieces)
        added = (
            f"ARGUMENTS: {words}" if words and not is_using(found.text, given) else "",
            _UNTRUSTED if commands and not found.is_trusted else "",
        )
        return "\n\n".join(filter(None, (text, *added)))

    def _run(self, command: str, number: int, context: ToolContext) -> str:
        """Return what a command prints, or why it was not run; rules and hooks decide as about Bash."""
        call_id = f"{context.call_id}-{number}"
        runner = self.reader or context.shell.runner
        try:
            command = context.shell.authorize(call_id, command)
        except NotAllowed as error:
            return f"[{command} was not run: {error}]"
        place = context.replace(call_id=call_id, shell=context.shell.replace(runner=runner))
        return bash(BashInput(command=command), place).content


def format_skill(skill: Skill, body: str) -> str:
    names = list_skill_files(skill)
    beside = f"\n\nFiles of this skill: {', '.join(names)}" if names else ""
    return f"{mark_skill(skill.name, skill.allowed)}\n{body[:MAX_BODY]}{beside}\n</skill>"


def _substitute(text: str, given: Arguments) -> str:
    """Return a text with its placeholders replaced; without arguments a number after $ is text."""
    if given.text:
        return substitute(text, given)
    for name, value in given.places.items():
        text = text.replace(f"${{{name}}}", value)
    return text.replace("$ARGUMENTS", "")
