from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentflow.core.events import Event, EvidenceRecorded
from agentflow.core.evidence import (
    By,
    CheckName,
    CheckRun,
    Evidence,
    Execution,
    Side,
    TestCounts,
    TestOutcome,
    summarize_evidence,
)
from agentflow.store.ledger import EvidenceLedger, TreeLedger
from tests.support.records import an_execution
from tests.unit.tools.bench import a_record
from tests.unit.verdict.cases import a_check, a_task


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def ledger(tmp_path: Path, told: list[Event]) -> EvidenceLedger:
    (tmp_path / "evidence").mkdir()
    return EvidenceLedger(tmp_path, a_task(task_id="task-1"), told.append)


def ran(tmp_path: Path, printed: str = "out\n") -> Execution:
    return an_execution(tmp_path / "printed.out", printed, exit_code=1)


BOUND = CheckRun(
    check=a_check(CheckName.TESTS),
    checks=Side.BASE,
    counts=TestCounts(passed=1, failed=1),
    outcomes={"b::y": TestOutcome.FAILED, "a::x": TestOutcome.PASSED},
)


def record(ledger: EvidenceLedger, execution: Execution, tree: str = "t1", **changes: Any) -> Evidence:
    return ledger.record_check(BOUND.replace(ran=execution, **changes), tree, iteration=1)


def record_on_disk(tmp_path: Path, name: str) -> Evidence:
    return msgspec.json.decode((tmp_path / f"evidence/{name}.json").read_bytes(), type=Evidence)


def test_a_command_of_an_agent_is_kept_and_bound_to_no_tree(ledger: EvidenceLedger, tmp_path: Path) -> None:
    kept = ledger.record(ran(tmp_path), role="implementer", iteration=2, by=By.AGENT)
    assert (kept.id, kept.task_id, kept.iteration, kept.role, kept.by) == (
        "ev-0001", "task-1", 2, "implementer", By.AGENT,
    )  # fmt: skip
    assert (kept.check, kept.tree_before, kept.tree_after, kept.tests) == (None, None, None, None)
    assert record_on_disk(tmp_path, "ev-0001") == kept == ledger.find("ev-0001")
    assert (tmp_path / "evidence/ev-0001.out").read_text() == "out\n"


def test_a_check_is_bound_to_tree_side_and_tests(ledger: EvidenceLedger, tmp_path: Path) -> None:
    kept = record(ledger, ran(tmp_path))
    assert (kept.by, kept.role, kept.check, kept.tree_before, kept.tree_after) == (
        By.PROGRAM, None, CheckName.TESTS, "t1", "t1",
    )  # fmt: skip
    assert (kept.surface, kept.code) == (Side.BASE, Side.FINAL)
    assert kept.tests == TestCounts(passed=1, failed=1, ids_file="evidence/ev-0001.ids")
    assert (tmp_path / "evidence/ev-0001.ids").read_text() == "passed a::x\nfailed b::y\n"
    assert record_on_disk(tmp_path, "ev-0001") == kept


def test_a_check_without_counts_has_no_list(ledger: EvidenceLedger, tmp_path: Path) -> None:
    kept = record(ledger, ran(tmp_path), counts=None, outcomes={})
    assert kept.tests is None
    assert not (tmp_path / "evidence/ev-0001.ids").exists()


def test_each_record_has_its_own_id_and_output(ledger: EvidenceLedger, tmp_path: Path) -> None:
    for number in range(3):
        execution = ran(tmp_path, f"out {number}")
        ledger.record(execution, role=None, iteration=1, by=By.AGENT)
    assert [(tmp_path / f"evidence/ev-000{n}.out").read_text() for n in (1, 2, 3)] == [
        "out 0", "out 1", "out 2",
    ]  # fmt: skip


def test_writing_the_output_again_changes_no_evidence(ledger: EvidenceLedger, tmp_path: Path) -> None:
    for printed in ("first", "second"):
        ledger.record(ran(tmp_path, printed), role=None, iteration=1, by=By.AGENT)
    assert (tmp_path / "evidence/ev-0001.out").read_text() == "first"


def test_what_was_recorded_is_told(ledger: EvidenceLedger, tmp_path: Path, told: list[Event]) -> None:
    record(ledger, ran(tmp_path))
    (event,) = told
    assert isinstance(event, EvidenceRecorded)
    assert (event.evidence, event.check, event.tree, event.exit_code, event.summary) == (
        "ev-0001", CheckName.TESTS, "t1", 1, "exit 1, 1 passed, 1 failed",
    )  # fmt: skip


