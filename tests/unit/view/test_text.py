import pytest

from agentflow.view.text import Line, Style, clip, column, count_cells, cut, fit_lines, line, span

HOSTILE = (
    "\x1b[2Jgone",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link",
    "\x9b31m",
    "safe\u202egnp.exe",
    "zero\u200bwidth",
    "tag\U000e0041",
    "back\x08space",
    "over\rwritten",
    "two\nlines",
    "line\u2028separator",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_span_has_nothing_that_a_terminal_would_obey(text: str) -> None:
    assert span(text).text.isprintable()
    assert line("before ", text).text.isprintable()
    assert column(text, 40).text.isprintable()


def test_hostile_text_stays_readable() -> None:
    assert span("\x1b[2J\n\u202e").text == r"\x1b[2J\n\u202e"


@pytest.mark.parametrize("text", ["[/x]", "[bold red]x[/]", "\\[x]", "{x}", "%s"])
def test_markup_is_only_text(text: str) -> None:
    assert span(text, Style.BAD).text == text


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("naïve", 5), ("✓ ok", 4)]
)
def test_columns_are_counted_as_a_terminal_does(text: str, width: int) -> None:
    assert count_cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdef", 4, "abc…"), ("日本語", 4, "日…"), ("abc", 1, "…")],
)
def test_clipped_text_is_as_wide_as_allowed(text: str, width: int, shown: str) -> None:
    assert clip(text, width) == shown


def test_a_cut_line_keeps_its_styles() -> None:
    one = cut(line(span("good ", Style.GOOD), span("and so on", Style.DIM)), 9)
    assert one.text == "good and…"
    assert [part.style for part in one.spans] == [Style.GOOD, Style.DIM]


LONG = line(
    "  ",
    span("✓ ", Style.GOOD),
    span("tests  "),
    span("python -m pytest -q  日本語日本語日本語 "),
    span("a" * 90, Style.DIM),
    hang=4,
)


@pytest.mark.parametrize("width", range(10, 130, 3))
def test_no_fitted_line_is_too_wide_and_none_loses_a_character(width: int) -> None:
    rows = list(fit_lines([LONG], width))
    assert max(count_cells(row.text) for row in rows) <= width
    together = "".join(row.text for row in rows).replace(" ", "")
    assert together == LONG.text.replace(" ", "")


def test_a_wrapped_line_hangs_and_breaks_between_words() -> None:
    rows = [row.text for row in fit_lines([line("label  ", "one two three four", hang=7)], 17)]
    assert rows == ["label  one two", "       three four"]


def test_a_line_that_fits_is_left_alone() -> None:
    padded = line(column("name", 12), "x   y")
    assert list(fit_lines([padded], 17)) == [padded]


def test_filling_of_columns_goes_before_words_are_wrapped() -> None:
    row = line("✓ ", column("lint", 12), column("0", 12), "ruff")
    assert [one.text for one in fit_lines([row], 20)] == ["✓ lint  0  ruff"]


def test_columns_stay_where_they_fit_and_only_the_rest_is_wrapped() -> None:
    row = line("✓ ", column("lint", 12), "ruff check .", hang=4)
    assert [one.text for one in fit_lines([row], 20)] == ["✓ lint        ruff", "    check ."]


def test_indentation_within_a_span_is_not_filling() -> None:
    row = line("    ", span("+        return first and second"), hang=5)
    assert next(fit_lines([row], 30)).text == "    +        return first and"


def test_an_empty_line_stays_empty() -> None:
    assert list(fit_lines([Line(), line("")], 10)) == [Line(), line("")]
