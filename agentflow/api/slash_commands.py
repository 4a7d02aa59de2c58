"""Turns `/name arguments` into the text of a task: the command's body with everything in it filled in."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

import anyio

from agentflow.api.boundary import TaskRequest, hide_secrets, open_sandbox
from agentflow.api.content import has_plugins, load_hooks_here, load_rules_here, load_skills_here
from agentflow.api.trust import load_trust_here
from agentflow.core.errors import Halted, ToolError, UsageError
from agentflow.core.evidence import Command
from agentflow.core.hook import NO_DECISION, Decision, HookDecision
from agentflow.core.points import CommandCalled, Point, Scene
from agentflow.core.record import Record
from agentflow.core.role import Role, ToolRule
from agentflow.core.task import Invocation, Phase
from agentflow.hooks.chain import Chain
from agentflow.library.skill_file import SKILL_FILE, list_skill_files
from agentflow.library.slash_commands import (
    CommandFolder,
    PromptCommand,
    PromptCommands,
    list_command_places,
    load_commands,
    read_command,
)
from agentflow.library.substitution import (
    Arguments,
    PartKind,
    is_using,
    split_arguments,
    split_body,
    substitute,
    substitute_in_shell,
)
from agentflow.permissions.role_rules import explain_role_refusal, is_left_to_sandbox
from agentflow.permissions.rules import Rules
from agentflow.permissions.user_rules import apply_rules, build_exceptions
from agentflow.redact import redact_text, strip_colours, to_one_line
from agentflow.sandbox.environment import find_shell
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import find_folders
from agentflow.store.reading import find_state_folder
from agentflow.tools.files import READ
from agentflow.tools.shell import BASH
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.path_guard import PathGuard

_MAX_OUTPUT = 8_000
"""Characters of what one shell line prints."""
MAX_FILE = 20_000
"""Characters of one file that is read along."""
_SECONDS = 60.0
_NEAR = 3
_READER = "explorer"
_NOTHING = ":"
"""A pattern that allows only reading commands."""


class _Place(Record):
    git: Git
    rules: Rules
    request: TaskRequest


def expand_command(start: Path, request: TaskRequest) -> tuple[TaskRequest, tuple[str, ...]]:
    """Return the task that a text with a leading slash stands for, and warnings; an ordinary text as it is.

    A name with another slash in it, or that of an existing path, is text unless a command has it. Raises
    UsageError for an unknown name and for a command that is not trusted, Halted where a rule forbids what
    it would run.
    """
    name, _, rest = request.text[1:].partition(" ")
    name, line, below = name.partition("\n")
    rest = f"{line}{below}{rest}".strip() if below else rest.strip()
    if not name:
        return request, ()
    git = open_repository(start)
    root = git.root
    command = _find_command(root, name)
    if command is None:
        if "/" in name or Path(f"/{name}").exists() or (root / name).exists():
            return request, ()
        raise _explain_unknown(root, name)
    if not may_be_called(root, command):
        file = command.path.relative_to(root)
        raise UsageError(f"/{command.called} is not trusted: {file}", hint="review it with: agentflow trust")
    decided = _ask_hooks(git, command, request.text, rest)
    place = _Place(git=git, rules=load_rules_here(root), request=request)
    text, warnings = _expand(place, command, rest)
    purpose = redact_text(f"{command.description} {rest}".strip()) if command.description else ""
    invoked = Invocation(
        typed=request.text,
        file=str(command.path),
        tools=None if command.tools is None else tuple(map(str, command.tools)),
        model=command.model,
        purpose=purpose,
    )
    text = redact_text("\n\n".join((text, *decided.contexts)))
    return request.replace(text=text, invoked=invoked), (*warnings, *decided.notices)


def _ask_hooks(git: Git, command: PromptCommand, typed: str, rest: str) -> HookDecision:
    """Return what hooks say of a called command. Raises Halted where they block."""
    point, hooks = Point.USER_PROMPT_EXPANSION, Chain(load_hooks_here(git.root)[0])
    if not hooks.has(point):
        return NO_DECISION
    called = CommandCalled(
        command_name=command.called, command_args=rest, command_source=command.origin, prompt=typed
    )
    folder = find_state_folder(git.root).parent
    scene = Scene(  # there is no task yet
        task_id="",
        cwd=git.root,
        transcript=folder,
        outputs=folder / "outputs",
        phase=Phase.REFINEMENT,
        iteration=0,
    )
    decided = anyio.run(hooks.fire, point, scene, lambda: called)
    if decided.halt is not None:
        raise Halted(decided.halt)
    if decided.decision is Decision.DENY:
        raise Halted(f"a hook refused /{command.called}: {decided.reason}")
    return decided


def _find_command(root: Path, name: str) -> PromptCommand | None:
    """Return the command of a name, first one that may be called, or the skill of that name as a command."""
    known = load_commands_here(root)
    counting = known.replace(all=tuple(each for each in known.all if may_be_called(root, each)))
    command = counting.find(name) or known.find(name)
    skill = load_skills_here(root)[0].find(name) if command is None else None
    if skill is None:
        return command
    command = read_command(
        Path(skill.source), CommandFolder(path=Path(skill.source), root=skill.root, origin=skill.origin)
    )
    files = list_skill_files(skill)
    note = f"\n\nFiles of this skill, below {skill.folder}: {', '.join(files)}" if files else ""
    return command.replace(name=skill.name, description=skill.description, body=command.body + note)


def load_commands_here(root: Path) -> PromptCommands:
    """Return the commands of the user, of the repository and of plugins, trusted or not."""
    places = list_command_places(find_folders(os.environ).claude, root)
    if has_plugins(root):
        from agentflow.api.plugins import list_plugin_commands

        places = (*places, *list_plugin_commands(root))
    return load_commands(places)


def may_be_called(root: Path, command: PromptCommand) -> bool:
    """Return whether a command may be called; a repository's own commands need its trust."""
    return command.path.name == SKILL_FILE or _is_trusted(root, command)


