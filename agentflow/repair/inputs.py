"""Makes inputs near those that tests give to functions; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer), so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
import random
import re
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_INPUTS = 160
MOST_VALUES = 14
MOST_OF_CODE = 12
LONGEST = 60
MOST_WORDS = 5
_NUMBER, _SIGN = re.compile(r"\d+(?:\.\d+)?"), re.compile(r"[^\w\s]")


class NamedValues:
    """The values that code and recorded inputs name: numbers near its decisions, and signs of texts."""

    def __init__(self, constants: list[Any], recorded: list[Any]) -> None:
        limits = [each for each in constants if type(each) is int and each > 1]
        self.numbers = [each + step for each in dict.fromkeys(limits) for step in (0, -1, 1)][:MOST_OF_CODE]
        texts = [each for each in (*recorded, *constants) if isinstance(each, str) and len(each) < LONGEST]
        found = dict.fromkeys(sign for text in texts for sign in _SIGN.findall(text))
        self.signs = list(found)[:MOST_OF_CODE]


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


def list_near_inputs(
    calls: dict[str, list[bytes]], constants: list[Any]
) -> Iterator[tuple[str, Callable[[], tuple[list[Any], dict[str, Any]]]]]:
    """Yield each function with what makes its arguments: recorded ones, then others near them."""
    chance = random.Random(0)  # noqa: S311  # no secret
    pool = NamedValues(
        constants, [part for raws in calls.values() for raw in raws for part in list_parts(raw)]
    )
    for name, raws in calls.items():
        seen = dict.fromkeys(raws)
        made = dict.fromkeys(raw for base in raws for raw in list_variants(base, raws, pool, chance))
        is_usual = find_usual(raws)
        fresh = [raw for raw in made if raw not in seen and is_usual(raw)]
        chance.shuffle(fresh)
        yield from ((name, partial(unpack, raw)) for raw in [*raws, *fresh[:MOST_INPUTS]])


def find_usual(raws: list[bytes]) -> Callable[[bytes], bool]:
    """Return what tells whether arguments keep to what all recorded ones do: no negatives, ordered parts."""
    recorded = [part for raw in raws for part in list_parts(raw)]
    has_negatives = any(map(is_negative, recorded))
    ordered: list[Any] = []
    for kind in (list, tuple):
        parts = [part for part in recorded if is_long(part, kind)]
        ordered += [kind] if len(parts) > 1 and all(map(is_in_order, parts)) else []

    def is_usual(raw: bytes) -> bool:
        parts = list(list_parts(raw))
        if not has_negatives and any(map(is_negative, parts)):
            return False
        return all(is_in_order(part) for part in parts for kind in ordered if is_long(part, kind))

    return is_usual


def list_parts(raw: bytes) -> Iterator[Any]:
    given, named = unpack(raw)
    for value in (*given, *named.values()):
        yield from flatten(value)


def flatten(value: Any, depth: int = 6) -> Iterator[Any]:
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


def is_long(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and len(value) > 1


def is_in_order(values: list[Any]) -> bool:
    try:
        return all(values[at] <= values[at + 1] for at in range(len(values) - 1))
    except Exception:  # noqa: BLE001  # values of the code under test
        return False


def list_variants(
    base: bytes, raws: list[bytes], pool: NamedValues, chance: random.Random
) -> Iterator[bytes]:
    given, named = unpack(base)
    others = [unpack(raw)[0] for raw in raws]
    choices = [
        list_near(value, pool) + [each[at] for each in others if len(each) > at]
        for at, value in enumerate(given)
    ]
    for at, values in enumerate(choices):
        for value in values[: 3 * MOST_VALUES]:
            yield from try_to_pack([*given[:at], value, *given[at + 1 :]], named)
    for key, value in named.items():
        for other in list_near(value, pool):
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


def list_near(value: Any, pool: NamedValues) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        more = [value + 1, value - 1, 0, 1, value + 2, 2, 3, value * 2, value // 2, -value, 7, 10]
        return list(dict.fromkeys([*more, *pool.numbers]))
    if isinstance(value, float):
        return [value / 2, value * 2, 0.0, 1.0, value + 0.25, value - 0.25, 0.1, 3.0]
    if isinstance(value, str):
        return list_near_texts(value, pool)
    if isinstance(value, (list, tuple)):
        return list_near_lists(value, pool)
    if isinstance(value, (set, frozenset)):
        return [type(value)(each) for each in list_near_lists(sorted(value, key=repr), pool)]
    if isinstance(value, dict):
        return list_near_dicts(value, pool)
    return list_near_objects(value, pool)


def list_near_texts(value: str, pool: NamedValues) -> list[str]:
    more = [value[:-1], value[1:], value + value[:1], value + "x", "", value.upper(), value.lower()]
    more += [f" {value} ", value[::-1], value * 2, value.replace(" ", "  "), f"{value} a"]
    more += list_near_words(value)
    more += [_NUMBER.sub(other, value, count=1) for other in ("2.5", "7", "12")]
    signs = dict.fromkeys(_SIGN.findall(value))
    for one, other in itertools.islice(itertools.combinations(signs, 2), 3):
        more.append(value.translate({ord(one): other, ord(other): one}))
        more.append(value.replace(one, other, 1))
    more += [value.replace(one, other, 1) for one in signs for other in pool.signs if other != one]
    return [each for each in dict.fromkeys(more) if each != value]


def list_near_words(value: str) -> list[str]:
    words = value.split()
    if not 1 < len(words) < LONGEST:
        return []
    made = [words[:at] + words[at + 1 :] for at in range(min(len(words), MOST_WORDS))]
    made += [words[1:] + words[:1], words[::-1], words[:1] + words]
    return [" ".join(each) for each in made]


def list_near_lists(value: Any, pool: NamedValues) -> list[Any]:
    """Return lists or tuples with less, more and other elements, and in another order.

    A tuple is rather a record: other elements come first.
    """
    if hasattr(value, "_fields") or type(value) not in (list, tuple, set, frozenset):
        return []
    items = list(value)
    made = [items[:-1], items[1:], items[::-1], items + items[:1], [], items[:1], items + items]
    with contextlib.suppress(TypeError):
        made.append(sorted(items))
    others = [list_near(item, pool) for item in items[:4]]
    changed = [
        [*items[:at], found[turn], *items[at + 1 :]]
        for turn in range(4)
        for at, found in enumerate(others)
        if turn < len(found)
    ]
    made = changed + made if type(value) is tuple else made + changed
    return [type(value)(each) for each in made]


def list_near_dicts(value: dict[Any, Any], pool: NamedValues) -> list[Any]:
    keys = list(value)
    made: list[Any] = [{key: value[key] for key in keys if key != gone} for gone in keys[:4]]
    made.append(dict(reversed(list(value.items()))))
    for key in keys[:4]:
        made += [{**value, key: other} for other in list_near(value[key], pool)[:4]]
    return [*made, {}] if type(value) is dict else []


def list_near_objects(value: Any, pool: NamedValues) -> list[Any]:
    made = []
    for name, held in list(getattr(value, "__dict__", {}).items())[:6]:
        for other in list_near(held, pool)[:10] if not hasattr(held, "__dict__") else []:
            with contextlib.suppress(Exception):
                copy = unpack(pack([value], {}))[0][0]
                setattr(copy, name, other)
                made.append(copy)
    return made
