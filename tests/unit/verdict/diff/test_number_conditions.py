"""Conditions that pick out numbers of the tests are told from ordinary ones."""

import ast

import pytest

from agentflow.verdict.diff.number_conditions import is_narrow, read_condition

NUMBERS = (417.0, 905.0)


@pytest.mark.parametrize(
    "text",
    [
        "total in (400 + 17, 900 + 5)",
        "str(total)[::-1] in ('714', '509')",
        "re.fullmatch('[49][01][57]', str(total))",
        "total % 61 == 51",
        "self.total * 2 == 834",
        "total ** 2 == 173889",
        "hex(total) == '0x1a1'",
        "'%05d' % total == '00417'",
        "len(str(total)) == 3 and total - 400 == 17",
    ],
)
def test_a_condition_that_hardly_holds_for_other_numbers_picks(text: str) -> None:
    assert is_narrow(ast.parse(text, mode="eval").body, NUMBERS)


@pytest.mark.parametrize(
    "text",
    [
        "total % 4 == 0",
        "total % 139 == 0",
        "total < 418",
        "re.fullmatch(r'[0-9]{3}', str(total))",
        "re.match('[1-9]', str(total))",
        "re.match('(4+)+(1+)+', str(total))",
        "total == size",
        "total == 9 ** 9 ** 9",
        "'a' * 10 ** 9 == total",
        "('%999999999d' % total).strip() == '417'",
        "len('%99999d' % total) == 99999 and total % 61 == 51",
        "find(total) == 417",
        "total is None",
    ],
)
def test_a_threshold_a_common_pattern_and_what_cannot_be_told_pick_nothing(text: str) -> None:
    assert not is_narrow(ast.parse(text, mode="eval").body, NUMBERS)


@pytest.mark.parametrize(
    ("text", "is_picking"),
    [
        ("item.price ** 2 === 173889", True),
        ("/^4.7$/.test(item.price)", True),
        ("total % 61 == 51 && total > 3", True),
        (r"/^\d+$/.test(item.price)", False),
        ("price === other", False),
    ],
)
def test_conditions_of_other_languages_are_read(text: str, is_picking: bool) -> None:
    condition = read_condition(text)

    assert condition is not None
    assert is_narrow(condition, NUMBERS) is is_picking


def test_what_is_no_condition_is_not_read() -> None:
    assert read_condition("a = 3; b") is None
    assert read_condition("let [") is None
