"""The files that hold hooks, read into hooks, and which events a hook is for."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from agentflow.core.errors import InvalidFile
from agentflow.core.hook import NEVER_FIRED, POINTS, Hook, OnError, Origin, Script
from agentflow.core.points import CallDenied, HookEvent, PermissionAsked, Point, ToolDone, ToolFailed, ToolUse
from agentflow.core.record import Record, copy_shared
from agentflow.core.regex import regex
from agentflow.core.role import ToolRule
from agentflow.core.tool import Subject, Tool
from agentflow.frontmatter import find_key_line, read_public
from agentflow.parse import Mismatch, fit, read_json
from agentflow.permissions.rules import (
    FILES,
    is_about_path,
    list_rule_kinds,
    may_be_about_command,
    parse_rules,
)
from agentflow.redact import to_one_line
from agentflow.trust import require_text

_NAMES = regex(r"[A-Za-z0-9_\- ,|]*")
OTHER_TYPES = ("http", "mcp_tool", "prompt", "agent")
_KEY = "hooks"
_SHIPPED = re.compile(r"/hooks/([a-z-]+)\.(?:py|sh)\b")
Warn = Callable[[str], None]
T = TypeVar("T", bound=Record)


def is_match(matcher: str, event: HookEvent) -> bool:
    field = POINTS[event.point].matched
    return not field or is_name_match(matcher, getattr(event.payload, field))


def may_see(hook: Hook, tool: Tool) -> bool:
    condition = hook.body.condition if isinstance(hook.body, Script) else None
    is_about = condition is None or parse_condition(condition, "if").tool in list_rule_kinds(tool)
    return hook.point is Point.PRE_TOOL_USE and is_name_match(hook.matcher, tool.name) and is_about


def is_name_match(matcher: str, value: str) -> bool:
    """Return whether a matcher fits a name: it is a list of exact names, else an unanchored expression."""
    if matcher in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        return value in {name.strip() for name in re.split(r"[|,]", matcher)}
    return compile_matcher(matcher).search(value) is not None


def compile_matcher(matcher: str) -> re.Pattern[str]:
    """Return the expression of a matcher that is no list of names. Raises re.error."""
    python = matcher.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    return re.compile("" if matcher == "*" else python)


def parse_condition(text: str, source: str) -> ToolRule:
    """Return the one rule of an `if`. Raises InvalidFile."""
    (rule,) = parse_rules([text], source)
    return rule


def is_condition_met(condition: str | None, event: HookEvent) -> bool:
    """Return whether an event meets an `if` condition; in doubt it does."""
    if condition is None:
        return True
    use = event.payload
    if not isinstance(use, ToolUse | PermissionAsked | CallDenied | ToolDone | ToolFailed):
        return False
    rule = parse_condition(condition, "if")
    tool = event.scene.tool
    if tool is None or rule.tool not in list_rule_kinds(tool):
        return False
    if rule.pattern is None:
        return True
    given = event.scene.to_repository(use.tool_input)
    if commands := tool.list_values(given, Subject.COMMAND):
        return any(may_be_about_command(rule.pattern, command) for command in commands)
    paths = tool.list_values(given, Subject.PATH) if rule.tool in FILES else ()  # a call without any meets it
    root = event.scene.root
    return not paths or any(is_about_path(rule.pattern, path, root, "", widely=True) for path in paths)


class Bearer(StrEnum):
    """The kinds of files that hold hooks."""

    SETTINGS = "settings file"
    ROLE = "role of the pipeline"
    SUBAGENT = "sub-agent"
    SKILL = "skill"


_OF_RUNS = frozenset(
    {
        *(Point.PRE_TOOL_USE, Point.PERMISSION_REQUEST, Point.PERMISSION_DENIED),
        *(Point.POST_TOOL_USE, Point.POST_TOOL_USE_FAILURE, Point.POST_TOOL_BATCH),
        *(Point.PRE_COMPACT, Point.POST_COMPACT),
    }
)
_SUPPORTED: Mapping[Bearer, frozenset[Point]] = {
    Bearer.SETTINGS: frozenset(Point),
    Bearer.ROLE: _OF_RUNS | {Point.TASK_COMPLETED},
    Bearer.SUBAGENT: _OF_RUNS | {Point.SUBAGENT_START, Point.SUBAGENT_STOP},
    Bearer.SKILL: _OF_RUNS | {Point.TASK_COMPLETED, Point.SUBAGENT_STOP},
}
"""The points at which a hook of each kind of file can stand."""


class HookFile(Record):
    path: Path
    origin: Origin
    plugin: Path | None = None
    """Folder of the plugin it belongs to; then the file holds hooks and nothing else."""
    bearer: Bearer = Bearer.SETTINGS
    scope: str = ""
    """The role or skill that bears the hooks, as `Hook.scope` names it."""


class IdleHook(Record):
    """A hook, or all hooks of an event, without an effect."""

    where: str
    reason: str


def load_hooks(places: Iterable[HookFile]) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks of all files that exist, and warnings. Raises InvalidFile naming file and key."""
    hooks: list[Hook] = []
    warnings: list[str] = []
    for place in places:
        if os.path.lexists(place.path):
            hooks.extend(read_hooks(place, warnings.append))
    return tuple(hooks), tuple(warnings)


