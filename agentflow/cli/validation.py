"""What `check` finds: problems in settings, role files and skills, each with file, line and key."""

import os
from collections.abc import Iterator
from pathlib import Path

from agentflow.api.content import places as skill_places_in
from agentflow.api.trusting import project_said
from agentflow.cli.problems import ERROR, WARNING, Problem, problem_of
from agentflow.cli.settings_files import file_problems
from agentflow.cli.skill_problems import look
from agentflow.core.errors import AgentflowError, InvalidFile
from agentflow.core.record import Record
from agentflow.core.role import PIPELINE, Role
from agentflow.hooks.manifest import project_places, user_places
from agentflow.library.bundled import bundled
from agentflow.library.roles import read_role
from agentflow.library.skills import Skills, unknown
from agentflow.library.subagents import direct_problems, require_known, subagents
from agentflow.settings import PROJECT_FILE, folders, load_settings
from agentflow.tools.registry import Toolbox, standard

SOLE = (
    ("one-writer", frozenset({"Write", "Edit", "fs"}), "implementer"),
    ("web-for-explorer", frozenset({"WebSearch", "WebFetch", "net"}), "explorer"),
    ("todos-for-planner", frozenset({"TodoWrite"}), "planner"),
)
"""Rules that keep a right with one part of the pipeline: name, tools, part."""


class Validation(Record):
    """What is wrong, and how many files were looked at."""

    problems: tuple[Problem, ...]
    agents: int
    skills: int
    hooks: int


def validate(root: Path) -> Validation:
    """Look at the settings, and at every role file and skill: shipped, of the user, of the project."""
    toolbox = standard()
    places = (bundled("agents"), folders(os.environ).claude / "agents", root / ".claude" / "agents")
    paths = [path for place in places for path in sorted(place.glob("**/*.md"))]
    hooks, problems = _settings_files(root.resolve())
    problems.extend(_settings_problems(root.resolve()))
    roles: list[Role] = []
    for path in paths:
        try:
            role, notes = read_role(path, "any")
        except InvalidFile as error:
            problems.append(problem_of(str(path), error))
            continue
        roles.append(role)
        problems.extend(Problem(file=str(path), message=note, severity=WARNING) for note in notes)
    known = subagents(tuple(roles))
    problems.extend(problem for role in roles for problem in _role_problems(role, toolbox, known))
    played = {role.part for role in roles}
    problems.extend(
        Problem(
            file=str(bundled("agents") / f"{part}.md"),
            key="metadata",
            message=f"no role file plays the {part}",
        )
        for part in PIPELINE
        if part not in played
    )
    looked = look(skill_places_in(root.resolve()), frozenset({*PIPELINE, *(role.name for role in roles)}))
    problems.extend(looked.problems)
    problems.extend(
        Problem(file=role.source, line=role.lines.get("skills"), key="skills", message=missing)
        for role in roles
        if (missing := unknown(role, Skills(all=looked.skills)))
    )
    return Validation(problems=tuple(problems), agents=len(paths), skills=looked.folders, hooks=hooks)


def _settings_files(root: Path) -> tuple[int, list[Problem]]:
    """Return how many hooks the settings files hold, and what is wrong with those files."""
    places = (*user_places(bundled("hooks"), folders(os.environ).claude), *project_places(root))
    looked = [file_problems(place, root) for place in places]
    return sum(hooks for _, hooks in looked), [problem for found, _ in looked for problem in found]


def _settings_problems(root: Path) -> Iterator[Problem]:
    try:
        load_settings(os.environ)
    except AgentflowError as error:
        yield problem_of(str(folders(os.environ).config), error)
        return
    try:
        project_said(root)
    except AgentflowError as error:
        yield problem_of(PROJECT_FILE, error)


def _role_problems(role: Role, toolbox: Toolbox, known: tuple[Role, ...]) -> Iterator[Problem]:
    """Yield what is wrong with a role that can be read."""
    try:
        require_known(role, known)
    except InvalidFile as error:
        severity = ERROR if role.part else WARNING
        yield problem_of(role.source, error).replace(severity=severity)
    for message in direct_problems(role, toolbox.tools):
        line = role.lines.get("metadata")
        yield Problem(file=role.source, line=line, key="metadata", message=message)
    try:
        toolbox.offered(role)
    except AgentflowError as error:
        problem = problem_of(role.source, error, key="tools")
        message = problem.message.removeprefix(f"{role.place('tools')}: ")
        yield problem.replace(line=role.lines.get("tools"), message=message)
    for name, tools, part in SOLE:
        taken = sorted({rule.tool for rule in role.tools} & tools)
        if taken and role.part not in (None, part) and not (name == "one-writer" and role.write_paths):
            message = f"{name}: {', '.join(taken)} belongs to the {part}"
            yield Problem(file=role.source, line=role.lines.get("tools"), key="tools", message=message)
