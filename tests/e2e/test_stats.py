"""`stats`: tables that fit a terminal, pictures, JSON."""

import xml.etree.ElementTree as ET
from pathlib import Path

from agentflow.core.task import Status
from tests.support import play
from tests.support.repo import Repo
from tests.unit.pages.test_stats import a_reply, a_run, record


def test_tasks_are_counted_in_tables_pictures_and_json(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "a repository", tmp_path / "home").write(play.QUICK).commit()
    assert "there is no task in this repository" in repo.run("stats").out
    ends = (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT, Status.ANSWERED, Status.LIMIT, None)
    for number, status in enumerate(ends):
        told = (a_run(1, "implementer", 1), a_reply(1234.5))
        record(
            repo.root,
            f"202601{number + 5:02}T000000Z-aaaa",
            "<script>&" if number else "direct",
            status,
            *told,
        )
    shown = repo.run("stats").out
    assert "5 tasks: 1 verified, 1 with caveat, 1 answered, 1 not verified, 1 open" in shown
    assert "2026-01-05 5 1 1 1 1 1 $6,172.50 2m00s" in [" ".join(row.split()) for row in shown.splitlines()]
    assert max(map(len, shown.splitlines())) <= 80
    assert repo.run("stats", "--json").json["total"]["came"]["verified"] == 1
    plot = repo.run("stats", "--plot").out
    assert "█" in plot
    ascii_plot = repo.run("stats", "--plot", env={"LANG": "C", "PYTHONIOENCODING": "ascii"}).out
    assert ascii_plot.isascii()
    assert "2026-01-05    ####" in ascii_plot
    written = repo.run("stats", "--plot", "weeks.svg")
    assert "Wrote weeks.svg" in written.out
    picture = ET.fromstring(repo.read("weeks.svg"))
    columns = [
        each.get("class") for each in picture.iter("{http://www.w3.org/2000/svg}rect") if each.get("class")
    ]
    assert columns[5:] == ["verified", "caveat", "answered", "not_verified", "open"]
    misused = repo.run("stats", "weeks.svg")
    assert misused.code == 2
    assert "a file is for --plot" in misused.err