def list_user_places(bundled: Path, claude: Path) -> tuple[HookFile, ...]:
    """Return the files that always count: those shipped, and the user's own."""
    shipped = HookFile(path=bundled / "hooks.json", origin=Origin.BUILT_IN, plugin=bundled.parent)
    return shipped, HookFile(path=claude / "settings.json", origin=Origin.USER)


def name_shipped(hook: Hook) -> str:
    """Return the name by which a shipped hook is switched on, or nothing for any other hook."""
    if hook.origin is not Origin.BUILT_IN or not isinstance(hook.body, Script):
        return ""
    found = _SHIPPED.search(hook.body.command)
    return found[1] if found else ""


def list_project_places(root: Path) -> tuple[HookFile, ...]:
    """Return a repository's files; they count only once they are trusted."""
    names = ("settings.json", "settings.local.json")
    return tuple(HookFile(path=root / ".claude" / name, origin=Origin.PROJECT) for name in names)


def to_skill_scope(name: str) -> str:
    return f"skill {name}"


def list_idle_hooks(place: HookFile) -> tuple[IdleHook, ...]:
    """Return the hook entries of a file that have no effect. Raises InvalidFile."""
    reader = _Reader(place, lambda _: None)
    tuple(reader.hooks())
    return tuple(reader.idle)


def read_hooks(place: HookFile, warn: Warn) -> Iterator[Hook]:
    """Yield the hooks of an existing file. Raises InvalidFile, also for a file that cannot be read."""
    yield from _Reader(place, warn).hooks()


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
    sandbox: bool = False


