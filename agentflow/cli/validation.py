"""What `check` finds: problems in settings, role files and skills, each with file, line and key."""

import os
from collections.abc import Iterator
from pathlib import Path

from agentflow.cli.content import places as skill_places_in
from agentflow.cli.skill_problems import Looked, look
from agentflow.core.errors import AgentflowError, InvalidFile
from agentflow.core.record import Record
from agentflow.core.role import PIPELINE, Role
from agentflow.library.bundled import bundled
from agentflow.library.roles import read_role
from agentflow.library.skills import Skills, unknown
from agentflow.settings import folders, load_settings
from agentflow.tools.registry import Toolbox, standard

ERROR = "error"
WARNING = "warning"
SOLE = (
    ("one-writer", frozenset({"Write", "Edit", "fs"}), "implementer"),
    ("web-for-explorer", frozenset({"WebSearch", "WebFetch", "net"}), "explorer"),
    ("todos-for-planner", frozenset({"TodoWrite"}), "planner"),
)
"""Rules that keep a right with one part of the pipeline: name, tools, part."""


class Problem(Record):
    file: str
    line: int | None
    key: str | None
    message: str
    severity: str

    @property
    def text(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"


class Validation(Record):
    """What is wrong, and how many files were looked at."""

    problems: tuple[Problem, ...]
    agents: int
    skills: int


def validate(root: Path) -> Validation:
    """Look at the settings, and at every role file and skill: shipped, of the user, of the project."""
    toolbox = standard()
    places = (bundled("agents"), folders(os.environ).claude / "agents", root / ".claude" / "agents")
    paths = [path for place in places for path in sorted(place.glob("**/*.md"))]
    problems = [*_settings_problems()]
    roles: list[Role] = []
    for path in paths:
        try:
            role, notes = read_role(path, "any")
        except InvalidFile as error:
            problems.append(_problem(str(path), error))
            continue
        roles.append(role)
        problems.extend(
            Problem(file=str(path), line=None, key=None, message=note, severity=WARNING) for note in notes
        )
        problems.extend(_role_problems(role, toolbox))
    problems.extend(
        Problem(
            file=str(bundled("agents") / f"{part}.md"),
            line=None,
            key="metadata",
            message=f"no role file plays the {part}",
            severity=ERROR,
        )
        for part in PIPELINE
        if part not in {role.part for role in roles}
    )
    looked = look(skill_places_in(root.resolve()), frozenset({*PIPELINE, *(role.name for role in roles)}))
    problems.extend(_skill_problems(looked, roles))
    return Validation(problems=tuple(problems), agents=len(paths), skills=looked.folders)


def _skill_problems(looked: Looked, roles: list[Role]) -> Iterator[Problem]:
    """Yield what is wrong with skills, and the skills that roles list and nobody has."""
    for found in looked.complaints:
        yield Problem(
            file=found.file,
            line=found.line,
            key=found.message.partition(":")[0] if ": " in found.message else None,
            message=found.message,
            severity=ERROR if found.is_error else WARNING,
        )
    for role in roles:
        if missing := unknown(role, Skills(all=looked.skills)):
            line = role.lines.get("skills")
            yield Problem(file=role.source, line=line, key="skills", message=missing, severity=ERROR)


def _settings_problems() -> Iterator[Problem]:
    try:
        load_settings(os.environ)
    except AgentflowError as error:
        yield _problem(str(folders(os.environ).config), error)


def _role_problems(role: Role, toolbox: Toolbox) -> Iterator[Problem]:
    """Yield what is wrong with a role that can be read."""
    try:
        toolbox.offered(role)
    except AgentflowError as error:
        problem = _problem(role.source, error, key="tools")
        message = problem.message.removeprefix(f"{role.place('tools')}: ")
        yield problem.replace(line=role.lines.get("tools"), message=message)
    for name, tools, part in SOLE:
        taken = sorted({rule.tool for rule in role.tools} & tools)
        if taken and role.part not in (None, part) and not (name == "one-writer" and role.write_paths):
            message = f"{name}: {', '.join(taken)} belongs to the {part}"
            yield Problem(
                file=role.source, line=role.lines.get("tools"), key="tools", message=message, severity=ERROR
            )


def _problem(file: str, error: AgentflowError, key: str | None = None) -> Problem:
    if isinstance(error, InvalidFile):
        named = error.problem.partition(":")[0]
        key = key or (named if named.replace("_", "").isalnum() else None)
        return Problem(file=file, line=error.line, key=key, message=error.problem, severity=ERROR)
    return Problem(
        file=file, line=None, key=key, message=str(error).removeprefix(f"{file}: "), severity=ERROR
    )
