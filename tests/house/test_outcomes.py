"""The guide to verification names every outcome that the judge knows, and no other."""

import re
from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from agentflow.core.verdict import Caveat, ProbeKind, ProofKind

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/verification.md").read_text("utf-8")
CODES = (ROOT / "docs/reference/exit-codes.md").read_text("utf-8")


def rows(heading: str, text: str = GUIDE) -> list[list[str]]:
    """Return the cells of the first table below a heading, its head left out."""
    table = text.partition(f"\n{heading}\n")[2].partition("\n| ")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def words(cells: list[str]) -> set[str]:
    return {word for cell in cells for word in re.findall(r"`([a-z_]+)(?::NAME)?`", cell)}


def test_the_table_of_outcomes_names_each_caveat_with_code_4() -> None:
    table = rows("## Every outcome on one page")
    assert words([row[-1] for row in table if row[1] == "4"]) == set(Caveat)
    codes = {Exit(int(code)) for row in table for code in row[1].split(", ")}
    assert {Exit.VERIFIED, Exit.NOT_VERIFIED, Exit.LIMIT, Exit.CAVEAT, Exit.TAMPERED, Exit.SUSPENDED} == codes


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [("## Probes: runs that have to fail", ProbeKind), ("## What proves a change", ProofKind)],
)
def test_each_kind_of_probe_and_proof_has_a_row(
    heading: str, kinds: type[ProbeKind] | type[ProofKind]
) -> None:
    assert words([row[0] for row in rows(heading)]) == set(kinds)


def test_the_page_of_exit_codes_names_each_caveat() -> None:
    assert words([row[0] for row in rows("Caveats:", CODES)]) == set(Caveat)
