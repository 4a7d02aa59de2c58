"""A script as a hook: what it is given, where it runs, and how long it may take."""

import os
import secrets
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentflow.core.errors import InvalidFile, NoSandbox
from agentflow.core.evidence import Command, ProgramOutput
from agentflow.core.hook import POINTS, Hook, HookResult, Origin, Script
from agentflow.core.points import HookEvent
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.regex import regex
from agentflow.frontmatter import write_whole
from agentflow.hooks.answers import HookAnswer, read_output
from agentflow.parse import expand_home
from agentflow.process import exchange
from agentflow.redact import redact_bytes, redact_text, to_one_line
from agentflow.sandbox.environment import find_shown
from agentflow.settings import find_folders
from agentflow.trust import fingerprint_file, load_trust

MAX_HOOK_TEXT = 10_000
"""Characters of a text that are passed on; a longer one is kept in a file."""
_PREVIEW = 1_000
_PLACEHOLDER = regex(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT)\}")
_HOME = regex(r"^\$(?:HOME|\{HOME\})(?=/)")
_SHELLS: Mapping[str, tuple[str, ...]] = {
    "sh": ("sh", "-c"),
    "bash": ("bash", "-c"),
    "powershell": ("pwsh", "-NoProfile", "-Command"),
}


class ScriptRun(Record):
    """The result of running a script once."""

    answer: HookAnswer
    said: ProgramOutput | None = None
    """Its exit code and output, if it could be started."""
    environment: Mapping[str, str] = {}
    """The variables that it was given for the event."""
    seconds: float = 0


def fire_script(
    hook: Hook, script: Script, event: HookEvent, cancelled: Callable[[], bool] = lambda: False
) -> ScriptRun:
    """Run a script on an event and wait for it."""
    command, begin = _build_command(hook, script, event), time.monotonic()
    if problem := _find_change(script, event.scene.cwd):
        return ScriptRun(answer=HookAnswer(trouble=problem, broken=True), environment=command.env)
    try:
        said = _exchange(command, hook, event, cancelled)
    except NoSandbox as error:
        trouble = f"was not run, because it asks for a sandbox: {to_one_line(str(error))}"
        return ScriptRun(answer=HookAnswer(trouble=trouble, broken=True), environment=command.env)
    except (OSError, ValueError) as error:
        answer = HookAnswer(trouble=_explain_failure(command, error), broken=True)
        return ScriptRun(answer=answer, environment=command.env)
    seconds = round(time.monotonic() - begin, 3)
    given_back = event.scene.to_repository(said.stdout.decode("utf-8", "surrogateescape"))
    said = said.replace(stdout=given_back.encode("utf-8", "surrogateescape"))
    answer = read_output(hook, said)
    try:
        answer = answer.replace(result=_shorten(answer.result, event.scene.outputs))
    except OSError as error:
        answer = HookAnswer(trouble=f"its output cannot be kept: {error}", broken=True)
    return ScriptRun(answer=answer, said=said, environment=command.env, seconds=seconds)


def _exchange(command: Command, hook: Hook, event: HookEvent, cancelled: Callable[[], bool]) -> ProgramOutput:
    assert isinstance(hook.body, Script)
    script, given, runner = hook.body, encode_event(event), event.scene.runner
    if not script.sandbox:
        return exchange(command, given, cancelled)
    if runner is None:
        raise NoSandbox("there is none here")
    return runner.exchange(command, given, tuple(_find_own_files(command, hook, script)), cancelled)


def _find_own_files(command: Command, hook: Hook, script: Script) -> Iterator[Path]:
    """Yield what belongs to a script: its plugin's folder, and the files that a command of the user names."""
    if script.plugin is not None:
        yield Path(script.plugin)
    if hook.origin is not Origin.USER:
        return
    words = command.argv
    if script.args is None:
        try:
            words = tuple(shlex.split(script.command))
        except ValueError:
            return  # its shell says what is wrong
    named = (_HOME.sub("~", word) for word in words)
    yield from (place for word in named for place in find_shown(word) if not expand_home(word).is_dir())


