import pytest

from agentflow.verdict.same.equivalence import is_same_behaviour
from agentflow.workspace.mixed_tree import ChangedTexts

BEFORE = "def pages(total, size):\n    full = total // size\n    return full + bool(total % size)\n"


def of(*rows: str) -> str:
    return "def f(x):\n" + "".join(f"    {row}\n" for row in rows)


SAME = {
    "a variable": (BEFORE, BEFORE.replace("full", "whole")),
    "an error": tuple(
        of("try:", "    x()", f"except OSError as {e}:", f"    print({e})") for e in ("e", "error")
    ),
    "an item": tuple(of(f"for {each} in x:", f"    print({each})") for each in ("i", "item")),
}
OTHER = {
    "a parameter": (BEFORE, BEFORE.replace("total", "count")),
    "a variable that is a parameter then": (BEFORE, BEFORE.replace("full", "size")),
    "two variables made one": tuple(of("a = x", f"{name} = 2", "return a") for name in "ba"),
    "a global": tuple(f"{name} = 1\n\n\ndef f():\n    return {name}\n" for name in ("full", "whole")),
    "a name that hides a global": tuple(of(f"{name} = x", f"return len({name})") for name in ("y", "len")),
    "a name that is read": tuple(of(f"{name} = x", "print(locals())") for name in "yz"),
    "a name in a format": tuple(of(f"{name} = x", f"return f'{{{name}=}}'") for name in "yz"),
    "a name that an inner function sees": tuple(of(f"{name} = x", f"return lambda: {name}") for name in "yz"),
    "an imported name": tuple(of(f"import {name}", f"return {name}") for name in ("json", "csv")),
    "an attribute": tuple(of(f"x.{name} = 1") for name in "yz"),
    "swapped": tuple(of("a = 1", "b = 2", f"return {name}") for name in "ab"),
}


def tried(before: str, after: str) -> bool:
    return is_same_behaviour([ChangedTexts(path="a.py", before=before, after=after)])


@pytest.mark.parametrize("texts", SAME.values(), ids=SAME)
def test_a_local_name_is_no_behaviour(texts: tuple[str, ...]) -> None:
    assert tried(*texts)


@pytest.mark.parametrize("texts", OTHER.values(), ids=OTHER)
def test_any_other_name_may_be(texts: tuple[str, ...]) -> None:
    assert not tried(*texts)
