"""The pages of the reference name every outcome, probe and proof that the judge knows, and no other."""

import os
import re
from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import Caveat, ProbeKind, ProofKind, Verdict
from agentflow.report.why import explain_task

PAGES = Path(__file__).parents[2] / "docs/reference"
CODES = (PAGES / "exit-codes.md").read_text("utf-8")
PROOF = (PAGES / "proof-kinds.md").read_text("utf-8")


def rows(heading: str, text: str = CODES) -> list[list[str]]:
    """Return the cells of the first table below a heading, its head left out."""
    table = text.partition(f"\n{heading}\n")[2].partition("\n| ")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def words(cells: list[str]) -> set[str]:
    return {word for cell in cells for word in re.findall(r"`([a-z_]+)(?::NAME)?`", cell)}


def test_the_table_of_outcomes_has_each_code_of_a_change() -> None:
    codes = {Exit(int(code)) for row in rows("## What leads to which code") for code in row[1].split(", ")}
    assert {Exit.VERIFIED, Exit.NOT_VERIFIED, Exit.LIMIT, Exit.CAVEAT, Exit.TAMPERED, Exit.SUSPENDED} == codes


@pytest.mark.parametrize(("heading", "kinds"), [("## Probes", ProbeKind), ("## Kinds of proof", ProofKind)])
def test_each_kind_of_probe_and_proof_has_a_row(
    heading: str, kinds: type[ProbeKind] | type[ProofKind]
) -> None:
    assert words([row[0] for row in rows(heading, PROOF)]) == set(kinds)


def name_step(word: str) -> str:
    """Return the next step that `why` names for a caveat, where a test could remove it."""
    verdict = Verdict(passed=True, reasons=(), evidence=(), caveats=(word,), is_testable=True)
    task = TaskState(
        task_id="TASK",
        task="",
        started_at="",
        max_iterations=1,
        model="",
        status=Status.VERIFIED_WITH_CAVEAT,
        verdict=verdict,
    )
    first, *others = explain_task(task, lambda _: None).next
    return (
        re.sub(r"(agentflow task --follows TASK .*|agentflow \w+(?: TASK)?)", r"`\1`", first)
        if others
        else ""
    )


def test_each_caveat_has_a_row_with_the_next_step_of_why() -> None:
    """AGENTFLOW_UPDATE_DOCS=1 rewrites the steps."""
    table = rows("## Caveats")
    assert words([row[0] for row in table]) == set(Caveat)
    told = CODES
    for word, meaning, *_ in table:
        step = name_step(word.strip("`"))
        (row,) = re.findall(rf"(?m)^\| {re.escape(word)} \| .* \|$", told)
        told = told.replace(row, f"| {word} | {meaning} | {step or 'read the diff'} |")
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        (PAGES / "exit-codes.md").write_text(told, "utf-8")
    assert (PAGES / "exit-codes.md").read_text("utf-8") == told