class _Reader:
    """Reads one file: errors are raised, oddities become warnings."""

    def __init__(self, place: HookFile, warn: Warn) -> None:
        self._place = place
        self._source = str(place.path)
        self._warn = warn
        self._line: int | None = None
        self.idle: list[IdleHook] = []

    def hooks(self) -> Iterator[Hook]:
        top = self._load()
        if _KEY not in top:
            self._refuse_near_miss(top, (_KEY,), "")
            if self._place.plugin is not None:
                raise self._wrong(f"{_KEY}: is missing")
            return
        if top.get("disableAllHooks") is True:
            self._tell("disableAllHooks has no effect here")
        events = top[_KEY]
        if not isinstance(events, dict):
            raise self._wrong(f"{_KEY}: must be an object of events")
        for event, groups in events.items():
            point = self._find_point(event)
            if point is not None:
                yield from self._read_event(point, groups)

    def _load(self) -> dict[str, Any]:
        text = require_text(self._place.path)
        if self._place.bearer is not Bearer.SETTINGS:
            self._line = find_key_line(text, _KEY)
            return {_KEY: read_public(text, self._source).head.get(_KEY, {})}
        found = read_json(text, self._source, self._refuse_repeats)
        if not isinstance(found, dict):
            raise self._wrong("must be a JSON object")
        return found

    def _refuse_repeats(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                raise self._wrong(f"{key}: appears twice")
            seen[key] = value
        return seen

    def _find_point(self, event: str) -> Point | None:
        known = (*Point, *NEVER_FIRED)
        if event not in known:
            self._refuse_near_miss((event,), known, f"{_KEY}.")
            problem = "is not a known event, so the hook has no effect"
        elif event in NEVER_FIRED:
            problem = "agentflow never runs this event, so the hook has no effect"
        elif not POINTS[Point(event)].takes_scripts:
            problem = "is not for scripts"
        else:
            return self._place_point(Point(event))
        self._leave_out(f"{_KEY}.{event}", problem)
        return None

    def _place_point(self, point: Point) -> Point | None:
        bearer = self._place.bearer
        if bearer is Bearer.SUBAGENT and point is Point.STOP:
            return Point.SUBAGENT_STOP
        if point in _SUPPORTED[bearer]:
            return point
        advice = f"; {Point.TASK_COMPLETED} is its end" if point is Point.STOP else ""
        self._leave_out(f"{_KEY}.{point}", f"is not supported in the frontmatter of a {bearer}{advice}")
        return None

    def _read_event(self, point: Point, groups: object) -> Iterator[Hook]:
        where = f"{_KEY}.{point}"
        if not isinstance(groups, list):
            raise self._wrong(f"{where}: must be a list")
        for number, each in enumerate(groups):
            spot = f"{where}[{number}]"
            group = self._fit(_Group, each, spot)
            try:
                compile_matcher(group.matcher or "")
            except re.error as error:
                raise self._wrong(f"{spot}.matcher: is not a regular expression: {error}") from None
            for index, entry in enumerate(group.hooks):
                hook = self._read_hook(point, group, entry, f"{spot}.hooks[{index}]")
                if hook is not None:
                    yield hook

    def _read_hook(self, point: Point, group: _Group, value: dict[str, Any], where: str) -> Hook | None:
        if value.get("type") in OTHER_TYPES:
            self._leave_out(where, f"type {value['type']} is not supported, so the hook has no effect")
            return None
        entry = self._fit(_Entry, value, where)
        if entry.waits or entry.asyncRewake:
            self._tell(f"{where}: async has no effect: agentflow waits for the hook")
        once = entry.once and self._place.bearer is Bearer.SKILL
        if entry.once and not once:
            self._tell(f"{where}: once has no effect: the hook runs each time")
        if entry.condition is not None:
            parse_condition(entry.condition, f"{self._source}: {where}.if")
            if not POINTS[point].is_about_tool:
                self._tell(f"{where}: a hook with if never runs at {point}")
        priority = entry.priority if entry.priority is not None else group.priority
        plugin = self._place.plugin
        return Hook(
            name=to_one_line(entry.command, 60),
            point=point,
            body=Script(plugin=None if plugin is None else str(plugin), **copy_shared(entry, Script)),
            matcher=group.matcher or "",
            priority=priority or 0,
            origin=self._place.origin,
            on_error=entry.on_error or group.on_error,
            source=self._source,
            scope=self._place.scope,
            once=once,
        )

    def _fit(self, kind: type[T], value: object, where: str) -> T:
        if not isinstance(value, dict):
            raise self._wrong(f"{where}: must be an object")
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        self._refuse_near_miss(value, names, f"{where}.")
        for key in value:
            if key not in names:
                self._tell(f"{where}.{key}: has no meaning here")
        is_lax = self._place.bearer is not Bearer.SETTINGS  # fractions are text there
        try:
            return fit(kind, {key: item for key, item in value.items() if key in names}, lax=is_lax)
        except Mismatch as error:
            raise self._wrong(f"{where}.{error}") from None

    def _refuse_near_miss(self, keys: Iterable[str], known: Sequence[str], where: str) -> None:
        """Raise InvalidFile for a key that is almost a known one, because its author relies on it."""
        spelled = {each.lower(): each for each in known}
        for key in keys:
            close = get_close_matches(key.lower(), spelled, 1, cutoff=0.8)
            if key not in known and close:
                raise self._wrong(f"{where}{key}: is unknown; did you mean {spelled[close[0]]}?")

    def _wrong(self, problem: str) -> InvalidFile:
        return InvalidFile(self._source, problem, line=self._line)

    def _leave_out(self, where: str, problem: str) -> None:
        self.idle.append(IdleHook(where=where.removeprefix(f"{_KEY}."), reason=problem))
        self._tell(f"{where}: {problem}")

    def _tell(self, oddity: str) -> None:
        self._warn(f"{self._source}: {oddity}")