def _find_change(script: Script, root: Path) -> str | None:
    changed = [file for file, digest in script.sealed if (fingerprint_file(root, file) or "") != digest]
    if changed:
        return f"{changed[0]} has changed since it was trusted: agentflow trust"
    if moved := [file for file in script.written if not _is_own(root, file)]:
        return f"{moved[0]}, which it writes, is now a link, or no longer a plain file of the repository"
    return None


def _is_own(root: Path, file: str) -> bool:
    """Return whether writing to a file of the repository changes that file only."""
    place = root / file
    if place.resolve() != root.resolve() / file:
        return False
    try:
        status = place.lstat()
    except OSError:
        return not place.exists()
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def encode_event(event: HookEvent) -> bytes:
    """Return what a script reads on stdin: one JSON object."""
    scene, actor = event.scene, event.scene.actor
    said: dict[str, Any] = {
        "session_id": scene.task_id,
        "transcript_path": str(scene.transcript),
        "cwd": str(scene.cwd),
        "permission_mode": "default",
        "hook_event_name": event.point,
        "task_id": scene.task_id,
        "agent": to_builtins(actor),
        "phase": scene.phase,
        "iteration": scene.iteration,
    }
    inside = {"agent_id": scene.transcript.stem, "agent_type": actor.name} if actor.depth else {}
    return redact_bytes(encode(said | inside | scene.to_copy(to_builtins(event.payload)))) + b"\n"


def _build_command(hook: Hook, script: Script, event: HookEvent) -> Command:
    scene = event.scene
    places = {"CLAUDE_PROJECT_DIR": str(scene.cwd)}
    if script.plugin is not None:
        places["CLAUDE_PLUGIN_ROOT"] = script.plugin
    if script.args is None:
        argv = (*_SHELLS[script.shell], script.command)  # the shell itself replaces the placeholders
    else:
        words = (script.command, *script.args)
        argv = tuple(_PLACEHOLDER.sub(lambda found: places.get(found[1], found[0]), word) for word in words)
    variables = {
        "AGENTFLOW_TASK_ID": scene.task_id,
        "AGENTFLOW_AGENT": scene.actor.name,
        "AGENTFLOW_DEPTH": str(scene.actor.depth),
        "AGENTFLOW_PHASE": scene.phase,
        "AGENTFLOW_ITERATION": str(scene.iteration),
        "AGENTFLOW_TRUSTED": ":".join(_list_trusted(scene.root)),
    }
    return Command(
        argv=argv,
        cwd=str(scene.cwd),
        timeout=script.timeout or POINTS[hook.point].timeout,
        env=places | variables,
    )


def _list_trusted(root: Path) -> list[str]:
    try:
        trusted = load_trust(find_folders(os.environ).config, root)
    except (OSError, InvalidFile):
        return []
    own = (file for file in sorted(trusted.files) if str(Path(file).parent) == ".claude")
    return [file for file in own if trusted.covers(file)]


def _explain_failure(command: Command, error: OSError | ValueError) -> str:
    reason = str(getattr(error, "strerror", None) or error).lower()
    program = Path(command.cwd, command.argv[0])
    if isinstance(error, FileNotFoundError) and program.is_file():
        with program.open("rb") as file:
            first = file.readline(200)
        reason = "its first line ends in CR LF" if first.endswith(b"\r\n") else "its interpreter is not found"
    return f"cannot run {command.argv[0]}: {reason}"


def _shorten(result: HookResult, folder: Path) -> HookResult:
    fields = ("context", "notice", "reason", "block", "halt")
    long = {name: text for name in fields if len(text := getattr(result, name) or "") > MAX_HOOK_TEXT}
    for name, text in long.items():
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"hook-{secrets.token_hex(4)}.out"
        write_whole(path, redact_text(text).encode())
        long[name] = f"{text[:_PREVIEW]}\n[clipped; the full text is in {path}]"
    return result.replace(**long)
