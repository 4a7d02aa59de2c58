"""A language that nobody has thought of: one record in the table, and every rule applies to it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.house.test_tour import Copy, tour
from tests.support import play
from tests.support.repo import Repo

RECORD = r"""LANGUAGES: tuple[Language, ...] = (
    Language(
        name="Lish",
        suffixes=(".lish",),
        manifests=("lish.pkg",),
        rules=(
            CheckRule(
                name=CheckName.TESTS,
                command="sh run.lish",
                manifest=("lish.pkg",),
                files="**/*_proves.lish",
                programs=(("sh", "install a shell"),),
            ),
        ),
        tests=("*_proves.lish",),
        settings=("lish.conf",),
        packages=("lish_modules",),
        caches=(".lish_cache",),
    ),"""
LEFT_OUT = (
    '        tests=("*_proves.lish",),\n',
    '        settings=("lish.conf",),\n',
)
CODE = """add() {
  echo $(($1 - $2))
}


unused() {
  true  # does nothing
}
"""
FILES = {
    "lish.pkg": "calc\n",
    "lish.conf": "strict\n",
    "calc.lish": CODE,
    "add_proves.lish": '. ./calc.lish\n[ "$(add 1 2)" = 3 ] && echo "ok 1 - add" || echo "not ok 1 - add"\n',
    "run.lish": """echo 1..1
if [ -e .lish_cache/stale ]; then echo "not ok 1 - add"; exit 1; fi
out=$(sh ./add_proves.lish); echo "$out"; case $out in ok*) exit 0 ;; *) exit 1 ;; esac
""",
    ".gitignore": ".lish_cache/\n",
}
MENDED = play.edit("calc.lish", "$1 - $2", "$1 + $2")


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    repo = Repo(tmp_path / "repo", tmp_path / "home").write(FILES).commit()
    (repo.root / ".lish_cache").mkdir()
    (repo.root / ".lish_cache/stale").touch()
    program = Copy(root, tmp_path / "program", repo, tour(root))
    program.change("a language", languages=(("LANGUAGES: tuple[Language, ...] = (", RECORD),))
    return program


def carry_out(copy: Copy, *turns: dict[str, Any]) -> dict[str, Any]:
    said = copy.run(
        "task", play.TEXT, "--json", script=[play.role("implementer", *turns), play.verified("ev-0002")]
    )
    told: dict[str, Any] = json.loads(said.splitlines()[0])
    return told


def test_its_checks_are_found(copy: Copy) -> None:
    assert "sh run.lish" in copy.run("verify", "--dry-run")


def test_a_task_in_it_ends_with_what_no_grammar_reads(copy: Copy) -> None:
    told = carry_out(copy, *MENDED, play.submit("calc.lish"))
    assert (told["exit_code"], told["caveats"], told["unproved"]) == (4, ["not_all_tried"], [])
    assert [each["kind"] for each in told["paths"]] == ["product"]
    report = (copy.repo.folder / "report.md").read_text("utf-8")
    assert "calc.lish: left out: the code cannot be read" in report
    assert "- tests: add_proves.lish\n- settings of a checker: lish.conf\n" in report
    (run,) = copy.repo.runs("implementer")
    assert "Lish" in json.dumps(run.entries)


def test_what_its_record_does_not_say_is_not_known(copy: Copy) -> None:
    table = copy.place / "agentflow/core/languages.py"
    text = table.read_text("utf-8")
    for line in LEFT_OUT:
        assert line in text
        text = text.replace(line, "")
    table.write_text(text, "utf-8")
    told = carry_out(copy, *MENDED, play.submit("calc.lish"))
    report = (copy.repo.folder / "report.md").read_text("utf-8")
    assert (told["exit_code"], told["caveats"]) == (4, ["not_all_tried"])
    assert "- tests: add_proves.lish" not in report
    assert "lish.conf" not in report
