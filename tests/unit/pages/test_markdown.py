"""Foreign text in a comment: GitHub shows it as it is and takes nothing in it up."""

import re
from pathlib import Path

import pytest

from agentflow.core.evidence import Side
from agentflow.core.task import TaskState
from agentflow.core.verdict import MutantEnd, MutantResult
from agentflow.pages.diff import FileView
from agentflow.pages.markdown import escape_markdown, format_comment, format_part, to_code
from agentflow.pages.page import TaskPage
from agentflow.report.summary import make_survivors_part, summarize_task
from agentflow.verdict.paths import PathKind
from agentflow.view.tasks import Snapshot


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("thanks @octocat", r"@\w"),
        ("team @octo-org/team", r"@\w"),
        ("mail a@b.example", r"@\w"),
        ("fixes #12", r"#\d"),
        ("closes octo/cat#3", r"#\d"),
        ("see GH-12 and gh-13", r"(?i)gh-\d"),
        ("see JIRA-12", r"JIRA-\d"),
        ("at https://x.example/y", r"https?:"),
        ("at HTTP://x.example", r"(?i)http:"),
        ("at www.x.example", r"www\."),
        ("mailto:a", r"mailto:"),
        ("<script>alert(1)</script>", r"<"),
        ("<!-- hidden -->", r"<"),
        ("[a](javascript:alert(1))", r"(?<!\\)\["),
        ("![a](x.png)", r"(?<!\\)!"),
        ("`code`", r"(?<!\\)`"),
        ("*b* _i_ ~~s~~ $m$", r"(?<!\\)[*_~$]"),
        ("| a | b |", r"(?<!\\)\|"),
        ("&lt;script&gt;", r"&lt;"),
    ],
)
def test_what_github_takes_up_is_broken_up(text: str, taken: str) -> None:
    assert re.search(taken, text)
    assert not re.search(taken, escape_markdown(text).replace("&amp;lt;", ""))


@pytest.mark.parametrize(
    "text", ["# head", "- item", "+ item", "1. item", "12) item", "> quote", "=== x", "---", "~~~"]
)
def test_no_text_begins_a_block(text: str) -> None:
    assert not re.match(r"(#|[-+=>~]|\d+[.)])", escape_markdown(text))


def test_plain_text_stays_as_it_is() -> None:
    said = "add() returns a - b, not the sum (calc.py:2); 3 of 4 tests pass"
    assert escape_markdown(said) == said


def test_controls_are_visible_and_secrets_are_not() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    said = escape_markdown(f"\x1b[31m\u202e{secret}")
    assert secret not in said
    assert "\x1b" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize("text", ["a", "`a`", "``", "a ``` b", "`", " a"])
def test_no_backtick_ends_a_code_span(text: str) -> None:
    shown = to_code(text)
    ticks = re.match("`+", shown)
    assert ticks
    assert shown.endswith(ticks[0])
    assert ticks[0] not in re.findall("`+", shown[len(ticks[0]) : -len(ticks[0])])


def test_a_part_that_is_too_long_takes_no_other_part_with_it() -> None:
    state = TaskState(task_id="t", task="fix", started_at="", max_iterations=1, model="repair")
    changed = FileView(path="a.py", kind=PathKind.PRODUCT, reason="", added=1, removed=0, hunks=())
    snapshot = Snapshot(folder=Path(), state=state, events=(), evidence=())
    page = TaskPage(
        task_id="t",
        at_work=True,
        snapshot=snapshot,
        summary=summarize_task(state, snapshot.find, at_work=True),
        files=(changed,),
        diff="+" + "x" * 70_000,
    )
    comment = format_comment(page)
    assert "Some parts are left out" in comment
    assert "xxx" not in comment
    assert "a.py" in comment
    assert "The checks were run by the program" in comment


def test_what_no_test_notices_is_told_and_foreign_code_stays_text() -> None:
    mutants = tuple(
        MutantResult(
            path="a.py",
            line=line,
            before="x",
            after="y",
            operator="text replaced",
            edit=edit,
            is_strong=strong,
            outcome=outcome,
            code=code,
        )
        for line, edit, strong, outcome, code in (
            (3, "'<b>@you' → ''", True, MutantEnd.NO_COVERAGE, Side.FINAL),
            (4, "1 → 2", False, MutantEnd.SURVIVED, Side.BASE),
            (5, "1 → 2", True, MutantEnd.KILLED, Side.FINAL),
            (6, "1 → 2", True, MutantEnd.NOT_TRIED, Side.FINAL),
        )
    )
    assert format_part(make_survivors_part(mutants)).splitlines() == [
        "<details><summary>1 of 3 mutants killed, 1 not tried for want of time</summary>",
        "",
        "- `a.py:3` '&lt;b\\>@\u200byou' → '': no test notices",
        "- `a.py:4` 1 → 2 in the removed code: no test notices (weak: it decides nothing)",
        "",
        "</details>",
    ]
