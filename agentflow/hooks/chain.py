"""Asks the hooks of a point in order and combines their answers into one decision."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial

import anyio
from anyio import to_thread

from agentflow.core.events import Signalled, Warned
from agentflow.core.hook import (
    NO_DECISION,
    POINTS,
    Decision,
    Hook,
    HookDecision,
    HookFunction,
    HookResult,
    OnError,
    Origin,
    Script,
)
from agentflow.core.points import HookEvent, PermissionAsked, Point, Scene, ToolUse
from agentflow.core.ports import Observer
from agentflow.core.record import Record
from agentflow.hooks.command import HookAnswer, fire_script
from agentflow.hooks.entries import is_condition_met, is_match
from agentflow.process import check_cancelled
from agentflow.redact import make_visible

_SILENT = HookResult()


class Chain:
    """Hooks in the order in which they are asked: by priority, then origin, then as given.

    A hook with a scope, such as a role or skill, is asked only while that scope is active.
    """

    def __init__(
        self, hooks: Iterable[Hook] = (), scopes: Iterable[str] = (), spent: set[Hook] | None = None
    ) -> None:
        self.hooks = tuple(sorted(hooks, key=lambda hook: (-hook.priority, hook.origin)))
        self._spent = set[Hook]() if spent is None else spent
        active_scopes = {"", *scopes}
        self.active = tuple(hook for hook in self.hooks if hook.scope in active_scopes)
        points = {hook.point for hook in self.active}
        self._at = {point: tuple(hook for hook in self.active if hook.point is point) for point in points}

    @property
    def has_scopes(self) -> bool:
        return any(hook.scope for hook in self.hooks)

    def activate(self, scopes: Iterable[str]) -> "Chain":
        return Chain(self.hooks, scopes, self._spent)

    def has(self, point: Point) -> bool:
        return point in self._at

    async def ask(
        self, point: Point, scene: Callable[[], Scene], payload: Callable[[], Record], observe: Observer
    ) -> HookDecision:
        """Return what the hooks of a point decide, and pass their notices on."""
        if not self.has(point):
            return NO_DECISION  # saves making scene and payload
        decision = await self.fire(point, scene(), payload)
        for notice in decision.notices:
            observe(Warned(message=notice))
        for signal in decision.signals:
            observe(Signalled(sequence=signal))
        return decision

    async def fire(self, point: Point, scene: Scene, payload: Callable[[], Record]) -> HookDecision:
        """Return the decision of the hooks of a point; the payload is made only if there are any."""
        hooks = self._at.get(point)
        if hooks is None:
            return NO_DECISION
        event = HookEvent(point=point, scene=scene, payload=payload())
        asked = [hook for hook in _select(hooks, event) if not (hook.once and hook in self._spent)]
        self._spent.update(hook for hook in asked if hook.once)
        return await _decide(asked, event) if asked else NO_DECISION


def _select(hooks: tuple[Hook, ...], event: HookEvent) -> list[Hook]:
    """Return the hooks an event is for; the same script from several files is asked once."""
    asked: list[Hook] = []
    seen: set[tuple[Script, OnError | None]] = set()
    for hook in (hook for hook in hooks if is_for(hook, event)):
        if isinstance(hook.body, Script):
            if (hook.body, hook.on_error) in seen:
                continue
            seen.add((hook.body, hook.on_error))
        asked.append(hook)
    return asked


def is_for(hook: Hook, event: HookEvent) -> bool:
    condition = hook.body.condition if isinstance(hook.body, Script) else None
    return is_match(hook.matcher, event) and is_condition_met(condition, event)


async def _decide(hooks: list[Hook], event: HookEvent) -> HookDecision:
    """Ask in order: a function sees what those before it changed, scripts start together."""
    decision, first, started = NO_DECISION, event, event
    answers: dict[int, HookAnswer] = {}
    for place, hook in enumerate(hooks):
        seen = event
        if isinstance(hook.body, Script):
            if not answers:
                started, answers = event, await _run_scripts(hooks, event)
            seen, answer = started, answers[place]
        else:
            answer = await _call_function(hook, hook.body, event)
        decision = _add_answer(decision, hook, answer)
        event = _apply_change(event, seen, answer.result)
    if event is first:
        return decision
    rules = POINTS[event.point]
    return decision.replace(**{rules.changes: getattr(event.payload, rules.changed)})


async def _run_scripts(hooks: list[Hook], event: HookEvent) -> dict[int, HookAnswer]:
    answers: dict[int, HookAnswer] = {}

    async def one(place: int, hook: Hook, script: Script) -> None:
        # in a thread of its own; it is killed when the task is cancelled
        run = partial(fire_script, hook, script, event, check_cancelled)
        answers[place] = (await to_thread.run_sync(run)).answer

    outside = (hook for hook in hooks if isinstance(hook.body, Script) and not hook.body.sandbox)
    watch = event.scene.watch
    is_watched = watch is not None and any(hook.origin is not Origin.BUILT_IN for hook in outside)
    with watch.watch_hooks() if watch is not None and is_watched else nullcontext():
        async with anyio.create_task_group() as group:
            for place, hook in enumerate(hooks):
                if isinstance(hook.body, Script):
                    group.start_soon(one, place, hook, hook.body)
    return answers


async def _call_function(hook: Hook, function: HookFunction, event: HookEvent) -> HookAnswer:
    try:
        result = function(event)
        if inspect.isawaitable(result):
            result = await result
    except Exception as error:  # noqa: BLE001  # a bug in a hook is an answer of the hook, not the end of the task
        return HookAnswer(trouble=f"failed: {type(error).__name__}: {error}", broken=True)
    if problem := _find_illegal(hook.point, result):
        return HookAnswer(trouble=f"answered {problem}", broken=True)
    return HookAnswer(result=result or _SILENT)


def _find_illegal(point: Point, result: object) -> str | None:
    if result is None:
        return None
    if not isinstance(result, HookResult):
        return type(result).__name__
    given = {name for name in HookResult.__struct_fields__ if getattr(result, name) != getattr(_SILENT, name)}
    legal = POINTS[point].legal
    odd = ", ".join(sorted(given - legal))
    return f"{odd}, legal are {', '.join(sorted(legal))}" if odd else None


def _add_answer(before: HookDecision, hook: Hook, answer: HookAnswer) -> HookDecision:
    """Return the decision with one more answer: the strictest decision counts, the rest adds up."""
    decision, reason = judge_answer(hook, answer)
    reasons = before.reasons if decision <= before.decision else ()
    said = (reason,) if reason and decision is not Decision.NONE and decision >= before.decision else ()
    deciders = before.deciders if decision <= before.decision else ()
    result = answer.result
    problems = (text for text in (answer.trouble, *answer.notices) if text is not None)
    notices = (result.notice, *(f"hook {hook.name} at {hook.point}: {text}" for text in problems))
    return before.replace(
        decision=max(decision, before.decision),
        reasons=reasons + said,
        deciders=deciders + ((hook.name,) if said else ()),
        contexts=before.contexts + ((result.context,) if result.context else ()),
        bail=_first(before.bail, result.bail),
        stop=_first(before.stop, result.stop),
        halt=_first(before.halt, result.halt),
        signals=before.signals + ((result.terminal,) if result.terminal else ()),
        notices=before.notices + tuple(make_visible(text) for text in notices if text),
    )


def _first(before: str | None, now: str | None) -> str | None:
    return now if before is None else before


def judge_answer(hook: Hook, answer: HookAnswer) -> tuple[Decision, str | None]:
    """Return a hook's own decision; a failed hook may block."""
    result = answer.result
    decision = result.decision if result.block is None else Decision.DENY
    reason = result.block or result.reason
    if answer.trouble is not None and decision is not Decision.DENY and _blocks(hook, answer):
        return Decision.DENY, f"hook {hook.name} at {hook.point} {answer.trouble}"
    if decision is Decision.DENY:
        reason = reason or f"blocked by hook {hook.name}"
    return decision, reason


def _blocks(hook: Hook, answer: HookAnswer) -> bool:
    if hook.on_error is OnError.OPEN:
        return False
    if hook.on_error is OnError.CLOSED:
        return POINTS[hook.point].can_block
    return answer.broken and POINTS[hook.point].is_guarded


def _apply_change(event: HookEvent, seen: HookEvent, result: HookResult) -> HookEvent:
    rules = POINTS[event.point]
    value = getattr(result, rules.changes) if rules.changes else None
    if value is None:
        return event
    if rules.changed == "tool_input":
        assert isinstance(event.payload, ToolUse | PermissionAsked)
        assert isinstance(seen.payload, ToolUse | PermissionAsked)
        now, before = event.payload.tool_input, seen.payload.tool_input
        if now is not before:  # what others changed meanwhile stays
            kept = {key: item for key, item in now.items() if key in value or key not in before}
            value = kept | {
                key: item for key, item in value.items() if key not in before or before[key] != item
            }
    return event.replace(payload=event.payload.replace(**{rules.changed: value}))
