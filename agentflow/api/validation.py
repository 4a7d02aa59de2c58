"""The problems in settings, hooks, role files and skills, and which parts of a repository take effect."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from agentflow.api.content import choose_shipped, list_skill_folders
from agentflow.api.servers import UNTRUSTED, load_entries
from agentflow.api.trust import (
    Item,
    list_hook_places,
    list_items,
    list_untrusted,
    place_role,
    place_skill,
    read_project_file,
    to_relative,
)
from agentflow.core.errors import AgentflowError, InvalidFile, OutsideWorkspace, ToolError
from agentflow.core.hook import Hook, Script
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.routing import PIPELINE
from agentflow.hooks.entries import (
    HookFile,
    list_idle_hooks,
    list_project_places,
    list_user_places,
    load_hooks,
    read_hooks,
)
from agentflow.library.roles import find_direct_problems, list_subagents, read_role, require_known
from agentflow.library.skill_file import SKILL_FILE, Skill, read_skill, read_skill_file
from agentflow.library.skills import (
    SkillFolder,
    Skills,
    describe_unknown_skill,
    find_skill_folders,
    read_situations,
)
from agentflow.mcp.entries import SERVERS_FILE, ServerSource
from agentflow.parse import expand_home
from agentflow.permissions.rules import parse_rules
from agentflow.settings import PROJECT_FILE, find_bundled, find_folders, load_settings
from agentflow.tools.registry import Toolbox, make_standard_toolbox
from agentflow.trust import read_content

ERROR = "error"
WARNING = "warning"
NOTE = "note"
_MAX_EXTENSIONS = 500
"""The most parts of one kind that are named."""
_KEY = re.compile(r"[\w.]+(\[\d+\][\w.]*)*")
_SOLE = (
    ("one-writer", frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "fs"}), "implementer"),
    ("web-for-explorer", frozenset({"WebSearch", "WebFetch", "net"}), "explorer"),
    ("todos-for-planner", frozenset({"TodoWrite"}), "planner"),
)
"""Rules that keep a right with one part of the pipeline: name, tools, part."""
_INTERPRETERS = re.compile(r"(python|node|ruby|perl)[\d.]*|(ba|z|da)?sh")
_PLACES = re.compile(r"\$\{?(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT)\b\}?")
_ASSIGNMENT = re.compile(r"\w+=.*")
_OPEN = re.compile(r"[$`*?<>|&;()]")
"""Signs whose meaning only a shell knows."""
_LINK = re.compile(r"\]\(<?([^)>\s#]+)")
_ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*:|//")
_FENCE = re.compile(r"^\s*(```|~~~)")


class Problem(Record):
    file: str
    message: str
    line: int | None = None
    key: str | None = None
    severity: str = ERROR

    @property
    def text(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"


class Validation(Record):
    problems: tuple[Problem, ...]
    agents: int
    skills: int
    hooks: int


def validate(root: Path) -> Validation:
    """Look at the settings, and at every role file and skill: shipped, of the user, of the project."""
    places = (find_bundled("agents"), find_folders(os.environ).claude / "agents", root / ".claude" / "agents")
    paths = [path for place in places for path in sorted(place.glob("**/*.md"))]
    root = root.resolve()
    hook_files = (
        *list_user_places(find_bundled("hooks"), find_folders(os.environ).claude),
        *list_project_places(root),
    )
    hooks, problems = _look_at_hooks(hook_files, root)
    problems.extend(_find_settings_problems(root))
    roles, wrong = _look_at_roles(paths)
    problems.extend(wrong)
    folders = [(place, folder) for place in list_skill_folders(root) for folder in find_skill_folders(place)]
    skills, wrong = _look_at_skills(folders, frozenset({*PIPELINE, *(role.name for role in roles)}))
    problems.extend(wrong)
    own, wrong = _look_at_hooks((*map(place_role, roles), *map(place_skill, skills)), root)
    problems.extend(wrong)
    problems.extend(
        Problem(file=role.source, line=role.lines.get("skills"), key="skills", message=missing)
        for role in roles
        if (missing := describe_unknown_skill(role, Skills(all=skills)))
    )
    return Validation(problems=tuple(problems), agents=len(paths), skills=len(folders), hooks=hooks + own)


def _look_at_roles(paths: Iterable[Path]) -> tuple[list[Role], list[Problem]]:
    roles: list[Role] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            role, notes = read_role(path, "any")
        except InvalidFile as error:
            problems.append(_to_problem(str(path), error))
            continue
        roles.append(role)
        for note in notes:  # which names the file and perhaps the line
            place, _, message = note.partition(": ")
            line = place.removeprefix(f"{path}:")
            problems.append(
                _make_problem(str(path), message, int(line) if line.isdecimal() else None, WARNING)
            )
    toolbox, known = make_standard_toolbox(), list_subagents(tuple(roles))
    problems.extend(problem for role in roles for problem in _find_role_problems(role, toolbox, known))
    for part in (part for part in PIPELINE if part not in {role.part for role in roles}):
        file = str(find_bundled("agents") / f"{part}.md")
        problems.append(Problem(file=file, key="metadata", message=f"no role file plays the {part}"))
    return roles, problems


def _look_at_hooks(places: Iterable[HookFile | None], root: Path) -> tuple[int, list[Problem]]:
    looked = [_find_file_problems(place, root) for place in places if place is not None]
    return sum(hooks for _, hooks in looked), [problem for found, _ in looked for problem in found]


def _find_settings_problems(root: Path) -> Iterator[Problem]:
    try:
        shipped, _ = load_hooks(list_user_places(find_bundled("hooks"), find_folders(os.environ).claude)[:1])
        choose_shipped(shipped, load_settings(os.environ).hooks)
    except AgentflowError as error:
        yield _to_problem(str(find_folders(os.environ).config), error)
    try:
        read_project_file(root)
    except AgentflowError as error:
        yield _to_problem(PROJECT_FILE, error)


def _find_role_problems(role: Role, toolbox: Toolbox, known: tuple[Role, ...]) -> Iterator[Problem]:
    try:
        require_known(role, known)
    except InvalidFile as error:
        severity = ERROR if role.part else WARNING
        yield _to_problem(role.source, error).replace(severity=severity)
    for message in find_direct_problems(role, toolbox.tools):
        line = role.lines.get("metadata")
        yield Problem(file=role.source, line=line, key="metadata", message=message)
    is_refused = role.part is not None or toolbox.is_empty_for(role)
    for message in toolbox.list_unknown(role):
        severity = ERROR if is_refused else WARNING
        yield _make_problem(role.source, f"tools: {message}", role.lines.get("tools"), severity)
    for name, tools, part in _SOLE:
        taken = sorted({rule.tool for rule in role.tools} & tools)
        if taken and role.part not in (None, part) and not (name == "one-writer" and role.write_paths):
            message = f"{name}: {', '.join(taken)} belongs to the {part}"
            yield Problem(file=role.source, line=role.lines.get("tools"), key="tools", message=message)


def _make_problem(file: str, message: str, line: int | None = None, severity: str = ERROR) -> Problem:
    """Return a problem; where its message begins with a key, that is the problem's key."""
    key = message.partition(":")[0]
    known = key if _KEY.fullmatch(key) else None
    return Problem(file=file, line=line, key=known, message=message, severity=severity)


