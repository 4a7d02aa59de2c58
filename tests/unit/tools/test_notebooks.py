import json
from typing import Any

import pytest

from agentflow.core.errors import InvalidInput
from agentflow.tools.files import NOTEBOOK_EDIT, READ
from tests.unit.tools.bench import Bench

CODE: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": 3,
    "id": "one",
    "metadata": {"tags": ["t"]},
    "outputs": [{"name": "stdout"}],
    "source": ["x = 1\n", "x"],
}
TEXT: dict[str, Any] = {"cell_type": "markdown", "id": "two", "metadata": {}, "source": ["# Ä"]}
BOOK: dict[str, Any] = {
    "cells": [CODE, TEXT],
    "metadata": {"kernel": "k"},
    "nbformat": 4,
    "nbformat_minor": 5,
}
NEW = {"metadata": {}, "source": ["y\n", "z"]}
RAN: dict[str, Any] = {"execution_count": None, "outputs": []}
EDITS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "replace": ({"cell_id": "one"}, [{**CODE, **RAN, "source": ["y\n", "z"]}, TEXT]),
    "replace by place": ({"cell_id": "cell-1"}, [CODE, {**TEXT, "source": ["y\n", "z"]}]),
    "another type": (
        {"cell_id": "two", "cell_type": "code"},
        [CODE, {**TEXT, **RAN, "cell_type": "code", "source": ["y\n", "z"]}],
    ),
    "insert behind": (
        {"cell_id": "one", "edit_mode": "insert", "cell_type": "markdown"},
        [CODE, {**NEW, "cell_type": "markdown", "id": "new-0"}, TEXT],
    ),
    "insert at the begin": (
        {"edit_mode": "insert"},
        [{**NEW, **RAN, "cell_type": "code", "id": "new-0"}, CODE, TEXT],
    ),
    "delete": ({"cell_id": "one", "edit_mode": "delete"}, [TEXT]),
}


def write(bench: Bench, book: object = BOOK) -> None:
    bench.file("a.ipynb", json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    bench(READ, file_path="a.ipynb")


@pytest.mark.parametrize("case", EDITS)
def test_one_cell_changes_and_the_rest_stays_byte_for_byte(bench: Bench, case: str) -> None:
    given, cells = EDITS[case]
    write(bench)
    output = bench(NOTEBOOK_EDIT, notebook_path="a.ipynb", new_source="y\nz", **given)
    assert output.content.endswith(f": a.ipynb, which has {len(cells)} cells now")
    text = (bench.root / "a.ipynb").read_text("utf-8")
    assert json.loads(text) == {**BOOK, "cells": cells}
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("book", "given", "said"),
    [
        (BOOK, {"cell_id": "nine"}, "has no cell nine; there are: one, two"),
        (BOOK, {"cell_id": "cell-2"}, "has no cell cell-2"),
        (BOOK, {}, "names the cell"),
        ([], {"cell_id": "one"}, "is no notebook"),
        ({"cells": [1]}, {"cell_id": "one"}, "is no notebook"),
        ({"cells": {"a": 1}}, {"cell_id": "one"}, "is no notebook"),
    ],
)
def test_what_cannot_be_changed_is_named(
    bench: Bench, book: object, given: dict[str, str], said: str
) -> None:
    write(bench, book)
    before = (bench.root / "a.ipynb").read_bytes()
    with pytest.raises(InvalidInput, match=said):
        bench(NOTEBOOK_EDIT, notebook_path="a.ipynb", new_source="y", **given)
    assert (bench.root / "a.ipynb").read_bytes() == before


def test_a_notebook_is_read_before_it_is_changed(bench: Bench) -> None:
    bench.file("a.ipynb", json.dumps(BOOK))
    with pytest.raises(InvalidInput, match="was not read"):
        bench(NOTEBOOK_EDIT, notebook_path="a.ipynb", new_source="y", cell_id="one")
