"""Among edits that all make the tests pass, which one is made, and when that is said to be a guess."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import agentflow.repair.compare
import agentflow.sandbox.sealed
from agentflow.repair.candidates import Candidate
from agentflow.repair.choice import RepairChoice, VersionComparison, choose_repair, rank_survivors
from agentflow.repair.sources import Mutation
from tests.support.boxes import boxed
from tests.unit.repair.bugs import module_tests
from tests.unit.repair.stage import UNITTEST, Stage

RUN = """import json, sys
sys.path[:0] = [{folder!r}, {root!r}, {sandbox!r}]
import compare
import core
import inputs
import sealed

def run_tests():
    core.run(4, {pairs}, {words!r})
    core.Box(2).grow(by=3)
    core.twice(lambda value: value + 1, 3)
    core.Box(2).is_big
    list(core.count(2))

print(json.dumps(compare.compare_versions({order!r}, run_tests, inputs, sealed)))
"""
CORE = """class Box:
    def __init__(self, size):
        self.size = size

    def grow(self, by):
        self.size += by
        return self

    @property
    def is_big(self):
        return self.size > 2


def run(a, b, c):
    return a + len(b)


def count(top):
    yield from range(top)


def twice(change, start):
    return change(change(start))
"""


def an_edit(kind: str, text: str, cost: int = 1, *, is_special: bool = False) -> Candidate:
    edit = Mutation(start=0, end=1, text=text, line=1, kind=kind, weight=cost, note=text)
    return Candidate(path="a.py", mutation=edit, cost=cost, distance=0, is_special=is_special)


OPERATOR, CONSTANT = an_edit("operator", "+"), an_edit("constant", "2")
GUARD = an_edit("missing guard", "if rate == 7: return 9", cost=0, is_special=True)
NAME = an_edit("wrong variable", "b", cost=3)
WRAP, FAR_WRAP = an_edit("missing call", "abs(b)", cost=2), an_edit("missing call", "len(b)", cost=3)


def compared(*outcomes: tuple[str, ...]) -> VersionComparison:
    return VersionComparison(
        inputs=tuple(f"run({number})" for number in range(max(map(len, outcomes)))), outcomes=outcomes
    )


@pytest.mark.parametrize(
    ("edits", "outcomes", "winner", "rivals"),
    [
        ((CONSTANT, OPERATOR), (("1", "2"), ("1", "3")), OPERATOR, (CONSTANT,)),
        ((CONSTANT, OPERATOR), (("1", "2"), ("1", "2")), OPERATOR, ()),
        ((GUARD, NAME), (("1", "2"), ("1", "3")), NAME, ()),
        ((OPERATOR, NAME), (("1", "2"), ("1", "3")), OPERATOR, ()),
        ((OPERATOR, WRAP), (("1", "2"), ("1", "3")), OPERATOR, (WRAP,)),
        ((OPERATOR, FAR_WRAP), (("1", "2"), ("1", "3")), OPERATOR, ()),
        ((WRAP, NAME), (("1", "2"), ("1", "3")), WRAP, (NAME,)),
        ((FAR_WRAP, an_edit("constant", "7", cost=3)), (("1",), ("3",)), FAR_WRAP, None),
        ((OPERATOR, an_edit("operator", "*"), an_edit("logic", "or")), (("1",), ("2",), ("2",)), None, ()),
        ((OPERATOR, an_edit("operator", "/")), (("? TypeError", "2"), ("1", "2")), None, ()),
        ((OPERATOR, CONSTANT), ((), ()), OPERATOR, (CONSTANT,)),
        ((OPERATOR, CONSTANT), ((), ("1",)), OPERATOR, (CONSTANT,)),
        ((WRAP, NAME), (("? KeyError", "1"), ("2", "1")), None, ()),
        ((WRAP, NAME), (("? KeyError", "1"), ("2", "? KeyError")), WRAP, (NAME,)),
        ((WRAP, NAME), (("! ValueError", "1"), ("2", "1")), WRAP, (NAME,)),
        ((OPERATOR, GUARD), (("? IndexError", "1"), ("2", "1")), OPERATOR, ()),
        ((OPERATOR, CONSTANT), (("1", "2"), ()), OPERATOR, (CONSTANT,)),
        ((OPERATOR, CONSTANT), (("1", "2"), ("1", "? ValueError")), OPERATOR, ()),
        ((OPERATOR, CONSTANT), (("1", "2"), ("1", "! ValueError")), OPERATOR, (CONSTANT,)),
        ((OPERATOR, CONSTANT), (("1", "? KeyError"), ("1", "? IndexError")), OPERATOR, ()),
    ],
)
def test_the_choice(
    edits: tuple[Candidate, ...],
    outcomes: tuple[tuple[str, ...], ...],
    winner: Candidate | None,
    rivals: tuple[Candidate, ...] | None,
) -> None:
    choice = rank_survivors(edits, compared(*outcomes))
    if winner is None:
        assert choice.winner in edits[1:]
        return
    assert choice.winner == winner
    assert choice.rivals == (edits[1:] if rivals is None else rivals)
    assert len(choice.differing) == len(choice.rivals)
    assert all(" gives " in each or "no input" in each for each in choice.differing)


def test_the_edit_and_its_rivals_alone_are_confirmed_and_one_that_fails_then_is_left_out() -> None:
    asked = list[Candidate]()

    def choose(edits: Sequence[Candidate], failing: Sequence[Candidate]) -> RepairChoice | None:
        def confirm(those: Sequence[Candidate]) -> list[Candidate]:
            asked.extend(those)
            return [each for each in those if each not in failing]

        outcomes = {CONSTANT: ("1", "2"), OPERATOR: ("1", "3"), WRAP: ("1", "2")}
        return choose_repair(edits, lambda those: compared(*(outcomes[each] for each in those)), confirm)

    found = choose((CONSTANT, OPERATOR, WRAP), [OPERATOR])
    assert found is not None
    assert (found.winner, found.rivals, asked) == (CONSTANT, (), [OPERATOR, CONSTANT, WRAP])
    asked.clear()
    assert choose((CONSTANT, WRAP), []) == RepairChoice(winner=CONSTANT)
    assert asked == [CONSTANT]
    assert choose((CONSTANT, OPERATOR), [CONSTANT, OPERATOR]) is None


def test_an_edit_that_only_fits_the_tested_value_is_said_to_be_a_guess() -> None:
    choice = rank_survivors((GUARD,), VersionComparison())
    assert choice.winner == GUARD
    assert choice.differing == ("a guess: only the failing tests name that value",)
    assert rank_survivors((OPERATOR,), VersionComparison()).differing == ()


def test_what_tells_two_edits_apart_is_short_and_shows_the_difference() -> None:
    long = "x" * 100
    seen = VersionComparison(
        inputs=("run([1, 2])", "run([1])", "run(2)"),
        outcomes=(("1", "1", "5"), ("2", f"{long}1", "5")),
    )
    choice = rank_survivors((OPERATOR, CONSTANT), seen)
    assert choice.differing == (f"for run([1]) this one gives 1, that one {'x' * 60}…",)
    seen = VersionComparison(inputs=("run(1)",), outcomes=((f"{long}1",), (f"{long}2",)))
    choice = rank_survivors((OPERATOR, CONSTANT), seen)
    assert choice.differing == (f"for run(1) this one gives …{'x' * 30}1, that one …{'x' * 30}2",)
    seen = VersionComparison(inputs=("add([1])",), outcomes=(("None | ([1]) | 7",), ("None | ([1, 2]) | 8",)))
    choice = rank_survivors((OPERATOR, CONSTANT), seen)
    assert choice.differing == ("for add([1]) both give None; this one leaves ([1]), that one ([1, 2])",)


def run_compare(
    folder: Path, *versions: str, words: str = "ab", pairs: str = "[3, 1]"
) -> dict[str, list[list[str]]]:
    (folder / "core.py").write_text(CORE)
    order = {"path": str(folder / "core.py"), "functions": [13], "versions": versions}
    root = str(Path(agentflow.repair.compare.__file__).parent)
    sandbox = str(Path(agentflow.sandbox.sealed.__file__).parent)
    script = RUN.format(folder=str(folder), root=root, sandbox=sandbox, order=order, words=words, pairs=pairs)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, list[list[str]]] = json.loads(done.stdout)
    return found


def test_versions_are_told_apart_on_inputs_near_those_of_the_tests(tmp_path: Path) -> None:
    other = CORE.replace("a + len(b)", "a + 2")
    grown = CORE.replace("self.size += by", "self.size = 5")
    large = CORE.replace("size > 2", "size > 3")
    seen = run_compare(tmp_path, CORE, other, grown, CORE, large)
    same, fixed, boxes, again, bigger = seen["outcomes"]
    assert same != bigger
    assert same == again
    assert len(same) == len(seen["inputs"])
    calls = [str(each) for each in seen["inputs"]]
    assert calls[0] == "run(4, [3, 1], 'ab')"
    differing = [call for call, mine, theirs in zip(calls, same, fixed, strict=True) if mine != theirs]
    assert differing
    assert all(call.startswith("run(") for call in differing)
    differing = [call for call, mine, theirs in zip(calls, same, boxes, strict=True) if mine != theirs]
    assert differing
    assert all(call.startswith("Box.grow(") for call in differing)


def test_versions_are_told_apart_at_the_numbers_that_the_code_names(tmp_path: Path) -> None:
    full = CORE.replace("range(top)", "range(top % 3600)")
    same, other = run_compare(tmp_path, full, full.replace("3600", "3000"))["outcomes"]
    assert same != other


def test_versions_are_told_apart_by_what_lies_deep_in_an_object(tmp_path: Path) -> None:
    deep = CORE.replace("self.size += by", "self.kept = [{'a': [by]}]")
    same, other = run_compare(tmp_path, deep, deep.replace("[by]", "[by + 1]"))["outcomes"]
    assert same != other


def test_texts_of_other_words_tell_versions_apart(tmp_path: Path) -> None:
    first = CORE.replace("a + len(b)", "c.split()[0] if ' ' in c else c")
    last = first.replace("[0]", "[-1]")
    assert len(set(map(tuple, run_compare(tmp_path, first, last, words="one two two")["outcomes"]))) == 2
    seen = run_compare(tmp_path, first, last, words="one two two")
    assert any("'two two'" in str(each) for each in seen["inputs"])


def test_pairs_are_in_order_where_all_recorded_ones_are(tmp_path: Path) -> None:
    calls = [str(each) for each in run_compare(tmp_path, CORE, pairs="[(1, 3), (4, 6)]")["inputs"]]
    found = [pair for call in calls for pair in re.findall(r"\((\d+), (\d+)\)", call)]
    assert len(set(found)) > 2
    assert all(int(low) <= int(high) for low, high in found)


def test_an_error_that_the_code_raises_is_no_accident(tmp_path: Path) -> None:
    raises = CORE.replace("return a + len(b)", "raise ValueError(a)")
    fails = CORE.replace("return a + len(b)", "return int('x')")
    meant, accident = run_compare(tmp_path, raises, fails)["outcomes"]
    assert "! ValueError" in meant
    assert "? ValueError" in accident


def test_functions_that_only_the_tests_have_are_given_as_they_are(tmp_path: Path) -> None:
    once = CORE.replace("change(change(start))", "change(start)")
    same, other = run_compare(tmp_path, CORE, once)["outcomes"]
    assert same != other


def test_inputs_keep_to_what_all_recorded_ones_do(tmp_path: Path) -> None:
    calls = [str(each) for each in run_compare(tmp_path, CORE)["inputs"]]
    assert any("run(5, " in call for call in calls)
    assert not any("-" in call for call in calls if call.startswith(("run(", "count(")))


def test_a_version_that_hangs_forks_or_ends_its_process_ends_alone(tmp_path: Path) -> None:
    hangs = CORE.replace("return a + len(b)", "while a: pass")
    ends = CORE.replace("return a + len(b)", "__import__('os')._exit(0)")
    forks = CORE.replace("return a + len(b)", "__import__('os').fork() or __import__('time').sleep(60)")
    same, hung, ended, forked, again = run_compare(tmp_path, CORE, hangs, ends, forks, CORE)["outcomes"]
    assert same == again
    assert "? took too long" in hung
    assert len(ended) < len(same)
    assert forked != same


def test_one_test_that_two_edits_pass_leaves_a_rival_with_the_input_that_tells(tmp_path: Path) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/core.py": "def price_after(price, rate):\n    return price * (1 - rate)\n",
        "tests/test_core.py": module_tests("shop.core", ("price_after(100, 0.5) == 150",)),
    }
    stage = Stage(tmp_path, files, UNITTEST)
    found = stage.repair(boxed(tmp_path))
    assert stage.changed() == {
        "shop/core.py": (["return price * (1 - rate)"], ["return price * (1 + rate)"]),
    }
    assert any("constant: `1` to `2`" in rival for rival in found.rivals)
    assert all("price_after(" in rival and " gives " in rival for rival in found.rivals)


FULL, PART, EMPTY = "pages([1, 2, 3, 4], 2) == 2", "pages([1, 2, 3], 2) == 2", "pages([], 2) == 0"


@pytest.mark.parametrize("tests", [(FULL, PART), (FULL, PART, EMPTY), (FULL,)])
def test_the_most_ordinary_edit_is_made_whatever_fails_as_before(
    tmp_path: Path, tests: tuple[str, ...]
) -> None:
    """A divisor of zero fails in the code as it was: an edit that hides that is not the better one."""
    files = {
        "shop/__init__.py": "",
        "shop/core.py": "def pages(items, size):\n    return len(items) // size + 1\n",
        "tests/test_core.py": module_tests("shop.core", tests),
    }
    stage = Stage(tmp_path, files, UNITTEST)
    found = stage.repair(boxed(tmp_path))
    right = ["return (len(items) - 1) // size + 1"] if PART in tests else ["return len(items) // size"]
    assert stage.changed() == {"shop/core.py": (["return len(items) // size + 1"], right)}
    assert bool(found.rivals) == (EMPTY not in tests)


def test_an_edit_that_mends_a_part_has_its_rivals_too(tmp_path: Path) -> None:
    price = "def price_after(price, rate):\n    return price * (1 - rate)\n"
    full = "def is_full(n):\n    return n > 3\n"
    files = {
        "shop/__init__.py": "",
        "shop/core.py": f"{price}\n\n{full}",
        "tests/test_core.py": module_tests(
            "shop.core", ("price_after(100, 0.5) == 150", "is_full(3)", "is_full(4)", "not is_full(2)")
        ),
    }
    stage = Stage(tmp_path, files, UNITTEST)
    found = stage.repair(boxed(tmp_path))
    ((_, (_, new)),) = stage.changed().items()
    assert new == ["return price * (1 + rate)", "return n >= 3"]
    assert any("constant: `1` to `2`" in rival for rival in found.rivals)
