"""What the scripted model plays: the roles' turns, and the repository that most tasks of tests happen in."""

import copy
import json
from pathlib import Path
from typing import Any

TEXT = "make the failing tests pass"
JUDGES = ("reviewer", "verifier")
WHOLE_CREW = "let add return the sum"
"""The text of tasks for which tests ask for a plan, so that explorer and planner run too."""


def ask_for_crew(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command: with --plan where it begins a task of the whole crew.

    A script that has turns for a judge has them played (--judges); one without means that none is needed.
    """
    if words[:1] != ("task",):
        return words
    scripts = (word.removeprefix("script:") for word in words if word.startswith("script:"))
    entries = (entry for script in scripts for entry in _read_script(script))
    is_judged = any(entry.get("match", {}).get("role") in JUDGES for entry in entries)
    plan, judges = ("--plan",) * (WHOLE_CREW in words), ("--judges",) * is_judged
    return ("task", *plan, *judges, *words[1:])


def _read_script(path: str) -> list[dict[str, Any]]:
    """Return the entries of a script that tests wrote; others are tried as they are."""
    try:
        entries: list[dict[str, Any]] = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return entries


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"name": name, "input": given}


def turn(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "tools": list(calls)}


def role(name: str, *turns: dict[str, Any], **match: Any) -> dict[str, Any]:
    """Return what a role does; an implementer whose submission is refused hands in the same once more."""
    last = turns[-1].get("tools", []) if turns else []
    again = turns[-1:] if [call["name"] for call in last] == ["SubmitChange"] else ()
    return {"match": {"role": name, **match}, "turns": copy.deepcopy([*turns, *again])}


def findings(path: str = "calc.py", line: int = 2) -> dict[str, Any]:
    found = [{"claim": "here", "path": path, "line": line}]
    return role("explorer", turn(call("SubmitFindings", summary="found", findings=found, open_questions=[])))


def plan(*files: str) -> dict[str, Any]:
    steps = [{"title": "mend it", "files": list(files)}]
    return role("planner", turn(call("SubmitPlan", summary="plan", steps=steps, acceptance=[], risks=[])))


def submit(*files: str) -> dict[str, Any]:
    return turn(call("SubmitChange", summary="all tests pass", files=list(files)))


def edit(path: str, old: str, new: str) -> list[dict[str, Any]]:
    """The turns that change a file."""
    return [
        turn(call("Read", file_path=path)),
        turn(call("Edit", file_path=path, old_string=old, new_string=new)),
    ]


def verified(*evidence: str) -> dict[str, Any]:
    return role(
        "verifier", turn(call("SubmitVerdict", verdict="VERIFIED", evidence=list(evidence), reasons=[]))
    )


def crew(*turns: dict[str, Any], evidence: str = "ev-0002") -> list[dict[str, Any]]:
    """Return a script in which the implementer makes these turns, and all others do their part."""
    return [findings(), plan("calc.py"), role("implementer", *turns), verified(evidence)]


def mending(*turns: dict[str, Any], evidence: str = "ev-0002") -> list[dict[str, Any]]:
    """Return a script in which the implementer mends CALC after these turns."""
    return crew(*turns, *MENDED, submit("calc.py"), evidence=evidence)


MENDED = edit("calc.py", "a - b", "a + b")
"""The turns that mend CALC."""
CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "tests/test_calc.py": """import unittest

from calc import add, double


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_add_zero(self):
        self.assertEqual(add(1, 0), 1)

    def test_double(self):
        self.assertEqual(double(2), 4)
""",
}
"""A repository with one red test: `add` subtracts."""
LIGHT = {
    "calc.py": CALC["calc.py"],
    "Makefile": "test:\n\t@sh tests/test_calc.sh\n",
    "tests/test_calc.sh": "! grep -q 'a - b' calc.py\n",
}
"""The same with a test that costs next to nothing, for what is about other things than the verdict.

Its tests cannot be counted, so whoever mends it ends with 4.
"""
QUICK = {
    "calc.py": CALC["calc.py"],
    "Makefile": LIGHT["Makefile"],
    "tests/test_calc.sh": """\
check() {
    if grep -q "$2" calc.py; then echo "ok $1"; else echo "not ok $1"; failed=1; fi
}
failed=0
echo 1..3
check '1 - test_add' 'return a + b'
check '2 - test_add_zero' 'return a '
check '3 - test_double' 'return 2 [*] a'
exit $failed
""",
}
"""CALC with tests that can be counted and cost little: whoever mends it ends with 0, at half of the price."""
GREEN = {**CALC, "calc.py": CALC["calc.py"].replace("a - b", "a + b")}
