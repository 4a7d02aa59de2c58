from typing import Any

import pytest

from agentflow.core.record import Record, to_builtins
from agentflow.core.role import Change, Findings, Judgement, Plan, Review
from agentflow.loop.history import fit_input, fit_submission
from agentflow.parse import Mismatch


class Inner(Record):
    name: str


class Asked(Record):
    path: str
    limit: int | None = None
    deep: bool = False
    globs: tuple[str, ...] = ()
    items: tuple[Inner, ...] = ()
    options: dict[str, Any] = {}


@pytest.mark.parametrize(
    "good",
    [
        {"path": "60"},
        {"path": '{"a": 1}'},
        {"path": '["a"]', "globs": ['["b"]', "60"]},
        {"path": "x", "limit": 60},
        {"path": "", "options": {"input": {"path": "y"}, "n": "60"}},
        {"path": "true", "deep": True},
    ],
)
def test_what_fits_is_not_touched(good: dict[str, Any]) -> None:
    found = fit_input(Asked, good)
    assert {key: getattr(found, key) for key in good} == {
        key: tuple(value) if isinstance(value, list) else value for key, value in good.items()
    }


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"path": "x", "limit": "60"}, Asked(path="x", limit=60)),
        ({"path": "x", "deep": "true"}, Asked(path="x", deep=True)),
        ({"path": "x", "globs": '["a", "b"]'}, Asked(path="x", globs=("a", "b"))),
        ({"path": "x", "globs": "[ab].py"}, Asked(path="x", globs=("[ab].py",))),
        ({"path": "x", "globs": "*.py"}, Asked(path="x", globs=("*.py",))),
        ({"path": "x", "items": {"name": "a"}}, Asked(path="x", items=(Inner(name="a"),))),
        ({"path": "x", "items": '[{"name": "a"}]'}, Asked(path="x", items=(Inner(name="a"),))),
        ({"path": "x", "items": '{"name": "a"}'}, Asked(path="x", items=(Inner(name="a"),))),
        ({"path": "x", "options": '{"a": 1}'}, Asked(path="x", options={"a": 1})),
        ({"input": {"path": "x"}}, Asked(path="x")),
        ({"input": {"path": "x", "limit": "60", "globs": "a"}}, Asked(path="x", limit=60, globs=("a",))),
    ],
)
def test_the_same_values_in_another_spelling_are_taken(given: dict[str, Any], meant: Asked) -> None:
    assert fit_input(Asked, given) == meant


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, ""),
        ({"path": None}, "path"),
        ({"path": "x", "limit": "sixty"}, "limit"),
        ({"path": "x", "limit": 1.5}, "limit"),
        ({"path": "x", "colour": "red"}, ""),
        ({"path": "x", "globs": [1]}, "globs[0]"),
        ({"path": "x", "items": '[{"name": 1}]'}, "items"),
        ({"input": {"path": "x"}, "limit": 3}, ""),
        ({"input": "x"}, ""),
    ],
)
def test_what_cannot_be_meant_is_a_mismatch_of_the_input_as_given(given: dict[str, Any], key: str) -> None:
    with pytest.raises(Mismatch) as caught:
        fit_input(Asked, given)
    assert caught.value.key == key


@pytest.mark.parametrize("kind", [Change, Plan])
def test_nothing_is_invented_for_what_is_missing(kind: type[Record]) -> None:
    with pytest.raises(Mismatch, match="missing required field"):
        fit_input(kind, {"summary": "done"})


ISSUE = {"severity": "minor", "kind": "style", "path": "a.py", "line": 2, "message": "terse"}


@pytest.mark.parametrize(
    ("kind", "given", "meant", "ignored"),
    [
        (Change, {"summary": "s"}, {"summary": "s", "files": []}, ()),
        (Change, {"summary": "s", "files": None, "why": 1}, {"summary": "s", "files": []}, ("why",)),
        (
            Review,
            {"verdict": "APPROVED", "issues": [{**ISSUE, "line": "2", "suggestion": "none"}], "score": 1},
            {"verdict": "APPROVED", "issues": [ISSUE]},
            ("score", "issues.suggestion"),
        ),
        (Review, {"verdict": "APPROVED", "issues": ISSUE}, {"verdict": "APPROVED", "issues": [ISSUE]}, ()),
        (
            Judgement,
            {"verdict": "failed", "evidence": [3]},
            {"verdict": "FAILED", "evidence": ["3"], "reasons": []},
            (),
        ),
        (
            Review,
            {"verdict": "Approved", "issues": [{**ISSUE, "line": "L2-4", "severity": "Minor"}]},
            {"verdict": "APPROVED", "issues": [ISSUE]},
            (),
        ),
        (
            Plan,
            {"summary": "s", "steps": ["mend it"]},
            {"summary": "s", "steps": [{"title": "mend it", "files": []}], "acceptance": [], "risks": []},
            (),
        ),
        (Change, {"summary": "s", "files": [{"path": "a.py"}]}, {"summary": "s", "files": ["a.py"]}, ()),
    ],
)
def test_a_slip_of_form_loses_no_result(
    kind: type[Record], given: dict[str, Any], meant: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    found, unknown = fit_submission(kind, given)
    assert (to_builtins(found), set(unknown)) == (meant, set(ignored))


@pytest.mark.parametrize(
    "given", [{}, {"verdict": "FINE"}, {"issues": []}, {"verdict": "APPROVED", "issues": [{}]}]
)
def test_what_a_result_says_is_not_invented(given: dict[str, Any]) -> None:
    with pytest.raises(Mismatch):
        fit_submission(Review, given)


def test_an_item_that_fits_in_no_way_is_left_out_alone() -> None:
    wrong = {"claim": "here", "path": "a.py"}
    given = {"summary": "s", "findings": [wrong, {**wrong, "line": 2}]}
    with pytest.raises(Mismatch, match="line"):
        fit_submission(Findings, given)
    found, left = fit_submission(Findings, given, drops=True)
    assert to_builtins(found)["findings"] == [{**wrong, "line": 2}]
    assert left == ("findings.1",)


def test_the_given_input_is_not_changed() -> None:
    given = {"input": {"path": "x", "globs": "a"}}
    fit_input(Asked, given)
    assert given == {"input": {"path": "x", "globs": "a"}}
