"""No sentence decides anything: with each text of a finding reworded, every verdict and decision stays."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.finding import FindingKind, Worded
from agentflow.core.record import encode
from agentflow.core.task import Phase
from agentflow.verdict.case import Case
from agentflow.verdict.diff.inspection import NO_INSPECTION, make_approval_id
from agentflow.verdict.judge import judge
from agentflow.wording import describe_all
from agentflow.workflow.judging import add_failure
from tests.e2e.test_tampering import HIDDEN
from tests.support.attempts import Attempt
from tests.support.tampering import BASE, TASK
from tests.unit.verdict import test_judge
from tests.unit.verdict.cases import a_task

_REWORDS = """\
import re
try:
    from agentflow.core.finding import Worded
    import agentflow.core.verdict
except ImportError:
    Worded = None
for kind in Worded.__subclasses__() if Worded else ():
    for each in kind:
        each.words = re.sub(r"({\\w*})|\\w+", lambda found: found[1] or "WORD", each.words)
"""
"""As `sitecustomize`: the command says nothing that it said before, but for names and numbers."""


def reword(text: str) -> str:
    return re.sub(r"({\w*})|\w+", lambda found: found[1] or f"~{len(found[0])}", text)


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def change() -> None:
        for each in (each for kind in Worded.__subclasses__() for each in kind):
            monkeypatch.setattr(each, "words", reword(each.words))

    yield change
    monkeypatch.undo()


def list_cases() -> list[Case]:
    tables = (table for table in vars(test_judge).values() if isinstance(table, dict))
    rows = (row if isinstance(row, tuple) else (row,) for table in tables for row in table.values())
    return [each for row in rows for each in row if isinstance(each, Case)]


def test_every_verdict_and_failure_is_the_same_in_other_words(reworded: Any) -> None:
    def decide() -> tuple[list[bytes], list[str], list[tuple[str, ...]]]:
        verdicts = [judge(case) for case in list_cases()]
        failed = [
            add_failure(a_task(tree="t"), Phase.VERIFICATION, verdict.reasons, case.after).failures[0]
            for case, verdict in zip(list_cases(), verdicts, strict=True)
        ]
        ids = [make_approval_id(NO_INSPECTION, (*each.reasons, *each.notes)) for each in verdicts]
        return (
            [encode((one, two)) for one, two in zip(verdicts, failed, strict=True)],
            ids,
            [describe_all((*each.reasons, *each.notes, *each.unproved)) for each in verdicts],
        )

    *before, said = decide()
    assert len(said) > 100
    reworded()
    *after, now = decide()
    assert after == before
    assert not any(one == two for one, two in zip(said, now, strict=True) if one)


def test_every_text_says_what_its_finding_holds() -> None:
    holds = {
        "check",
        "path",
        "names",
        "first",
        "list",
        "rest",
        "more",
        "detail",
        "all",
        "what",
        "0",
        "1",
        "2",
    }
    for kind in FindingKind:
        assert {*re.findall(r"{(\w*)}", kind.words)} <= holds, kind
    assert describe_all([FindingKind.AS_WORDED.of("{0}"), FindingKind.SOME_SKIPPED.of()]) == (
        "{0}",
        "None:  of  skipped",
    )


def test_what_was_approved_in_one_wording_holds_in_another(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    (tmp_path / "words").mkdir()
    (tmp_path / "words/sitecustomize.py").write_text(_REWORDS, "utf-8")
    other = {"PYTHONPATH": str(tmp_path / "words")}
    assert attempt.run(TASK, HIDDEN).code == 75
    (waiting,) = attempt.waiting
    assert attempt.repo.run("approve", waiting["id"], env=other).code == 0
    done = attempt.repo.run("resume", "--json", env=other)
    assert done.code == 0, done.err
    assert "WORD" in str(done.json["caveats"])
    task = attempt.repo.folder.name
    for env in (other, {}):
        seen = attempt.repo.run("verify", task, env=env)
        assert seen.code == 0, seen.out
