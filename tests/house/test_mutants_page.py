"""docs/reference/mutants.md is made from the operators and languages, by AGENTFLOW_UPDATE_DOCS=1."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.languages.grammars import GRAMMARS
from agentflow.mutants.operators import Mutant, Operator, list_look_alikes, list_mutants

SAMPLE = """\
async def load(path, size=10, strict=False):
    if size <= 0 or not path:
        raise ValueError(path)
    found = re.match(r"^page (\\d+)$", path)
    for page in await fetch(path):
        count += page
    try:
        total = add(count, size) / len(found)
    except Exception:
        total = "none"
    log([page for page in found])
    for round in range(3):
        wait(max(count, total))
    say("no page has so many entries")
    path.sort()
    return total == 7


def pages():
    total = 0
    return [total]
"""
TAKEN_BACK = ("the changed lines", "what stood there before the change", "strong")
LOOK_ALIKE = "def tax(cents):\n    return round(cents / 5) or int(cents)\n"


def to_code(text: str) -> str:
    rows = [row.strip() for row in text.strip().splitlines()]
    return f"`{rows[0]}{' …' if len(rows) > 1 else ''}`" if rows else "(nothing)"


def show(operator: Operator, found: Iterable[Mutant]) -> tuple[str, ...]:
    mutant = next((each for each in found if each.operator is operator), None)
    if mutant is None:
        return TAKEN_BACK
    return to_code(mutant.before), to_code(mutant.after), mutant.grade


def list_operators() -> Iterator[tuple[str, ...]]:
    found = list_mutants("sample.py", SAMPLE, range(1, SAMPLE.count("\n") + 1)) or ()
    found += list_look_alikes("sample.py", LOOK_ALIKE, (2,), "half a cent is rounded up")
    yield from ((operator, *show(operator, found)) for operator in Operator)


def list_languages() -> Iterator[tuple[str, ...]]:
    for each in GRAMMARS:
        results = ", ".join(to_code(text.replace("{type}", "T")) for text in each.defaults)
        suffixes = ", ".join(f"`{suffix}`" for suffix in each.suffixes)
        is_loose = "yes" if each.is_loose else "no, it would not compile"
        yield each.name, suffixes, to_code(each.failed_body), results or "none", is_loose


def fill(page: str, heading: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a page with the rows of the table below a heading."""
    before, _, after = page.partition(f"\n## {heading}\n")
    text, line, rest = after.partition("| --- |")
    columns, _, rest = rest.partition("\n")
    _, end, behind = rest.partition("\n## ")
    table = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)
    return f"{before}\n## {heading}\n{text}{line}{columns}\n{table}{end}{behind}"


def test_the_page_has_a_row_for_each_operator_and_language(root: Path) -> None:
    page = root / "docs/reference/mutants.md"
    told = fill(page.read_text("utf-8"), "Edits", list_operators())
    told = fill(told, "Languages", list_languages())
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        page.write_text(told, "utf-8")
    assert page.read_text("utf-8") == told


def test_only_what_needs_two_versions_of_a_file_has_no_example() -> None:
    assert [name for name, *cells in list_operators() if tuple(cells) == TAKEN_BACK] == [Operator.TAKEN_BACK]
