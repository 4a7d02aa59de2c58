import pytest

from agentflow.routing.wanted import Wanted, find_wanted

_WORDS = {
    Wanted.BEHAVIOUR: (
        "Fix the off-by-one in pages.py",
        "fix total in kit.py: it adds one to an empty list",
        "Add is_settled(a, b) to ledger/book.py: whether nothing is left to pay. With tests.",
        "Fix it with a test",
        "The last line is lost. Fix that, and add tests and documentation.",
        "fix the off-by-one in rename_comment()",
        "`run` should hand flags on to that command.",
        "rows_from_file should handle an empty input. Fix it, with a test.",
    ),
    Wanted.FORM: (
        "Fix the typo in a comment.",
        "The indentation of the documentation at the crate root is wrong, fix it.",
        "Add tests that pin what arrays do today.",
        "Add a test for the empty list",
        "Document Database.memory and add tests for it.",
        "rename total to add_up",
        "Refactor: put the check whether a key is a boolean flag into one function.",
        "Extract the parser of flags into a function",
        "split and join repeat the same check. Pull that out into one helper. Nothing else changes.",
        "The parsers of two classes repeat a part. Extract it into a function; behaviour stays the same.",
        "Remove the unused import",
        "fix all lint warnings in kit.py",
        "add type hints to kit.py",
    ),
    Wanted.UNCLEAR: (
        "Add a docstring and let the parser accept tabs; its behaviour stays the same without them",
        "Fix the bug where comments are dropped by the parser",
        "Make paging faster",
        "and also for the empty list",
        "put main at the end of the file",
    ),
}


@pytest.mark.parametrize(
    ("wanted", "task"), [(kind, task) for kind, tasks in _WORDS.items() for task in tasks]
)
def test_the_words_of_a_task_tell_behaviour_from_form(wanted: Wanted, task: str) -> None:
    assert find_wanted(task) is wanted


def test_a_task_that_names_the_changed_document_asks_for_text() -> None:
    assert find_wanted("Add the Danes to NEWS", ["NEWS.md"]) is Wanted.FORM
    assert find_wanted("Add the Danes to NEWS", ["kit.py"]) is Wanted.BEHAVIOUR
    companion = "Add Train-Case in the way of the other cases, with tests and README"
    assert find_wanted(companion, ["README.md"]) is Wanted.BEHAVIOUR
    assert find_wanted("Add Train-Case, with tests and README", ["README.md"]) is Wanted.BEHAVIOUR
    assert find_wanted("write docs/rounding.md about how tax is rounded", ["docs/rounding.md"]) is Wanted.FORM
    assert find_wanted("add cases to tests/data/cases.json", ["tests/data/cases.json"]) is Wanted.FORM


def test_a_fix_whose_task_names_the_changed_test_may_want_the_code_fixed() -> None:
    text = "Fix the off-by-one in pages.py, see test_pages.py"
    assert find_wanted(text) is Wanted.BEHAVIOUR
    assert find_wanted(text, checks=["tests/test_pages.py"]) is Wanted.UNCLEAR
