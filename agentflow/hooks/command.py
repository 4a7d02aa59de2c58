"""A script as a hook: what it is given, where it runs, and how long it may take."""

import os
import secrets
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from agentflow.core.errors import InvalidFile, NoSandbox
from agentflow.core.evidence import Command, ProgramOutput
from agentflow.core.hook import POINTS, Decision, Hook, HookResult, Origin, Script
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.regex import regex
from agentflow.frontmatter import write_whole
from agentflow.parse import Mismatch, decode_or_none, expand_home, fit
from agentflow.process import exchange
from agentflow.redact import redact_bytes, redact_text, to_one_line
from agentflow.sandbox.environment import find_shown
from agentflow.settings import find_folders
from agentflow.trust import fingerprint_file, load_trust

BLOCK = 2
CANNOT_RUN = (126, 127)
_FIRST_SIGNAL, _LAST_SIGNAL = 128, 160
"""The exit codes between them are a shell's for a command that a signal killed."""
_LATE = "it printed text before its JSON, so all of it is taken as text"


class HookAnswer(Record):
    """The answer of a hook, as it came back."""

    result: HookResult = HookResult()
    trouble: str | None = None
    """What was wrong, if anything."""
    broken: bool = False
    """The hook could not do its work, so no decision of it means nothing."""
    notices: tuple[str, ...] = ()


def read_output(hook: Hook, said: ProgramOutput) -> HookAnswer:
    if said.timed_out:
        return HookAnswer(trouble="did not end in time", broken=True)
    text = said.stdout.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    try:
        (result, notices), problem = _parse_output(hook, text), None
    except Mismatch as error:
        result, notices, problem = HookResult(), (), str(error)
    trouble, broken = _find_trouble(hook, said, problem)
    if _blocks(hook, said):
        result = result.replace(**_block_fields(hook, said, result))
    elif said.exit_code == 0 and text and not text.startswith("{") and POINTS[hook.point].takes_text:
        result = result.replace(context=text)
    return HookAnswer(result=result, trouble=trouble, broken=broken, notices=notices)


_DECISIONS: Mapping[str, Decision] = {
    "approve": Decision.ALLOW,
    "allow": Decision.ALLOW,
    "ask": Decision.ASK,
    "defer": Decision.ASK,
    "deny": Decision.DENY,
    "block": Decision.DENY,
}
PUBLIC = ("initialUserMessage", "reloadSkills", "sessionTitle", "updatedMCPToolOutput", "watchPaths")
"""Public keys that have no meaning here."""
_RETRY = "You may try this call again."
_SIGNALS = regex(r"(?:\x07|\x1b\](?:0|1|2|9|99|777);[^\x00-\x1f\x7f-\x9f]{0,300}(?:\x07|\x1b\\)){1,4}")
"""Bells, and the system commands that set a title or show a notification."""
DecisionWord = Literal["approve", "allow", "ask", "defer", "deny", "block"]
R = TypeVar("R", bound=Record)


class PermissionAnswer(Record):
    """The `decision` of a PermissionRequest."""

    behavior: Literal["allow", "deny"]
    updatedInput: dict[str, Any] | None = None  # noqa: N815  # the public name, as are all below
    updatedPermissions: Any = None  # noqa: N815
    message: str | None = None
    interrupt: bool = False


class PointAnswer(Record):
    """The `hookSpecificOutput` of an answer."""

    hookEventName: str  # noqa: N815
    permissionDecision: DecisionWord | None = None  # noqa: N815
    permissionDecisionReason: str | None = None  # noqa: N815
    updatedInput: dict[str, Any] | None = None  # noqa: N815
    updatedToolOutput: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815
    decision: PermissionAnswer | None = None
    retry: bool = False


class ScriptAnswer(Record):
    """A JSON answer: the public keys, and the short spellings of ours."""

    proceed: bool | None = msgspec.field(name="continue", default=None)
    stopReason: str | None = None  # noqa: N815
    systemMessage: str | None = None  # noqa: N815
    suppressOutput: bool | None = None  # noqa: N815
    terminalSequence: str | None = None  # noqa: N815
    decision: DecisionWord | None = None
    reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None
    bail: bool | None = None
    result: str | None = None
    """The result of the sub-agent, with `bail`."""
    hookSpecificOutput: dict[str, Any] | None = None  # noqa: N815


def join_texts(first: str | None, second: str | None) -> str | None:
    return "\n".join(part for part in (first, second) if part) or None


def _fit_known(kind: type[R], found: dict[str, Any], unknown: list[str]) -> R:
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in found.keys() - {*names, *PUBLIC}:
        if meant := get_close_matches(key, names, 1, cutoff=0.85):
            raise Mismatch(key, f"is unknown; did it mean {meant[0]}?")
    unknown.extend(key for key in found if key not in names)
    return fit(kind, {key: value for key, value in found.items() if key in names})


