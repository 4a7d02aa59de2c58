"""Runs several versions of a file on inputs near those of the tests; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer), so it imports nothing but the standard library. The
calls that the tests make of the functions concerned are recorded; their arguments, and others near them, are
given to each version in a process of its own.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import json
import os
import pickle
import random
import re
import select
import signal
import sys
import time
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType, ModuleType

MOST_CALLS = 12
MOST_INPUTS = 160
MOST_VALUES = 14
LARGEST = 20_000
CALL_SECONDS = 0.2
VERSION_SECONDS = 4.0
_TICK = 0.05
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SHOWN = 120


class TookTooLong(BaseException):
    """A call took too long."""


class Keeper(pickle.Pickler):
    """Packs arguments; what only exists in a running test, such as a function in it, is kept as it is."""

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, (FunctionType, type)) or "<" not in value.__qualname__:
            return None
        kept[id(value)] = value
        return id(value)


class Finder(pickle.Unpickler):
    """Unpacks arguments, in this process or a fork of it."""

    def persistent_load(self, number: int) -> Any:
        return kept[number]


kept: dict[int, Any] = {}
"""What is kept as it is."""


def pack(given: list[Any], named: dict[str, Any]) -> bytes:
    """Return arguments as bytes. Raises whatever says that they cannot be had again."""
    buffer = io.BytesIO()
    Keeper(buffer).dump((given, named))
    return buffer.getvalue()


def unpack(raw: bytes) -> tuple[list[Any], dict[str, Any]]:
    found: tuple[list[Any], dict[str, Any]] = Finder(io.BytesIO(raw)).load()
    return found


def compare_versions(spec: dict[str, Any], observe: Callable[..., Any]) -> dict[str, Any]:
    """Return what each version does with each input, and the inputs as text."""
    order = spec["compare"]
    calls = record_calls(spec, observe, str(Path(order["path"]).resolve()), set(order["functions"]))
    if calls is None:
        return {"inputs": [], "outcomes": [[] for _ in order["versions"]]}
    inputs = list(near_inputs(calls))
    outcomes = [run_version(order["path"], text, inputs) for text in order["versions"]]
    return {"inputs": [show_input(name, raw) for name, raw in inputs], "outcomes": outcomes}


def record_calls(
    spec: dict[str, Any], observe: Callable[..., Any], path: str, lines: set[int]
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
        is_outside = is_called_from_outside(frame, path)
        if not (code.co_firstlineno in lines or is_outside):
            return
        if is_outside and code.co_firstlineno in lines:
            called.setdefault(code, False)
        name = name_of(frame)
        kept = found.setdefault(name, {})
        if name and len(kept) < MOST_CALLS:
            with contextlib.suppress(Exception):
                raw = pack(*arguments_of(frame))
                if len(raw) < LARGEST:
                    kept[raw] = None
                    called.update({code: True} if code in called else {})

    sys.setprofile(note)
    try:
        observe(spec, False)
    finally:
        sys.setprofile(None)
    if not all(called.values()):
        return None
    return {name: list(kept) for name, kept in found.items() if name}


def is_called_from_outside(frame: FrameType, path: str) -> bool:
    return frame.f_back is not None and frame.f_back.f_code.co_filename != path


def name_of(frame: FrameType) -> str:
    """Return the dotted name under which a module gives a function; empty where it gives none."""
    code, module = frame.f_code, sys.modules.get(frame.f_globals.get("__name__", ""))
    owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    kind = owner if isinstance(owner, type) else type(owner)
    for place in (module, *getattr(kind, "__mro__", ())):
        if code_of(vars(place).get(code.co_name) if place is not None else None) is code:
            return code.co_name if place is module else f"{place.__qualname__}.{code.co_name}"
    return ""


def code_of(value: Any) -> CodeType | None:
    inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
    return getattr(inspect.unwrap(inner), "__code__", None)


def arguments_of(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of a call that begins."""
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


