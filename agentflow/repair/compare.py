"""Runs several versions of a file on inputs near those of the tests; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer), so it imports nothing but the standard library. The
calls that the tests make of the functions concerned are recorded; their arguments, and others near them, are
given to each version in a process of its own.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import itertools
import os
import re
import resource
import signal
import sys
import time
import zlib
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

MOST_CALLS = 12
LARGEST = 20_000
CALL_SECONDS = 0.2
"""Of processor: what else the machine does says nothing about a version."""
WAIT_SECONDS = 1.0
VERSION_SECONDS = 4.0
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LATE = "? took too long"
_MOST_LATE = 4
"""Calls that take too long before a version counts as one that hangs."""
_LONGEST = 300
_MOST_SHOWN = 2_000
"""Parts of a value of which the text tells."""

Make = Any
"""Makes the positional and the keyword arguments of a call, anew each time."""


class TookTooLong(BaseException):
    """A call took too long."""


def compare_versions(
    order: dict[str, Any], run_tests: Callable[[], Any], inputs: Any, sealed: Any
) -> dict[str, Any]:
    """Return what each version does with each input, and the inputs as text."""
    path, lines = str(Path(order["path"]).resolve()), set(order["functions"])
    calls = record_calls(run_tests, path, lines, inputs.pack)
    if calls is None:
        return {"inputs": [], "outcomes": [[] for _ in order["versions"]]}
    made = list(inputs.list_near_inputs(calls, find_constants(order["versions"][0])))
    outcomes = run_versions(order["path"], order["versions"], made, sealed)
    texts = (show_call(name, *make()) for name, make in made)
    shown = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts]
    return {"inputs": shown, "outcomes": outcomes}


def find_constants(text: str) -> list[Any]:
    tree = ast.parse(text)
    said = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    found = (each for each in ast.walk(tree) if isinstance(each, ast.Constant) and id(each) not in said)
    return list({(type(each.value), each.value): each.value for each in found}.values())


def record_calls(
    run_tests: Callable[[], Any], path: str, lines: set[int], pack: Callable[..., bytes]
) -> dict[str, list[bytes]] | None:
    """Run the tests and return the pickled arguments that each function was called with.

    None where the tests call one of those concerned, and no such call can be made again.
    """
    found: dict[str, dict[bytes, None]] = {}
    called: dict[CodeType, bool] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename != path or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        is_outside = frame.f_back is not None and frame.f_back.f_code.co_filename != path
        if not (code.co_firstlineno in lines or is_outside):
            return
        if is_outside and code.co_firstlineno in lines:
            called.setdefault(code, False)
        name = name_of(frame)
        kept = found.setdefault(name, {})
        if name and len(kept) < MOST_CALLS:
            with contextlib.suppress(Exception):
                raw = pack(*read_arguments(frame))
                if len(raw) < LARGEST:
                    kept[raw] = None
                    called.update({code: True} if code in called else {})

    sys.setprofile(note)
    try:
        run_tests()
    finally:
        sys.setprofile(None)
    if not all(called.values()):
        return None
    return {name: list(kept) for name, kept in found.items() if name}


def name_of(frame: FrameType) -> str:
    """Return the dotted name under which a module gives a function; empty where it gives none."""
    code, module = frame.f_code, sys.modules.get(frame.f_globals.get("__name__", ""))
    owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    kind = owner if isinstance(owner, type) else type(owner)
    for place in (module, *getattr(kind, "__mro__", ())):
        if find_code(vars(place).get(code.co_name) if place is not None else None) is code:
            return code.co_name if place is module else f"{place.__qualname__}.{code.co_name}"
    return ""


def find_code(value: Any) -> CodeType | None:
    inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
    return getattr(inspect.unwrap(inner), "__code__", None)


def read_arguments(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    code, values = frame.f_code, frame.f_locals
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    given = [values[name] for name in names[:count]]
    named = {name: values[name] for name in names[count : count + only]}
    at = count + only
    if code.co_flags & inspect.CO_VARARGS:
        given += values[names[at]]
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named.update(values[names[at]])
    return given, named


def run_versions(path: str, texts: list[str], inputs: list[tuple[str, Make]], sealed: Any) -> list[list[str]]:
    found, count = [], os.cpu_count() or 1
    for start in range(0, len(texts), count):
        with contextlib.ExitStack() as stack:
            works = [partial(answer_all, path, text, inputs) for text in texts[start : start + count]]
            children = [stack.enter_context(sealed.open_child(work)) for work in works]
            for child in children:
                lines = sealed.Lines(child.reader, 3 * VERSION_SECONDS)
                found.append([told["answer"] for told in lines])
    return found


def answer_all(path: str, text: str, inputs: list[tuple[str, Make]], tell: Callable[[Any], None]) -> None:
    signal.signal(signal.SIGPROF, stop_call)
    wanted = str(Path(path).resolve())
    module = next(each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == wanted)
    exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102  # the version is what is tried
    deadline, late = time.process_time() + VERSION_SECONDS, 0
    for name, make in inputs:
        if time.process_time() > deadline:
            return
        answer = _LATE
        if late < _MOST_LATE:  # else it hangs, and waiting for more tells nothing new
            try:
                answer = answer_one(module, name, make)
            except TookTooLong:  # the other of both times was over while the first was dealt with
                end_times()
            late += answer == _LATE
        tell({"answer": answer})


def end_times() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)


def stop_call(*_: object) -> None:
    raise TookTooLong


def stop_wait(before: int, *_: object) -> None:
    """Stop a call that waits; one that only got no processor goes on."""
    if count_waits() > before:
        raise TookTooLong
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)


def count_waits() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def answer_one(module: ModuleType, name: str, make: Make) -> str:
    """Return the outcome of a call: its result and its arguments afterwards, or its error.

    An error begins with `! ` where the code raises it, and with `? ` where it is an accident.
    """
    signal.signal(signal.SIGALRM, partial(stop_wait, count_waits()))
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS)
    try:
        given, named = make()
        called: Any = module
        for part in name.split("."):
            called = (
                inspect.getattr_static(called, part) if isinstance(called, type) else getattr(called, part)
            )
        called = getattr(called, "fget", None) or getattr(called, "__func__", called)
        result = called(*given, **named)
        if inspect.isgenerator(result):
            result = list(itertools.islice(result, 50))
        whole = f"{ValueText(is_whole=True).show(result)} {ValueText(is_whole=True).show([given, named])}"
        after = show_call("", given, named)
        return f"{ValueText().show(result)[:_LONGEST]} | {after[:_LONGEST]} | {zlib.crc32(whole.encode())}"
    except TookTooLong:
        return _LATE
    except BaseException as error:  # noqa: BLE001  # whatever a version raises is compared
        return f"{'!' if is_raised(error) else '?'} {type(error).__name__}"
    finally:
        end_times()


def is_raised(error: BaseException) -> bool:
    """Say whether a statement of the project raised an error, so that somebody means it."""
    if not isinstance(error, Exception):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    is_ours = code.co_filename.startswith(str(Path.cwd()) + os.sep)
    return is_ours and code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


class ValueText:
    """Writes values as a person would, the same in every process, however deep they are nested."""

    def __init__(self, *, is_whole: bool = False) -> None:
        self.is_whole = is_whole
        """Also what the text of an object leaves out."""
        self.left = _MOST_SHOWN
        self.above: set[int] = set()

    def show(self, value: Any) -> str:
        """Return the text of a value; what contains itself, or too much, ends with dots."""
        self.left -= 1
        if self.left < 0 or id(value) in self.above:
            return "…"
        self.above.add(id(value))
        try:
            return self.show_parts(value)
        finally:
            self.above.discard(id(value))

    def show_parts(self, value: Any) -> str:
        kind = type(value)
        if kind is float and value.is_integer() and abs(value) < 2**53:
            return repr(int(value))  # 2.0 == 2, for a test as well
        if isinstance(value, (set, frozenset)):
            return wrap_name(kind, set, f"{{{', '.join(sorted(map(self.show, value)))}}}" if value else "")
        if isinstance(value, tuple):
            return wrap_name(kind, tuple, f"({', '.join(map(self.show, value))}{',' * (len(value) == 1)})")
        if isinstance(value, list):
            return wrap_name(kind, list, f"[{', '.join(map(self.show, value))}]")
        if isinstance(value, dict):
            items = [f"{self.show(key)}: {self.show(value[key])}" for key in value]
            return wrap_name(kind, dict, f"{{{', '.join(items)}}}")
        if not has_fields(value):
            return _ADDRESS.sub("", repr(value))
        if has_own_text(value) and not self.is_whole:
            return _ADDRESS.sub("", repr(value))
        own = _ADDRESS.sub("", repr(value)) if has_own_text(value) else ""
        parts = [f"{key}={self.show(held)}" for key, held in sorted(vars(value).items())]
        return f"{own}{kind.__name__}({', '.join(parts)})"


def wrap_name(kind: type, plain: type, text: str) -> str:
    return text if kind is plain and text else f"{kind.__name__}({text})"


def has_fields(value: Any) -> bool:
    is_plain = isinstance(value, (type, ModuleType)) or callable(value)
    return not is_plain and bool(getattr(value, "__dict__", None))


def has_own_text(value: Any) -> bool:
    return getattr(type(value), "__repr__", None) is not object.__repr__


def show_call(name: str, given: list[Any], named: dict[str, Any]) -> str:
    parts = [ValueText().show(each) for each in given]
    return (
        f"{name}({', '.join([*parts, *(f'{key}={ValueText().show(held)}' for key, held in named.items())])})"
    )