def test_what_a_check_showed_can_be_read_again(ledger: EvidenceLedger, tmp_path: Path) -> None:
    kept = record(ledger, ran(tmp_path))
    assert ledger.read_outcomes(kept) == BOUND.outcomes
    assert ledger.read_output(kept.id) == "out\n"
    assert ledger.read_outcomes(kept.replace(tests=None)) == {}


@pytest.mark.parametrize(
    "name", ["a::x[b c]", "a::x[\n]", "a::x[\x85]", "a::x[\u2028]", "a::x[é]", " a", "a\r"]
)
def test_the_name_of_a_test_may_hold_anything(ledger: EvidenceLedger, tmp_path: Path, name: str) -> None:
    outcomes = {name: TestOutcome.FAILED, "a::y": TestOutcome.PASSED}
    kept = record(ledger, ran(tmp_path), outcomes=outcomes)
    assert ledger.read_outcomes(kept) == outcomes


def test_an_unknown_id_is_none(ledger: EvidenceLedger) -> None:
    assert ledger.find("ev-0001") is None


def test_a_file_beside_the_ledger_is_no_evidence(ledger: EvidenceLedger, tmp_path: Path) -> None:
    forged = a_record("ev-0009")
    (tmp_path / "evidence/ev-0009.json").write_bytes(msgspec.json.encode(forged))
    assert ledger.find("ev-0009") is None


@pytest.mark.parametrize(
    ("sides", "tree", "found"),
    [
        ({"checks": Side.FINAL}, "t1", True),
        ({"checks": Side.FINAL}, "t2", False),
        ({"code": Side.BASE}, "t1", False),
    ],
)
def test_a_verifier_finds_only_what_ran_on_the_newest_tree(
    ledger: EvidenceLedger, tmp_path: Path, sides: dict[str, Side], tree: str, found: bool
) -> None:
    record(ledger, ran(tmp_path), **sides)
    assert (TreeLedger(ledger=ledger, tree=tree, iteration=1).find("ev-0001") is not None) is found


def test_a_verifier_may_cite_the_run_under_the_checks_from_before(
    ledger: EvidenceLedger, tmp_path: Path
) -> None:
    record(ledger, ran(tmp_path), tree="held")
    narrow = TreeLedger(ledger=ledger, tree="t1", iteration=1)
    assert narrow.find("ev-0001") is None
    assert narrow.replace(held=frozenset({"ev-0001"})).find("ev-0001") is not None


def test_a_verifier_may_cite_its_own_commands_of_this_iteration_only(
    ledger: EvidenceLedger, tmp_path: Path
) -> None:
    narrow = TreeLedger(ledger=ledger, tree="t1", iteration=1)
    own = narrow.record(ran(tmp_path), role="verifier", iteration=1, by=By.AGENT)
    other = ledger.record(ran(tmp_path), role="implementer", iteration=1, by=By.AGENT)
    assert narrow.find(own.id) == own
    assert narrow.replace(iteration=2).find(own.id) is None
    assert narrow.find(other.id) is None
    assert narrow.find("ev-9999") is None


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (a_record("e"), "exit 0"),
        (a_record("e", exit_code=None), "killed"),
        (a_record("e", timed_out=True, seconds=600.2), "timed out after 600 s"),
        (a_record("e", tests=TestCounts()), "exit 0, no test ran"),
        (a_record("e", tests=TestCounts(skipped=3)), "exit 0, no test ran, 3 skipped"),
        (a_record("e", exit_code=1, tests=TestCounts(passed=2, errors=1)), "exit 1, 2 passed, 1 error"),
    ],
)
def test_a_record_is_summed_up_in_a_few_words(evidence: Evidence, words: str) -> None:
    assert summarize_evidence(evidence) == words


def test_an_output_that_a_crash_left_without_its_record_stops_nobody(
    ledger: EvidenceLedger, tmp_path: Path
) -> None:
    (tmp_path / "evidence/ev-0001.out").write_text("left behind")
    kept = ledger.record(ran(tmp_path), role=None, iteration=1, by=By.AGENT)
    assert ledger.read_output(kept.id) == "out\n"


def test_a_file_whose_name_is_no_utf_8_is_told_as_git_tells_it(
    ledger: EvidenceLedger, tmp_path: Path
) -> None:
    touched = ran(tmp_path).replace(changed=("A \udcff\n.py", "M größe.py"))
    kept = record(ledger, touched)
    assert kept.changed == ("A \\xff\n.py", "M größe.py")
    assert record_on_disk(tmp_path, "ev-0001") == kept
    assert ledger.list_altered(1) == frozenset(kept.changed)
