"""NotebookEdit is offered where there is a notebook."""

import json

from tests.support import play
from tests.support.repo import NewRepo

BOOK = {"cells": [{"cell_type": "code", "source": ["1"], "metadata": {}}], "nbformat": 4, "nbformat_minor": 4}


def test_a_role_changes_a_cell_where_there_is_a_notebook(new_repo: NewRepo) -> None:
    edit = play.call("NotebookEdit", notebook_path="a.ipynb", cell_id="cell-0", new_source="2")
    turns = (play.turn(play.call("Read", file_path="a.ipynb")), play.turn(edit), *play.MENDED)
    repo = new_repo({**play.QUICK, "a.ipynb": json.dumps(BOOK)})
    repo.task(
        "fix add() in calc.py", script=[play.role("implementer", *turns, play.submit("calc.py", "a.ipynb"))]
    )
    assert json.loads(repo.read("a.ipynb"))["cells"][0]["source"] == ["2"]