def _to_problem(file: str, error: AgentflowError) -> Problem:
    if isinstance(error, InvalidFile):
        return _make_problem(file, "; ".join(filter(None, (error.problem, error.hint))), error.line)
    return Problem(file=file, message=str(error).removeprefix(f"{file}: "))


def _find_file_problems(place: HookFile, root: Path) -> tuple[tuple[Problem, ...], int]:
    if not os.path.lexists(place.path):
        return (), 0
    source = str(place.path)
    warnings: list[str] = []
    hooks: list[Hook] = []
    found = [*_find_rule_problems(place.path)]
    try:
        hooks.extend(read_hooks(place, warnings.append))
    except InvalidFile as error:
        found.append(_to_problem(source, error))
    found.extend(
        _make_problem(source, text.removeprefix(f"{source}: "), severity=WARNING) for text in warnings
    )
    found.extend(
        _make_problem(source, f"hooks.{hook.point}: {hook.name}: {what}")
        for hook in hooks
        if isinstance(hook.body, Script) and (what := _find_script_problem(hook.body, root))
    )
    return tuple(_add_line(one, place.path) for one in found), len(hooks)


def _find_rule_problems(path: Path) -> Iterator[Problem]:
    try:
        settings = json.loads(read_content(path).decode("utf-8-sig"))
        permissions = settings.get("permissions", {})
    except (InvalidFile, OSError, ValueError, RecursionError, AttributeError):
        return  # the reader of its hooks says so
    if not isinstance(permissions, dict):
        yield _make_problem(str(path), "permissions: must be an object")
        return
    for name in ("deny", "ask", "allow"):
        listed = permissions.get(name) or []
        for rule in listed if isinstance(listed, list) else [listed]:
            try:
                parse_rules([rule], str(path))
            except InvalidFile as error:
                message = f"permissions.{name}: {error.problem.partition(': ')[2]}"
                yield _make_problem(str(path), message, _find_line(path, json.dumps(rule)))