def _collect_fields(hook: Hook, answer: ScriptAnswer, unknown: list[str]) -> dict[str, Any]:
    specific = PointAnswer(hookEventName=hook.point)
    if answer.hookSpecificOutput is not None:
        specific = _fit_known(PointAnswer, answer.hookSpecificOutput, unknown)
        if specific.hookEventName != hook.point:
            raise Mismatch("hookSpecificOutput.hookEventName", f"must be {hook.point}")
    judged = (
        {"bail": answer.result or answer.reason or ""}
        if answer.bail
        else _to_fields(hook, *_find_decision(answer, specific))
    )
    added = join_texts(answer.additional_context, specific.additionalContext)
    if specific.retry:
        added = join_texts(added, _RETRY)
    if answer.terminalSequence and not _SIGNALS.fullmatch(answer.terminalSequence):
        raise Mismatch("terminalSequence", "may only be a bell, a title or a notification")
    permitted = specific.decision.updatedInput if specific.decision else None
    inputs = (specific.updatedInput, permitted, answer.updated_input)
    fields = judged | {
        "context": join_texts(judged.get("context"), added),
        "halt": _find_halt(hook, answer, specific.decision),
        "notice": answer.systemMessage,
        "updated_input": next((given for given in inputs if given is not None), None),  # it may be empty
        "updated_output": specific.updatedToolOutput,
        "terminal": answer.terminalSequence or None,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    for name in sorted(given.keys() - POINTS[hook.point].legal):
        raise Mismatch(name, f"has no place at {hook.point}")
    return given


def _find_halt(hook: Hook, answer: ScriptAnswer, permit: PermissionAnswer | None) -> str | None:
    if answer.proceed is False:
        return answer.stopReason or f"hook {hook.name} ended the task"
    if permit and permit.interrupt:
        return permit.message or f"hook {hook.name} ended the task"
    return None


def _find_decision(answer: ScriptAnswer, specific: PointAnswer) -> tuple[str | None, str | None]:
    """Return the decision and its reason; the point's own form comes before the short one."""
    if specific.decision:
        return specific.decision.behavior, specific.decision.message
    if specific.permissionDecision:
        return specific.permissionDecision, specific.permissionDecisionReason or answer.reason
    return answer.decision, answer.reason


def _to_fields(hook: Hook, word: str | None, reason: str | None) -> dict[str, Any]:
    if word is None:
        return {}
    decision, legal = _DECISIONS[word], POINTS[hook.point].legal
    denies = decision is Decision.DENY
    if "decision" not in legal and decision is Decision.ALLOW:
        return {}
    if denies and "updated_output" in legal:
        return {"context": reason}
    if denies and "block" in legal:
        return {"block": reason or f"blocked by hook {hook.name}"}
    return {"decision": decision, "reason": reason}


def _parse_output(hook: Hook, text: str) -> tuple[HookResult, tuple[str, ...]]:
    if not text.startswith("{"):
        objects = (line for line in text.splitlines() if line.lstrip().startswith("{"))
        is_late = any(isinstance(decode_or_none(line), dict) for line in objects)
        return HookResult(), (_LATE,) if is_late else ()
    found = decode_or_none(text)
    if not isinstance(found, dict):
        raise Mismatch("", "printed invalid JSON")
    unknown: list[str] = []
    try:
        fields = _collect_fields(hook, _fit_known(ScriptAnswer, found, unknown), unknown)
    except Mismatch as error:
        raise Mismatch("", f"gave an answer that does not fit: {error}") from None
    return HookResult(**fields), tuple(f'field "{name}" ignored' for name in unknown)


def _blocks(hook: Hook, said: ProgramOutput) -> bool:
    return said.exit_code == BLOCK and hook.point is not Point.PERMISSION_REQUEST


def _block_fields(hook: Hook, said: ProgramOutput, result: HookResult) -> dict[str, Any]:
    """Return the fields by which exit code 2 blocks; nothing in JSON undoes it."""
    legal = POINTS[hook.point].legal
    stderr = said.stderr.decode("utf-8", "replace").strip()
    if "decision" in legal:
        reason = result.reason if result.decision is Decision.DENY else None
        return {"decision": Decision.DENY, "reason": reason or stderr or f"blocked by hook {hook.name}"}
    if "block" in legal:
        return {"block": result.block or stderr or f"blocked by hook {hook.name}"}
    if "updated_output" in legal:
        return {"context": join_texts(result.context, stderr)}
    return {"notice": join_texts(result.notice, stderr)}


def _find_trouble(hook: Hook, said: ProgramOutput, problem: str | None) -> tuple[str | None, bool]:
    code = said.exit_code
    stderr = to_one_line(said.stderr.decode("utf-8", "replace"))
    blocks = _blocks(hook, said)
    if said.flooded:
        return "printed more than 64 KiB", True
    if code is None or _FIRST_SIGNAL < code < _LAST_SIGNAL:
        return "was killed by a signal", True
    if code in CANNOT_RUN:
        return f"ended with {code}: {stderr or 'the command cannot be run'}", True
    if problem is not None:
        return problem, not blocks
    failed = f"ended with {code}: {stderr}".removesuffix(": ")
    return (None if code == 0 or blocks else failed), False


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
