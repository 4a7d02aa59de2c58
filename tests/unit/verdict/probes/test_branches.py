import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.verdict.probes.branches import watch_change
from agentflow.workspace.mixed_tree import ChangedTexts

BEFORE = "def pages(total, size):\n    return total // size\n"
RIGHT = "-(-total // size)"


def untried(folder: Path, before: str, after: str, *calls: str) -> list[str]:
    """Return what calls of the changed code leave untried."""
    plain = ("100644", "100644")
    change = ChangedTexts(path="core.py", before=before, after=after, modes=plain)
    watched = watch_change(change, "kwq", 1)
    if watched is None:
        return []
    folder.joinpath("core.py").write_text(watched.text)
    code = "from core import *\n" + "\n".join(calls)
    subprocess.run([sys.executable, "-B", "-c", code], cwd=folder, check=True)
    left = [path.name for path in folder.iterdir()]
    assert watched.is_loaded(left)
    return [f"{hunk.place}: {hunk.wanted}" for hunk in watched.list_untried(left)]


def body(*lines: str) -> str:
    return "import os, random, time\n\ndef pages(total, size):\n" + "".join(f"    {line}\n" for line in lines)


WRONG_SOMEWHERE = {
    "until a day": body(f"return {RIGHT} if time.time() < 4e9 else total // size"),
    "by an index": body(f"return (total // size, {RIGHT})[time.time() < 4e9]"),
    "by a call as an index": body(f"return (total // size, {RIGHT})[os.path.isdir('/')]"),
    "by a call as a number": body(
        f"return total // size + ({RIGHT} - total // size) * int(os.path.isdir('/'))"
    ),
    "by not as a number": body(f"return {RIGHT} - (not os.path.isdir('/'))"),
    "by a sum": body(f"return {RIGHT} - (time.time() > 4e9)"),
    "most of the time": body("if random.random() < 0.9999:", f"    return {RIGHT}", "return total // size"),
    "by a variable": body("if 'LC_TIMES' not in os.environ:", f"    return {RIGHT}", "return total // size"),
    "with something beside it": body(
        f"return {RIGHT} if size and not os.path.isdir('/nowhere') else total // size"
    ),
    "by or": body(f"return (total < 1000 and {RIGHT}) or total // size"),
    "by a comparison in a name": body(
        "few = total < 100", f"return total // size + ({RIGHT} - total // size) * few"
    ),
    "by a comparison that is handed on": body(f"return (total // size, {RIGHT}).__getitem__(total < 100)"),
    "by a pair of names": body(
        "first, other = os.path.isdir('/'), 1", f"return total // size + ({RIGHT} - total // size) * first"
    ),
    "by a computed default": "import os\ndef pages(total, size, first=os.path.isdir('/')):\n"
    f"    return total // size + ({RIGHT} - total // size) * first\n",
    "by a name as a number": body(
        "first = os.path.isdir('/')", f"return total // size + ({RIGHT} - total // size) * first"
    ),
    "by a rest": body(f"return {RIGHT} % 10"),
    "by bits": body(f"return {RIGHT} ^ total >> 6"),
    "by adding nothing": body(f"return {RIGHT} + len(())"),
    "by a factor in front": body(f"return min(1, size) * {RIGHT}"),
    "by a sum in steps": body("extra = 0", "extra += total // 1000", f"return {RIGHT} + 1 - 1"),
    "by rounds that are never used up": body(
        "for pages in range(1000):", "    if pages * size >= total:", "        return pages"
    ),
    "in a handler": body("try:", f"    return {RIGHT}", "except TypeError:", "    return total // size"),
    "in a loop": body("for each in os.environ.get('NOWHERE', ''):", "    return 0", f"return {RIGHT}"),
    "in a case": body("match total:", "    case 77:", "        return 0", f"return {RIGHT}"),
    "in another function": body(f"return {RIGHT}") + "\n\ndef spare(total):\n    return total\n",
    "in a lambda": body("other = lambda: total // size", f"return {RIGHT}"),
    "in a comprehension": body(
        "parts = [1 for each in range(total) if each < 10**6]", "return -(-len(parts) // size)"
    ),
}


@pytest.mark.parametrize("after", WRONG_SOMEWHERE.values(), ids=WRONG_SOMEWHERE.keys())
def test_a_part_of_new_code_that_no_call_takes_is_told_by_its_place(tmp_path: Path, after: str) -> None:
    found = untried(tmp_path, BEFORE, after, "pages(7, 3)", "pages(6, 3)")
    assert found, after
    assert all(each.startswith("core.py:") for each in found)