def _find_script_problem(script: Script, root: Path) -> str | None:
    """Return why a hook's program cannot be run; None as well where only a shell could tell."""
    try:
        words = shlex.split(script.command) if script.args is None else [script.command, *script.args]
    except ValueError:
        return "its quotes do not match"
    known = {"CLAUDE_PROJECT_DIR": str(root), "CLAUDE_PLUGIN_ROOT": script.plugin or "."}
    words = [_PLACES.sub(lambda found: known[found[1]], word) for word in words]
    while words and script.args is None and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if script.args is None:
        words = [str(expand_home(word)) if word.startswith("~/") else word for word in words]
    return _find_program_problem(words, root, is_shell=script.args is None) if words else None


def _find_program_problem(words: Sequence[str], root: Path, *, is_shell: bool) -> str | None:
    program = words[0]
    if is_shell and _OPEN.search(program):
        return None
    if "/" not in program and not is_shell and shutil.which(program) is None:
        return f"there is no program {program}"
    if "/" in program and not os.access(root / program, os.X_OK):
        return f"{program} is not {'executable' if (root / program).exists() else 'there'}"
    is_run = _INTERPRETERS.fullmatch(Path(program).name) and len(words) > 1 and not words[1].startswith("-")
    missing = is_run and not _OPEN.search(words[1]) and not (root / words[1]).is_file()
    return f"{words[1]} is not there" if missing else None


def _add_line(problem: Problem, path: Path) -> Problem:
    if problem.line is not None or problem.key is None:
        return problem
    names = re.split(r"[.\[\]]+", problem.key)
    lines = (_find_line(path, json.dumps(name)) for name in reversed(names) if name and not name.isdigit())
    return problem.replace(line=next((number for number in lines if number is not None), None))


def _find_line(path: Path, text: str) -> int | None:
    lines = read_content(path).decode("utf-8-sig", "replace").splitlines() if path.is_file() else []
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    return numbers[0] if len(numbers) == 1 else None


def _look_at_skills(
    found: Iterable[tuple[SkillFolder, Path]], roles: frozenset[str]
) -> tuple[tuple[Skill, ...], list[Problem]]:
    """Return every skill, also those that another one of the same name replaces, and their problems."""
    skills: list[Skill] = []
    problems: list[Problem] = []
    for place, folder in found:
        try:
            skill, oddities = read_skill(folder, place.root or folder, place.origin)
        except InvalidFile as error:
            problems.append(_make_problem(str(folder / SKILL_FILE), error.problem, error.line or 1))
            continue
        skills.append(skill)
        problems.extend(_make_problem(odd.source, odd.problem, odd.line, WARNING) for odd in oddities)
        problems.extend((*_check_owners(skill, roles), *_check_links(skill)))
        try:
            read_situations(skill)
        except InvalidFile as error:
            problems.append(_to_problem(error.source, error))
    return tuple(skills), problems


def _check_owners(skill: Skill, roles: frozenset[str]) -> Iterator[Problem]:
    """Yield problems with a skill's roles; the user's folder is shared with other tools."""
    known, line = ", ".join(sorted(roles)), skill.lines.get("metadata", 1)
    mild = WARNING if skill.origin == "user" else ERROR
    if len(skill.owners) > 1:
        owners = ", ".join(skill.owners)
        yield _make_problem(skill.source, f"metadata.owner: one role owns a skill, not {owners}", line)
    for key, names in (("owner", skill.owners), ("consumers", skill.consumers), ("roles", skill.roles)):
        for name in sorted(set(names) - roles):
            message = f"metadata.{key}: there is no role {name}; known are {known}"
            yield _make_problem(skill.source, message, line, mild)