def near_inputs(calls: dict[str, list[bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the recorded arguments of each function, then others near them, always the same ones."""
    chance = random.Random(0)  # noqa: S311  # no secret
    for name, raws in calls.items():
        seen = dict.fromkeys(raws)
        made = dict.fromkeys(raw for base in raws for raw in variants_of(base, raws, chance))
        is_usual = find_usual(raws)
        fresh = [raw for raw in made if raw not in seen and is_usual(raw)]
        chance.shuffle(fresh)
        yield from ((name, raw) for raw in [*raws, *fresh[:MOST_INPUTS]])


def find_usual(raws: list[bytes]) -> Callable[[bytes], bool]:
    """Return what tells whether arguments keep to what all recorded ones do: no negatives, sorted lists."""
    recorded = [part for raw in raws for part in parts_of(raw)]
    lists = [part for part in recorded if is_long(part)]
    is_sorted = len(lists) > 1 and all(map(is_in_order, lists))
    has_negatives = any(map(is_negative, recorded))

    def is_usual(raw: bytes) -> bool:
        parts = list(parts_of(raw))
        if not has_negatives and any(map(is_negative, parts)):
            return False
        return not is_sorted or all(is_in_order(part) for part in parts if is_long(part))

    return is_usual


def parts_of(raw: bytes) -> Iterator[Any]:
    """Yield each argument and everything in it."""
    given, named = unpack(raw)
    for value in (*given, *named.values()):
        yield from flatten(value)


def flatten(value: Any, depth: int = 6) -> Iterator[Any]:
    """Yield a value and everything in it."""
    yield value
    inner: Any = ()
    if isinstance(value, dict):
        inner = (*value, *value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = value
    elif hasattr(value, "__dict__") and not callable(value):
        inner = vars(value).values()
    for each in inner if depth else ():
        yield from flatten(each, depth - 1)


def is_negative(value: Any) -> bool:
    return isinstance(value, (int, float)) and value < 0


def is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1


def is_in_order(values: list[Any]) -> bool:
    try:
        return all(values[at] <= values[at + 1] for at in range(len(values) - 1))
    except Exception:  # noqa: BLE001  # values of the code under test
        return False


def variants_of(base: bytes, raws: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """Yield arguments that differ from recorded ones in one value, then some that differ in two."""
    given, named = unpack(base)
    others = [unpack(raw)[0] for raw in raws]
    choices = [
        near(value) + [each[at] for each in others if len(each) > at] for at, value in enumerate(given)
    ]
    for at, values in enumerate(choices):
        for value in values[: 2 * MOST_VALUES]:
            yield from try_to_pack([*given[:at], value, *given[at + 1 :]], named)
    for key, value in named.items():
        for other in near(value):
            yield from try_to_pack(given, {**named, key: other})
    pairs = list(itertools.combinations(range(len(given)), 2))
    for first, second in pairs * (40 // max(1, len(pairs))):
        both = list(given)
        for at in (first, second):
            both[at] = chance.choice(choices[at] or [given[at]])
        yield from try_to_pack(both, named)


def try_to_pack(given: list[Any], named: dict[str, Any]) -> Iterator[bytes]:
    with contextlib.suppress(Exception):
        yield pack(given, named)


def near(value: Any) -> list[Any]:
    """Return other values of the same type, the nearest first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, 1, value + 2, 2, 3, value * 2, value // 2, -value, 7, 10]
    if isinstance(value, float):
        return [value / 2, value * 2, 0.0, 1.0, value + 0.25, value - 0.25, 0.1, 3.0]
    if isinstance(value, str):
        return near_texts(value)
    if isinstance(value, (list, tuple)):
        return near_lists(value)
    if isinstance(value, (set, frozenset)):
        return [type(value)(each) for each in near_lists(sorted(value, key=repr))]
    if isinstance(value, dict):
        return near_dicts(value)
    return near_objects(value)


def near_texts(value: str) -> list[str]:
    more = [value[:-1], value[1:], value + value[:1], value + "x", "", value.upper(), value.lower()]
    return [*more, f" {value} ", value[::-1], value * 2, value.replace(" ", "  "), f"{value} a"]


def near_lists(value: Any) -> list[Any]:
    """Return lists or tuples with less, more and other elements, and in another order."""
    items = list(value)
    made = [items[:-1], items[1:], items[::-1], items + items[:1], [], items[:1], items + items]
    with contextlib.suppress(TypeError):
        made.append(sorted(items))
    for at, item in itertools.islice(enumerate(items), 4):
        made += [[*items[:at], other, *items[at + 1 :]] for other in near(item)[:4]]
    if not hasattr(value, "_fields") and type(value) in (list, tuple):
        return [type(value)(each) for each in made]
    return []


def near_dicts(value: dict[Any, Any]) -> list[Any]:
    keys = list(value)
    made: list[Any] = [{key: value[key] for key in keys if key != gone} for gone in keys[:4]]
    made.append(dict(reversed(list(value.items()))))
    for key in keys[:4]:
        made += [{**value, key: other} for other in near(value[key])[:4]]
    return [*made, {}] if type(value) is dict else []


def near_objects(value: Any) -> list[Any]:
    """Return copies of an object in each of which one attribute has another value."""
    made = []
    for name, held in list(getattr(value, "__dict__", {}).items())[:6]:
        for other in near(held)[:5] if not hasattr(held, "__dict__") else []:
            with contextlib.suppress(Exception):
                copy = unpack(pack([value], {}))[0][0]
                setattr(copy, name, other)
                made.append(copy)
    return made


def run_version(path: str, text: str, inputs: list[tuple[str, bytes]]) -> list[str]:
    """Return what a version does with each input, from a process of its own; fewer if its time is over."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            os.close(reader)
            sink = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(sink, descriptor)
            answer_all(path, text, inputs, writer)
        finally:
            os._exit(0)
    os.close(writer)
    said, is_over = b"", False
    until = time.monotonic() + 3 * VERSION_SECONDS
    os.set_blocking(reader, False)
    while not is_over and time.monotonic() < until:  # what it started may keep the pipe open
        is_over = os.waitpid(child, os.WNOHANG)[0] == child
        select.select([reader], [], [], 0 if is_over else _TICK)
        said += read_pending(reader)
    os.close(reader)
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    if not is_over:
        os.waitpid(child, 0)
    lines = said.decode("utf-8", "replace").splitlines()
    return [json.loads(line) for line in lines if line.endswith('"')]


def read_pending(reader: int) -> bytes:
    """Return what a pipe holds now."""
    said = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reader, 1 << 16):
            said += part
    return said


def answer_all(path: str, text: str, inputs: list[tuple[str, bytes]], writer: int) -> None:
    """Put a version in place of its module and write what it does, one line an input."""
    signal.signal(signal.SIGALRM, stop_call)
    signal.alarm(int(VERSION_SECONDS) * 3)
    module = find_module(path)
    exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102  # the version is what is tried
    deadline = time.monotonic() + VERSION_SECONDS
    for name, raw in inputs:
        if time.monotonic() > deadline:
            return
        os.write(writer, json.dumps(answer_one(module, name, raw)).encode() + b"\n")


def find_module(path: str) -> ModuleType:
    wanted = str(Path(path).resolve())
    return next(each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == wanted)


def stop_call(*_: object) -> None:
    raise TookTooLong


def answer_one(module: ModuleType, name: str, raw: bytes) -> str:
    """Return what a call comes to: its result, what it makes of its arguments, or the type of its error."""
    signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
    try:
        given, named = unpack(raw)
        called: Any = module
        for part in name.split("."):
            called = (
                inspect.getattr_static(called, part) if isinstance(called, type) else getattr(called, part)
            )
        called = getattr(called, "fget", None) or getattr(called, "__func__", called)
        result = called(*given, **named)
        if inspect.isgenerator(result):
            result = list(itertools.islice(result, 50))
        return f"{show_value(result)} | {show_value(given)} {show_value(named)}"[:2000]
    except TookTooLong:
        return "! took too long"
    except BaseException as error:  # noqa: BLE001  # whatever a version raises is compared
        return f"! {type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def show_value(value: Any, depth: int = 4) -> str:
    """Return a value as text that is the same in every process."""
    if depth == 0:
        return "…"
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return repr(int(value))  # 2.0 == 2, for a test as well
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(show_value(each, depth - 1) for each in value))}}}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(show_value(each, depth - 1) for each in value)})"
    if isinstance(value, dict):
        items = [f"{show_value(key, 2)}: {show_value(value[key], depth - 1)}" for key in value]
        return f"dict({', '.join(items)})"
    if hasattr(value, "__dict__") and has_no_text(value):
        return f"{type(value).__name__}({show_value(vars(value), depth - 1)})"
    return _ADDRESS.sub("", repr(value))


def show_input(name: str, raw: bytes) -> str:
    """Return a call as a person would write it."""
    given, named = unpack(raw)
    parts = [show_plain(each) for each in given] + [
        f"{key}={show_plain(value)}" for key, value in named.items()
    ]
    text = f"{name}({', '.join(parts)})"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def show_plain(value: Any) -> str:
    return show_value(value) if has_no_text(value) else _ADDRESS.sub("", repr(value))


def has_no_text(value: Any) -> bool:
    """Say whether a value has no text of its own."""
    return getattr(type(value), "__repr__", None) == getattr(object, "__repr__", None)
