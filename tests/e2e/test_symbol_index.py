"""The index of symbols in a task: the map in a first message, and a rename by its tool."""

from tests.support import play
from tests.support.repo import NewRepo

FILES = {
    **play.CALC,
    "app/report.py": "from calc import double\n\n\ndef tell(amount):\n    return double(amount)\n",
    "app/bill.py": "from app.report import tell\n\n\ndef send(amount):\n    return tell(amount)\n",
    "app/store.py": "def keep(amount):\n    return [amount]\n",
    "app/__init__.py": "",
    **{f"app/parts/part{number}.py": f"PART = {number}\n" for number in range(20)},
}
"""Of fewer files no map is made."""


def test_a_role_sees_the_code_around_its_task_and_renames_it(new_repo: NewRepo) -> None:
    repo = new_repo({**FILES, "calc.py": play.GREEN["calc.py"]})
    asked = play.turn(play.call("Symbols", query="tell"), play.call("References", symbol="tell"))
    renamed = play.turn(play.call("Rename", symbol="tell", to="describe_amount"))
    script = [play.role("implementer", asked, renamed, play.submit("app/report.py", "app/bill.py"))]
    repo.task("rename tell() to describe_amount", script=script)
    (run,) = repo.runs("implementer")
    assert "- app/report.py:4: def tell(amount):\n  used in app/bill.py: 1, 5\n" in run.brief
    assert "## Map of the repository\n" in run.brief
    told = [each["content"] for each in run.results]
    assert {*told[:2]} == {  # calls of one turn run side by side
        "app/report.py:4: def tell(amount):",
        "app/bill.py:1: from app.report import tell\napp/bill.py:5: return tell(amount)",
    }
    assert told[2].startswith("renamed tell to describe_amount")
    assert repo.read("app/bill.py") == FILES["app/bill.py"].replace("tell", "describe_amount")
    assert repo.state()["repo_map"] in run.brief
