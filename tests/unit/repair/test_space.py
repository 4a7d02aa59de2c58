"""The edits that are proposed: what each kind mends, in which order, and that nothing else changes."""

import ast
import cProfile
from pathlib import Path

import pytest

from agentflow.repair.candidates import (
    MOST_CANDIDATES,
    MOST_RIVALS,
    RIVAL_REACH,
    Candidate,
    list_candidates,
    list_rivals,
)
from agentflow.repair.clues import EditPlace
from agentflow.repair.clues import TestTrace as Trace
from agentflow.repair.sources import Sources, apply_mutation

TESTS = 'from core import *\n\n\ndef test_it():\n    assert run("north-east", 7) == "Nord"\n'
BANK = """class Bank:
    def __init__(self):
        self.total = 0
        self.log = []
        self.open = True

    def pay(self, amount, name):
        {}
"""


def propose(folder: Path, text: str, **types: tuple[str, ...]) -> tuple[Candidate, ...]:
    """Return the edits of a file all of whose lines are suspicious alike."""
    (folder / "core.py").write_bytes(text.encode())
    (folder / "test_core.py").write_text(TESTS)
    lines = range(1, text.count("\n") + 1)
    seen = Trace(
        outcomes={"test_core.py::test_it": "failed"},
        lines={},
        frames={},
        files=("test_core.py",),
        seconds=0.1,
        types={
            f"core.py:{line}": types
            for line, words in enumerate(text.splitlines(), 1)
            if "def " in words and types
        },
    )
    places = tuple(EditPlace(path="core.py", line=line, score=1.0, distance=0) for line in lines)
    sources = Sources(root=folder, files=("core.py", "test_core.py"), overlay={})
    return list_candidates(sources, places, seen)


def results(folder: Path, text: str, **types: tuple[str, ...]) -> list[str]:
    (folder / "core.py").write_bytes(text.encode())
    return [apply_mutation(text.encode(), each.mutation).decode() for each in propose(folder, text, **types)]


def function(line: str) -> str:
    return f"def run(a, b, names=()):\n    {line}\n"


MENDS = {
    "elements swapped": ("return b, a", "return a, b"),
    "targets swapped": ("a, b = divmod(b, a)", "b, a = divmod(b, a)"),
    "texts swapped in a sum": ("return str(b) + '-' + str(a)", "return str(a) + '-' + str(b)"),
    "first and third argument": ("return pow(3, b, a)", "return pow(a, b, 3)"),
    "case of a text": ("return a == 'yes'", "return a == 'YES'"),
    "a text of the failing test": ("return 'Nort'", 'return "north-east"'),
    "a letter of a text": ("return 'Nordd'", "return 'Nord'"),
    "a separator": ("return '-'.join(a)", "return ' '.join(a)"),
    "a number of the failing test": ("return a * 3", "return a * 7"),
    "a usual number": ("return a[5]", "return a[0]"),
    "two more": ("return a % 5", "return a % 7"),
    "adding to a name": ("a = b", "a += b"),
    "adding to another name": ("a += names", "b += names"),
    "another operator for a set": ("a &= b", "a -= b"),
    "a method of another kind": ("return a.isupper()", "return a.islower()"),
    "an element less": ("return [a, b, 0]", "return [a, b]"),
    "an argument less": ("return max(a, b, 0)", "return max(a, b)"),
    "a keyword less": ("return sorted(a, reverse=True)", "return sorted(a)"),
    "a keyword of its own name": ("return sorted(a)", "return sorted(a, reverse=b)"),
    "a slice's other end": ("return a[:b]", "return a[b:]"),
    "an expression of the function": ("return a if a < b else a", "return a if a < b else b"),
    "a condition and another": ("if a: return b", "if a and b: return b"),
    "a filter": ("return [each for each in names]", "return [each for each in names if each]"),
    "a filter by what is looked up": (
        "return [[names[each]] for each in a]",
        "return [[names[each]] for each in a if each in names]",
    ),
    "a condition for a fixed result": ("return True", "return a is not None"),
    "an element taken once more": ("b = a.pop()\n    return b", "b = a.pop()\n    a.pop()\n    return b"),
    "a negation of a part": ("return a and b", "return a and not b"),
    "get for an index": ("return a[b]", "return a.get(b, 0)"),
    "counting up": ("a[b] = 1", "a[b] = a.get(b, 0) + 1"),
}


@pytest.mark.parametrize(("wrong", "right"), MENDS.values(), ids=MENDS.keys())
def test_a_line_is_mended(wrong: str, right: str, tmp_path: Path) -> None:
    found = {ast.dump(ast.parse(text)) for text in results(tmp_path, function(wrong)) if is_python(text)}
    assert ast.dump(ast.parse(function(right))) in found


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


TYPED = {
    "abs of a number": ("return a", "return abs(a)", {"a": ("int",)}),
    "sorted of a list": ("return a", "return sorted(a)", {"a": ("list",)}),
    "strip of a text": ("return a", "return a.strip()", {"a": ("str",)}),
    "the larger of two": ("a = b", "a = max(b, a)", {"a": ("int",), "b": ("int",)}),
    "a copy of a dict": ("return a", "return dict(a)", {"a": ("dict",)}),
    "a question for the type of a name": (
        "if a in b: return 0",
        "if not isinstance(b, dict) or a in b: return 0",
        {"a": ("str",), "b": ("dict", "int")},
    ),
}


