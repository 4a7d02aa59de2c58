import pytest

from agentflow.repair.engine import find_replacements

TEXTS = [
    ("a\nb\nc\n", "a\nB\nc\n"),
    ("x = 1\ny = 1\nx = 1\ny = 1\n", "x = 1\ny = 1\nx = 2\ny = 1\n"),
    ("a\na\na\na\n", "a\na\nb\na\n"),
    ("a\nb\n", "a\nif b:\n    return\nb\n"),
    ("a\nif b:\n    return\nb\n", "a\nb\n"),
    ("a\nb", "a\nc"),
    ("a\nb", "a\nb\n"),
    ("first\r\nsecond\r\n", "first\r\n2nd\r\n"),
    ("a\x0cb\u2028c\nd\n", "a\x0cb\u2028e\nd\n"),
    ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n13\n"),
    ("ä\nö\n", "ä\nü\n"),
]


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_each_old_text_is_unique_when_its_turn_comes(before: str, after: str) -> None:
    text = before
    for edit in find_replacements("a.py", before, after):
        assert edit.old_string != edit.new_string
        assert text.count(edit.old_string) == 1
        text = text.replace(edit.old_string, edit.new_string)
    assert text == after


def test_an_edit_within_a_line_holds_no_line_ending() -> None:
    (edit,) = find_replacements("a.py", "one\r\ntwo\r\n", "one\r\n2\r\n")
    assert (edit.old_string, edit.new_string) == ("two", "2")
