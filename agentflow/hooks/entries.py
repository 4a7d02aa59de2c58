"""The `hooks` of one file in the public shape, into hooks."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Hook, OnError, Origin, Script
from agentflow.core.points import Point
from agentflow.core.record import Record
from agentflow.hooks.matching import TOOL_POINTS, expression, parse_condition
from agentflow.parse import Mismatch, fit
from agentflow.redact import one_line
from agentflow.trust import content

FUNCTIONS_ONLY = frozenset(
    {
        Point.RUN_START,
        Point.RUN_END,
        Point.TURN_START,
        Point.TURN_END,
        Point.MODEL_REQUEST,
        Point.MODEL_RESPONSE,
        Point.ERROR,
    }
)
OTHER_EVENTS = (
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "MessageDisplay",
    "PermissionDenied",
    "PostToolBatch",
    "Setup",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "WorktreeCreate",
    "WorktreeRemove",
)
"""Public events that nothing here fires."""
OTHER_TYPES = ("http", "mcp_tool", "prompt", "agent")
_KEY = "hooks"
Warn = Callable[[str], None]
T = TypeVar("T", bound=Record)


class Place(Record):
    """A file that may hold hooks."""

    path: Path
    origin: Origin
    plugin: Path | None = None
    """Folder of the plugin it belongs to; then the file holds hooks and nothing else."""


class _Group(Record):
    hooks: tuple[dict[str, Any], ...]
    matcher: str | None = None
    priority: int | None = None
    on_error: OnError | None = None
    description: str | None = None


class _Entry(Record):
    """One handler, as it stands in the file."""

    type: Literal["command"]
    command: Annotated[str, msgspec.Meta(min_length=1)]
    args: tuple[str, ...] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None = None
    condition: str | None = msgspec.field(name="if", default=None)
    shell: Literal["sh", "bash", "powershell"] = "sh"
    priority: int | None = None
    on_error: OnError | None = None
    description: str | None = None
    statusMessage: str | None = None  # noqa: N815  # the public name
    once: bool = False
    waits: bool = msgspec.field(name="async", default=False)
    asyncRewake: bool = False  # noqa: N815


def read_hooks(place: Place, warn: Warn) -> Iterator[Hook]:
    """Yield the hooks of a file that exists. Raises InvalidFile: a file that cannot be read is not none."""
    top = _loaded(place.path)
    if _KEY not in top:
        _refuse_near_miss(top, (_KEY,), str(place.path), "")
        if place.plugin is not None:
            raise InvalidFile(str(place.path), f"{_KEY}: is missing")
        return
    if top.get("disableAllHooks") is True:
        warn(f"{place.path}: disableAllHooks has no effect here")
    events = top[_KEY]
    if not isinstance(events, dict):
        raise InvalidFile(str(place.path), f"{_KEY}: must be an object of events")
    for event, groups in events.items():
        point = _point(event, place, warn)
        if point is not None:
            yield from _event_hooks(point, groups, place, warn)


def _loaded(path: Path) -> dict[str, Any]:
    try:
        text = content(path).decode("utf-8-sig")
        found = json.loads(text, object_pairs_hook=lambda pairs: _unique(path, pairs))
    except json.JSONDecodeError as error:
        raise InvalidFile(str(path), f"not JSON: {error.msg}", line=error.lineno) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(str(path), f"cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InvalidFile(str(path), "must be a JSON object")
    return found


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise InvalidFile(str(path), f"{twice}: stands twice")
    return found


def _point(event: str, place: Place, warn: Warn) -> Point | None:
    """Return the point of an event's name; None, with a warning, where no script is ever asked."""
    source, known = str(place.path), (*Point, *OTHER_EVENTS)
    if event in OTHER_EVENTS:
        warn(f"{source}: {_KEY}.{event}: is not fired by this version")
        return None
    if event in known:
        point = Point(event)
        if point in FUNCTIONS_ONLY:
            warn(f"{source}: {_KEY}.{event}: is not for scripts")
        return None if point in FUNCTIONS_ONLY else point
    _refuse_near_miss((event,), known, source, f"{_KEY}.")
    warn(f"{source}: {_KEY}.{event}: is no known event")
    return None


def _refuse_near_miss(keys: Iterable[str], known: Sequence[str], source: str, where: str) -> None:
    """Raise InvalidFile for a key that is almost a known one: its author relies on it."""
    spelled = {each.lower(): each for each in known}
    for key in keys:
        close = get_close_matches(key.lower(), spelled, 1, cutoff=0.8)
        if key not in known and close:
            raise InvalidFile(source, f"{where}{key}: is unknown; did you mean {spelled[close[0]]}?")


def _event_hooks(point: Point, groups: object, place: Place, warn: Warn) -> Iterator[Hook]:
    where = f"{_KEY}.{point}"
    if not isinstance(groups, list):
        raise InvalidFile(str(place.path), f"{where}: must be a list")
    for number, group in enumerate(groups):
        spot = f"{where}[{number}]"
        shared = _fitted(_Group, group, place, spot, warn)
        _check_matcher(shared.matcher or "", place, spot)
        for index, entry in enumerate(shared.hooks):
            hook = _hook(point, shared, entry, place, f"{spot}.hooks[{index}]", warn)
            if hook is not None:
                yield hook


def _fitted(kind: type[T], value: object, place: Place, where: str, warn: Warn) -> T:
    """Return an object of the file; an unknown key is left out with a warning, a near miss is an error."""
    source = str(place.path)
    if not isinstance(value, dict):
        raise InvalidFile(source, f"{where}: must be an object")
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    _refuse_near_miss(value, names, source, f"{where}.")
    for key in value:
        if key not in names:
            warn(f"{source}: {where}.{key}: has no meaning here")
    try:
        return fit(kind, {key: item for key, item in value.items() if key in names})
    except Mismatch as error:
        raise InvalidFile(source, f"{where}.{error}") from None


def _check_matcher(matcher: str, place: Place, where: str) -> None:
    try:
        expression(matcher)
    except re.error as error:
        raise InvalidFile(str(place.path), f"{where}.matcher: is no regular expression: {error}") from None


def _hook(
    point: Point, group: _Group, value: dict[str, Any], place: Place, where: str, warn: Warn
) -> Hook | None:
    if value.get("type") in OTHER_TYPES:
        warn(f"{place.path}: {where}: type {value['type']} is not run by this version")
        return None
    entry = _fitted(_Entry, value, place, where, warn)
    if entry.waits or entry.asyncRewake:
        warn(f"{place.path}: {where}: async has no effect here, the hook is waited for")
    if entry.condition is not None:
        parse_condition(entry.condition, f"{place.path}: {where}.if")
        if point not in TOOL_POINTS:
            warn(f"{place.path}: {where}: a hook with if never runs at {point}")
    priority = entry.priority if entry.priority is not None else group.priority
    return Hook(
        name=one_line(entry.command, 60),
        point=point,
        body=_script(entry, place),
        matcher=group.matcher or "",
        priority=priority or 0,
        origin=place.origin,
        on_error=entry.on_error or group.on_error,
    )


def _script(entry: _Entry, place: Place) -> Script:
    return Script(
        command=entry.command,
        args=entry.args,
        shell=entry.shell,
        timeout=entry.timeout,
        condition=entry.condition,
        plugin=None if place.plugin is None else str(place.plugin),
    )