@pytest.mark.parametrize(("wrong", "right", "types"), TYPED.values(), ids=TYPED.keys())
def test_a_call_around_a_value_is_chosen_by_the_types_seen(
    wrong: str, right: str, types: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    found = results(tmp_path, function(wrong), **types)
    assert function(right) in found
    assert function("return -a") not in found or "int" in types["a"]


STATEMENTS = {
    "a field is reset as the others are": (
        "self.total = 0\n        self.log = []",
        "self.total = 0\n        self.log = []\n        self.open = True",
    ),
    "a flag is turned": ("self.total = 0", "self.total = 0\n        self.open = False"),
    "two statements in the other order": (
        "self.log.append(self.total)\n        self.total += amount",
        "self.total += amount\n        self.log.append(self.total)",
    ),
    "another field is set": ("self.total = amount", "self.open = amount"),
    "an own statement once more": (
        "self.total += amount\n        if name:\n            self.log = []",
        "self.total += amount\n        if name:\n            self.log = []\n            self.total += amount",
    ),
}


@pytest.mark.parametrize(("wrong", "right"), STATEMENTS.values(), ids=STATEMENTS.keys())
def test_statements_are_added_and_moved(wrong: str, right: str, tmp_path: Path) -> None:
    assert BANK.format(right) in results(tmp_path, BANK.format(wrong))


def test_what_is_not_edited_stays_to_the_byte(tmp_path: Path) -> None:
    text = "def run( a,b ):  # why\r\n\tx = ( a-b )   # keep\r\n\treturn  x\r\n"
    for each in propose(tmp_path, text):
        changed = apply_mutation(text.encode(), each.mutation).decode()
        assert changed.startswith("def run( a,b )")
        assert "# keep" in changed or each.mutation.kind in {"extra statement", "statement order"}
        assert changed.count("\n") == changed.count("\r\n")


def test_edits_are_bounded_ordered_and_never_alike(tmp_path: Path) -> None:
    lines = "".join(f"    x{n} = a[{n}] + b * {n} if a > {n} else names[b:{n}]\n" for n in range(20))
    text = f"def run(a, b, names=()):\n{lines}    return x1\n"
    found = propose(tmp_path, text)
    assert len(found) == MOST_CANDIDATES
    assert [each.cost for each in found] == sorted(each.cost for each in found)
    assert len({apply_mutation(text.encode(), each.mutation) for each in found}) == len(found)
    assert found == propose(tmp_path, text)


def test_the_work_grows_with_the_lines_of_a_function_and_not_with_their_square(tmp_path: Path) -> None:
    def count_calls(lines: int) -> int:
        body = "".join(f"    x{n} = a[{n}] + b if a > {n} else names[b:{n}]\n" for n in range(lines))
        profile = cProfile.Profile()
        profile.runcall(propose, tmp_path, f"def run(a, b, names=()):\n{body}    return x1\n")
        return sum(each.callcount for each in profile.getstats())

    assert count_calls(24) < 6 * count_calls(6)


def test_the_same_text_is_never_proposed_twice(tmp_path: Path) -> None:
    text = "def run(a, b):\n    c = a[0]\n    c += b\n    c += b\n    return c + b + b\n"
    found = propose(tmp_path, text, a=("list",), b=("int",), c=("int",))
    made = [apply_mutation(text.encode(), each.mutation) for each in found]
    assert len(made) == len({*made})
    assert text.encode() not in made


def test_an_edit_that_makes_a_case_of_a_tested_value_comes_late(tmp_path: Path) -> None:
    found = propose(tmp_path, "def run(a, b):\n    return b * 2\n", b=("int",))
    special = {each.mutation.text: each.cost for each in found if each.is_special}
    assert special["min(b * 2, 7)"] > next(
        each.cost for each in found if each.mutation.text == "min(b * 2, 1)"
    )
    found = propose(tmp_path, "def run(a, b):\n    return b * 7\n", b=("int",))
    assert not any(each.is_special for each in found if each.mutation.text == "min(b * 7, 7)")


def test_rivals_are_the_likeliest_edits_those_of_the_same_line_first(tmp_path: Path) -> None:
    text = "def run(a, b):\n    c = a * 3\n    return c - b\n"
    found = propose(tmp_path, text)
    first = next(each for each in found if each.mutation.line == 3)
    rivals = list_rivals(first, found[found.index(first) + 1 :])
    assert rivals[0].mutation.line == 3
    assert len(rivals) <= MOST_RIVALS
    assert first not in rivals
    assert max(each.weight for each in rivals) <= first.weight + RIVAL_REACH
    far = [each.weight for each in rivals if each.mutation.line == 2]
    assert far == sorted(far)
    many = [first.replace(distance=number) for number in range(3 * MOST_RIVALS)]
    assert len(list_rivals(first, many, tried=10)) == MOST_RIVALS
    assert len(list_rivals(first, many, tried=4 * MOST_RIVALS)) == 2 * MOST_RIVALS
