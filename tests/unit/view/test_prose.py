"""Markdown of an answer on a terminal."""

import pytest

from agentflow.view.prose import draw_markdown
from agentflow.view.text import Medium, render

PLAIN = Medium(colour=False, ascii=False, live=True)
COLOURS = Medium(colour=True, ascii=False, live=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Prices\n\nAll of it.", "Prices\n\nAll of it.\n"),
        ("- one\n  - two `x`\n1. three", "• one\n  • two x\n1. three\n"),
        ("```python\nx = 1  # **no**\n```\nend", "    x = 1  # **no**\nend\n"),
        (
            "[docs](https://a.example/b), __init__.py",
            "docs (https://a.example/b), __init__.py\n",
        ),
        ("2 * 3 * 4 and a_b_c", "2 * 3 * 4 and a_b_c\n"),
    ],
    ids=["a heading", "lists", "code", "a link", "no marks"],
)
def test_marks_become_a_layout(text: str, shown: str) -> None:
    assert render(draw_markdown(text), PLAIN, None) == shown


def test_marked_words_have_a_style() -> None:
    shown = render(draw_markdown("**now** `f()` \x1b[2J"), COLOURS, None)
    assert shown.startswith("\x1b[1mnow\x1b[0m \x1b[36mf()\x1b[0m ")
    assert "\x1b[2J" not in shown


def test_long_items_hang_below_their_text() -> None:
    assert render(draw_markdown("- aaaa bbbb cccc"), PLAIN, 12) == "• aaaa bbbb\n  cccc\n"