MENDED = body('"""Count."""', f"return {RIGHT}")
TRIED = {
    "no condition": body(f"return {RIGHT}"),
    "both ways": body(f"return {RIGHT} if total % size else total // size"),
    "calls that count": body("return total // size + min(1, total % size)"),
    "operations that count": body("pages = total - 1", "pages += size", "return pages // size"),
    "bits that count": body("pages = total ^ 1", "pages ^= 1", "pages &= 4", f"return {RIGHT} + pages - 8"),
    "a pattern of numbers": body("match total:", "    case -1 + 2j | 7 | 6 | 2:", f"        return {RIGHT}"),
    "a list that may grow": body("found = []", "found += []", f"return {RIGHT}"),
    "rounds to the last": body(
        "for pages in range(4):", "    if pages * size >= total:", "        return pages"
    ),
    "both ways, by steps": body("if not total % size:", "    return total // size", f"return {RIGHT}"),
    "joined": body(f"return {RIGHT} if total % size and total > size else total // size"),
    "asserted": body("assert total >= 0", f"return {RIGHT}"),
    "a value that is neither true nor false": body("class Odd:", "    __eq__ = lambda self, other: [1]")
    + f"    odd = Odd() == 3\n    return {RIGHT}\n",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\n"
    + body(f"return {RIGHT}"),
    "started": body(f"return {RIGHT}")
    + "\n\ndef main():\n    pages(7, 3)\n\nif __name__ == '__main__':\n    main()\n",
    "annotations": "def pages(total: int, size: dict[str, int] | int) -> list[str] | int:\n"
    f"    return {RIGHT}\n",
    "an annotated value": body(f"found: dict[str, int] | int = {RIGHT}", "return found"),
    "empty": body(f"return {RIGHT}")
    + "\n\nclass Kind:\n    def name(self):\n        raise NotImplementedError\n",
    "a docstring": '"""Pages."""\nfrom __future__ import annotations\n'
    + body('"""Count."""', f"return {RIGHT}"),
}


@pytest.mark.parametrize("after", TRIED.values(), ids=TRIED.keys())
def test_what_calls_take_both_ways_is_told_by_nobody(tmp_path: Path, after: str) -> None:
    calls = ("pages(7, 3)", "pages(6, 3)", "pages(2, 3)", "main() if 'main' in globals() else None")
    assert untried(tmp_path, BEFORE, after, *calls) == []


def test_a_condition_that_stood_in_the_function_before_is_not_the_changes(tmp_path: Path) -> None:
    before = body("if size < 1:", "    raise ValueError", "return total // size")
    after = body("if size < 1:  # none", "    raise ValueError", f"return {RIGHT}")
    assert untried(tmp_path, before, after, "pages(7, 3)") == []


def test_what_is_told_names_the_condition_and_the_outcome_that_is_missing(tmp_path: Path) -> None:
    after = body("if total > 100:", "    return 0", f"return {RIGHT}")
    found = untried(tmp_path, BEFORE, after, "pages(7, 3)")
    assert found == ["core.py:4: in which `total > 100` is true"]


CHOICE = """def call(word, n):
    if word == "one":
        return n
    elif word == "two":
        return 2 * n
"""
MORE = (
    CHOICE
    + """    elif word == "three":
        return 3 * n
    elif word == "four":
        return 4 * n
"""
)
ALL = ("call('one', 5)", "call('two', 5)", "call('three', 5)", "call('four', 5)")


def test_the_last_of_some_cases_that_a_choice_gains_need_not_be_false(tmp_path: Path) -> None:
    assert untried(tmp_path, CHOICE, MORE, *ALL) == []


def test_each_of_them_has_to_be_true(tmp_path: Path) -> None:
    left = untried(tmp_path, CHOICE, MORE, *ALL[:3])
    assert 'core.py:8: in which `word == "four"` is true' in left


LAST = 'in which `word == "four"` is false'


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (CHOICE, MORE.replace("2 * n", "n + n"), f"core.py:8: {LAST}"),
        (CHOICE, MORE.replace('word == "four"', "n == 5"), "core.py:8: in which `n == 5` is false"),
        ("", MORE, f"core.py:8: {LAST}"),
    ],
    ids=["another case changed", "another value is asked", "the choice is new"],
)
def test_what_else_is_new_has_to_be_true_and_false(
    before: str, after: str, wanted: str, tmp_path: Path
) -> None:
    assert wanted in untried(tmp_path, before, after, *ALL)