def _is_trusted(root: Path, command: PromptCommand) -> bool:
    if command.origin != "project":
        return True
    return load_trust_here(root).covers(command.path.relative_to(root).as_posix())


def _explain_unknown(root: Path, name: str) -> UsageError:
    known = load_commands_here(root)
    names = {command.name: command.called for command in known.all}
    names |= {command.called: command.called for command in known.all}
    names |= {skill.name: skill.name for skill in load_skills_here(root)[0].all}
    near = dict.fromkeys(names[each] for each in get_close_matches(name, names, n=_NEAR, cutoff=0.5))
    meant = f"; did you mean {' or '.join(f'/{each}' for each in near)}?" if near else ""
    left_out = next((warning for warning in known.warnings if f"/{name}.md" in warning), "")
    return UsageError(
        left_out or f"there is no command /{name}{meant}",
        hint="agentflow commands list shows them; a text that begins with a slash needs a word before it",
    )


def _expand(place: _Place, command: PromptCommand, rest: str) -> tuple[str, tuple[str, ...]]:
    folders_named = {"CLAUDE_PROJECT_DIR": str(place.git.root), "CLAUDE_SKILL_DIR": str(command.path.parent)}
    given = Arguments(
        text=rest,
        words=split_arguments(rest),
        names=command.names,
        first=command.first,
        places=folders_named | command.places,
    )
    warnings: list[str] = []
    files: dict[str, str] = {}
    written: list[str] = []
    for part in split_body(command.body):
        match part.kind:
            case PartKind.TEXT:
                written.append(substitute(part.text, given))
            case PartKind.COMMAND if not _is_trusted(place.git.root, command):
                written.append(f"!`{part.text}`")
                warnings.append("a shell line in a skill that is not trusted is not run")
            case PartKind.COMMAND:
                written.append(_run_line(place, command, substitute_in_shell(part.text, given)))
            case PartKind.FILE:
                name = substitute(part.text, given)
                written.append(f"@{name}")
                warnings.extend(_read_along(place, name, files))
    text = "".join(written).strip()
    if rest and not is_using(command.body, given):
        text = f"{text}\n\nARGUMENTS: {rest}"
    texts = (f'<file path="{name}">\n{held}\n</file>' for name, held in files.items())
    warnings = [f"/{command.called}: {warning}" for warning in dict.fromkeys(warnings)]
    return redact_text("\n\n".join((text, *texts))), tuple(warnings)


def _read_along(place: _Place, name: str, files: dict[str, str]) -> Iterator[str]:
    """Add a file that a command names; yield why one that exists is not read. Other names are text."""
    guard = PathGuard(place.git.root, build_exceptions(place.rules, place.git.root), place.git.folders)
    try:
        found = guard.to_relative(name)
        if not (place.git.root / found).is_file():
            return
        said = apply_rules(place.rules, READ, {"file_path": found}, place.git.root)
        if said.decision in (Decision.DENY, Decision.ASK):
            yield f"@{name} is not read: {said.rule}"
            return
        text = guard.read(found).decode("utf-8", "replace")
    except ToolError as error:
        yield f"@{name} is not read: {error}"
        return
    files[found] = _clip(text, MAX_FILE)


def _run_line(place: _Place, command: PromptCommand, line: str) -> str:
    sandbox = open_sandbox(place.git, place.request)
    runner = hide_secrets(sandbox, place.git, place.rules).of(_READER)
    if why := _find_refusal(place, command, line, runner):
        hint = f"it is in {command.path}"
        raise Halted(f"/{command.called} may not run {to_one_line(line)}: {why}", hint=hint)
    root = str(place.git.root)
    wanted = Command(argv=(find_shell(place.git.root), "-c", line), cwd=root, timeout=_SECONDS)
    with make_scratch_folder() as folder:
        sink = folder / "output"
        finished = runner.run(wanted, sink)
        printed = sink.read_bytes().decode("utf-8", "replace")
    end = "timed out" if finished.timed_out else f"exit {finished.exit_code}"
    note = "" if finished.exit_code == 0 else f"\n[{end}]"
    return _clip(strip_colours(printed).strip(), _MAX_OUTPUT) + note


def _find_refusal(place: _Place, command: PromptCommand, line: str, runner: Sandbox) -> str | None:
    said = apply_rules(place.rules, BASH, {"command": line}, place.git.root)
    if said.decision is Decision.DENY:
        return said.rule
    if said.decision is Decision.ASK:
        return f"{said.rule} requires an approval, which is not possible before a task begins"
    tools = command.tools
    if tools is None:
        is_kept_in = runner.level is not Level.NONE
        tools = (ToolRule(tool=BASH.name, pattern=None if is_kept_in else _NOTHING),)
    caller = Role(
        name=f"/{command.called}",
        description="",
        model="",
        tools=tools,
        prompt="",
        source=str(command.path),
        origin=command.origin,
    )
    return explain_role_refusal(caller, BASH, line, is_held=is_left_to_sandbox(caller, BASH, runner))


def _clip(text: str, most: int) -> str:
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}\n[{left:,} more characters are left out]"
