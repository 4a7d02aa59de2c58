import pytest

from agentflow.verdict.case import drop_leavings
from agentflow.workspace.changes import ChangeKind, FileChange

TRACKED = ("calc.py", "tests/test_calc.py", "report.json")
BEFORE = ("A target/debug/calc-1f/dep.d", "A seen.dat", "M report.json", "M calc.py", "A tests/out/1.png")
LEFT = ("A target/release/other-2e/dep.d", "A again.dat", "M report.json", "A tests/out/deep/2.gif")
KEPT = ("A conftest.py", "A tests/test_new.py", "M calc.py", "D report.json", "M tests/test_calc.py")


def changes(lines: tuple[str, ...]) -> tuple[FileChange, ...]:
    return tuple(FileChange(kind=ChangeKind(line[0]), path=line[2:]) for line in lines)


@pytest.mark.parametrize("line", LEFT)
def test_what_checks_did_before_the_task_as_well_is_a_leaving(line: str) -> None:
    assert drop_leavings(changes((line,)), changes(BEFORE), {"calc.py"}, TRACKED) == ()


@pytest.mark.parametrize("line", KEPT)
def test_what_is_new_or_was_changed_by_the_task_is_none(line: str) -> None:
    found = changes((line,))
    assert drop_leavings(found, changes(BEFORE), {"calc.py"}, TRACKED) == found