def _check_links(skill: Skill) -> Iterator[Problem]:
    for number, target in _list_links(read_skill_file(skill, SKILL_FILE)):
        try:
            read_skill_file(skill, target)
        except OutsideWorkspace:
            message = (
                f"link to {target}: lies outside the skill's folder, so roles cannot read it by this link"
            )
            yield _make_problem(skill.source, message, number, NOTE)
        except ToolError as error:
            if not (skill.folder / target).is_dir():
                message = f"link to {target}: {str(error).removeprefix(target).lstrip(': ')}"
                yield _make_problem(skill.source, message, number)


def _list_links(text: str) -> Iterator[tuple[int, str]]:
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= _FENCE.match(line) is not None
        bare = "" if in_code else re.sub(r"`[^`]*`", "", line)
        yield from ((number, target) for target in _LINK.findall(bare) if not _ADDRESS.match(target))


class Standing(StrEnum):
    """The effect that a part of the repository has, or why it has none."""

    COUNTS = "counts"
    WAITS = "waits for trust"
    LEFT_OUT = "left out"
    """It is wrong; the problems say why."""
    UNSUPPORTED = "not supported"


class Extension(Record):
    """A part that a repository brings."""

    kind: str
    name: str
    file: str
    standing: Standing
    reason: str = ""


_KINDS: Mapping[str, str] = MappingProxyType(
    {"role": "agent", "command": "command", "hook": "hook", "hooks": "hook", "plugin": "plugin"}
)
"""What `trust` lists that is a part of its own, by what `check` calls it; it has its own words for others."""


def list_extensions(root: Path) -> tuple[Extension, ...]:
    items, waiting = list_items(root), frozenset(item.file for item in list_untrusted(root))
    found = [*_list_skills(root, waiting)]
    for kind in dict.fromkeys(_KINDS.values()):
        mine = (item for item in items if _KINDS.get(item.kind) == kind)
        found += [_judge_item(kind, item, waiting) for item in mine][:_MAX_EXTENSIONS]
        found += _list_idle(root) if kind == "hook" else ()
    return (*found, *_list_servers(root))


def _judge_item(kind: str, item: Item, waiting: frozenset[str]) -> Extension:
    missing = [file for file in (item.file, *item.needs) if file in waiting]
    standing = Standing.LEFT_OUT if item.problem else Standing.WAITS if missing else Standing.COUNTS
    reason = item.problem or ", ".join(file for file in missing if file != item.file)
    return Extension(kind=kind, name=item.name, file=item.file, standing=standing, reason=reason)


def _list_skills(root: Path, waiting: frozenset[str]) -> Iterator[Extension]:
    """Yield the skills, which count without trust; their commands and hooks need it."""
    places = [place for place in list_skill_folders(root) if place.origin == "project"]
    for folder in (folder for place in places for folder in find_skill_folders(place)):
        name, file = folder.name, to_relative(folder / SKILL_FILE, root)
        try:
            skill, _ = read_skill(folder, root, "project")
        except InvalidFile as error:
            standing, notes = Standing.LEFT_OUT, [error.problem]
        else:
            name, standing = skill.name, Standing.COUNTS
            notes = [] if skill.owners else ["active for all roles"]
            notes += ["its commands and hooks wait for trust"] if file in waiting else []
        yield Extension(kind="skill", name=name, file=file, standing=standing, reason="; ".join(notes))


def _list_idle(root: Path) -> Iterator[Extension]:
    """Yield the hooks without an effect here."""
    with suppress(InvalidFile):  # a plugin that is wrong is left out
        places, parts = list_hook_places(root)
        for place in (place for place in places if os.path.lexists(place.path)):
            with suppress(InvalidFile):
                for idle in list_idle_hooks(place):
                    yield _refuse_hook(idle.where, to_relative(place.path, root), idle.reason)
        for path in parts:
            reason = "hooks in the agents and skills of a plugin have no effect"
            yield _refuse_hook(path.stem, to_relative(path, root), reason)


def _refuse_hook(name: str, file: str, reason: str) -> Extension:
    return Extension(kind="hook", name=name, file=file, standing=Standing.UNSUPPORTED, reason=reason)


def _list_servers(root: Path) -> Iterator[Extension]:
    for entry in load_entries(root).all:
        if entry.source is ServerSource.PROJECT:
            stands = {"": Standing.COUNTS, UNTRUSTED: Standing.WAITS}
            standing = stands.get(entry.problem, Standing.LEFT_OUT)
            reason = entry.problem if standing is Standing.LEFT_OUT else ""
            name, file = entry.name, SERVERS_FILE
            yield Extension(kind="MCP server", name=name, file=file, standing=standing, reason=reason)
