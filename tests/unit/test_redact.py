import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentflow.redact import make_visible, nest_text, to_one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 ✓ 👍", "plain é 日本 ✓ 👍"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\rwritten"),
        ("\x9b2J", "\\x9b2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("a\u200bb\u200d", "a\\u200bb\\u200d"),
        ("\ufeffa", "\\ufeffa"),
        ("\U000e0041", "\\U000e0041"),
        ("\x00\x08\x0b\x0c\x7f\x85", "\\x00\\x08\\x0b\\x0c\\x7f\\x85"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_what_steers_a_terminal_or_hides_is_shown(text: str, shown: str) -> None:
    assert make_visible(text) == shown


@given(st.text())
def test_what_was_made_visible_has_nothing_left_to_hide(text: str) -> None:
    shown = make_visible(text)
    assert make_visible(shown) == shown
    assert not {character for character in shown if ord(character) < 32} - {"\n", "\t"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n \n  first  \nsecond", "first"),
        ("x" * 120, "x" * 120),
        ("x" * 121, "x" * 119 + "…"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\n\n", ""),
    ],
)
def test_one_line_is_the_first_that_says_something(text: str, line: str) -> None:
    assert to_one_line(text) == line


@given(st.text(), st.integers(min_value=1, max_value=200))
def test_one_line_is_one_line_within_its_width(text: str, width: int) -> None:
    line = to_one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one", "one"),
        ("# one", "\\# one"),
        ("   ### one", "\\### one"),
        ("one\n# two\n\n## three\n", "one\n      # two\n\n      ## three"),
        ("one\n===", "one\n      ==="),
        ("one\r# two\u2028# three\x85# four", "one\\r# two\\u2028# three\\x85# four"),
        ("\n# two", "\\# two"),
        ("\x1b[2Jone", "\\x1b[2Jone"),
    ],
)
def test_foreign_lines_below_the_first_are_no_headings(text: str, shown: str) -> None:
    assert nest_text(text) == shown


@given(st.text(alphabet="# \n\ta-=\r"))
def test_no_foreign_text_begins_a_heading(text: str) -> None:
    assert not [line for line in nest_text(text).split("\n") if line[:4].lstrip(" ").startswith("#")]
