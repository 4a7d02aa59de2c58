"""Sees which lines tests execute and which types their values have; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library. From 3.12
on the interpreter itself tells each line once; before, each function of the repository is traced.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_MOST_CALLS = 40
"""Calls of a function whose values are looked at, for each test."""
_SHOWN = 4
_TOOL = 4
"""The number under which the interpreter knows us; no debugger, profiler or optimizer has it."""

_MONITORING: Any = getattr(sys, "monitoring", None)
_DISABLE: Any = getattr(_MONITORING, "DISABLE", None)


class Tracer:
    """The lines and types of one test after the other."""

    def __init__(self, place: Callable[[str], str | None]) -> None:
        self.place = place
        self.lines: dict[str, set[tuple[str, int]]] = {"": set()}
        self.types: dict[str, dict[str, set[str]]] = {}
        self.seen = self.lines[""]
        self.calls: dict[CodeType, int] = {}
        self.is_typed = False

    def begin(self, test: str) -> None:
        """Count what is executed from now on for a test; for the loading of tests when it is empty."""
        self.seen = self.lines.setdefault(test, set())
        self.calls = {}
        self.is_typed = bool(test)
        if _MONITORING:
            self.watch(_MONITORING)
        else:
            sys.settrace(self.enter)

    def end(self) -> None:
        if not _MONITORING:
            sys.settrace(None)
        elif _MONITORING.get_tool(_TOOL) == "agentflow":
            _MONITORING.set_events(_TOOL, 0)

    def watch(self, monitoring: Any) -> None:
        events = monitoring.events
        if monitoring.get_tool(_TOOL) is None:
            monitoring.use_tool_id(_TOOL, "agentflow")
        monitoring.register_callback(_TOOL, events.PY_START, self.enter_code)
        monitoring.register_callback(_TOOL, events.LINE, self.step_on)
        monitoring.register_callback(_TOOL, events.PY_RETURN, self.leave_with)
        monitoring.set_events(_TOOL, events.PY_START | events.LINE | events.PY_RETURN)
        monitoring.restart_events()

    def enter_code(self, code: CodeType, _offset: int) -> Any:
        """Note the first line of a function, which is no step of its own where its body stands there."""
        return self.step_on(code, code.co_firstlineno)

    def step_on(self, code: CodeType, line: int) -> Any:
        place = self.place(code.co_filename)
        if place is not None:
            self.seen.add((place, line))
        return _DISABLE

    def leave_with(self, code: CodeType, _offset: int, value: object) -> Any:
        place = self.place(code.co_filename)
        if place is None:
            return _DISABLE
        if self.is_typed:
            frame = sys._getframe(1)  # noqa: SLF001  # the only way to the values of what returns
            self.look(place, code, frame.f_locals, value)
        return None if self.calls.get(code, 0) < _MOST_CALLS else _DISABLE

    def enter(self, frame: FrameType, _event: str, _: object) -> Any:
        place = self.place(frame.f_code.co_filename)
        if place is None:
            return None
        self.seen.add((place, frame.f_lineno))

        def step(inner: FrameType, event: str, value: object) -> Any:
            if event == "line":
                self.seen.add((place, inner.f_lineno))
            elif event == "return" and self.is_typed and self.calls.get(inner.f_code, 0) < _MOST_CALLS:
                self.look(place, inner.f_code, inner.f_locals, value)
            return step

        return step

    def look(self, place: str, code: CodeType, values: dict[str, Any], result: object) -> None:
        """Keep the types of a function's values as it ends."""
        self.calls[code] = self.calls.get(code, 0) + 1
        found = self.types.setdefault(f"{place}:{code.co_firstlineno}", {})
        for name, value in (*list(values.items()), ("return", result)):
            found.setdefault(name, set()).add(type(value).__name__)
            if type(value) in (list, tuple, set, frozenset, dict) and value:
                found.setdefault(f"{name}[]", set()).add(type(next(iter(value))).__name__)

    def report(self) -> dict[str, Any]:
        # no file has the line 0 in which a module begins, and some code has no line at all
        lines = {test: sorted(line for line in lines if line[1]) for test, lines in self.lines.items()}
        types = {
            function: {name: sorted(kinds)[:_SHOWN] for name, kinds in values.items()}
            for function, values in self.types.items()
        }
        return {"lines": lines, "types": types}


class NoTracer:
    """Sees nothing, and takes no time."""

    def __init__(self) -> None:
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.types: dict[str, dict[str, set[str]]] = {}

    def begin(self, test: str) -> None:
        pass

    def end(self) -> None:
        pass

    def report(self) -> dict[str, Any]:
        return {"lines": {"": []}, "types": {}}
