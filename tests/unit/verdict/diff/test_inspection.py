import pytest

from agentflow.core.evidence import CheckName
from agentflow.core.finding import FindingKind
from agentflow.verdict.diff.inspection import find_own_checks, find_suppressions

SUPPRESSIONS = {
    "x = 1  # noqa: E501": CheckName.LINT,
    "# ruff: noqa": CheckName.LINT,
    "x = 1  # pylint: disable=all": CheckName.LINT,
    "// eslint-disable-next-line eqeqeq": CheckName.LINT,
    "/* eslint-disable */": CheckName.LINT,
    "f() //nolint:errcheck": CheckName.LINT,
    "#[allow(dead_code)]": CheckName.LINT,
    "#![allow(warnings)]": CheckName.LINT,
    "x: int = ''  # type: ignore[assignment]": CheckName.TYPES,
    "# mypy: ignore-errors": CheckName.TYPES,
    "// @ts-ignore": CheckName.TYPES,
    "if x:  # pragma: no cover": CheckName.TESTS,
    "#[ignore]": CheckName.TESTS,
}


@pytest.mark.parametrize(("line", "check"), SUPPRESSIONS.items())
def test_a_new_suppression_is_told_where_its_check_is_required(line: str, check: CheckName) -> None:
    (said,) = find_suppressions("a.x", "one\n", f"one\n{line}\n", list(CheckName))

    assert (said.kind, said.check, said.place) == (FindingKind.SILENCED, check, "a.x:2")
    others = [one for one in CheckName if one is not check and one is not CheckName.FORMAT]
    assert not [*find_suppressions("a.x", "one\n", f"one\n{line}\n", others)]
    assert not [*find_suppressions("a.x", f"{line}\none\n", f"one\n{line}\n", list(CheckName))]


@pytest.mark.parametrize(
    "line",
    ["# ignore the type", "# no quality here", "x = 'nolint'", "# allow this", "// disable eslint later"],
)
def test_other_words_are_none(line: str) -> None:
    assert not [*find_suppressions("a.x", "", line, list(CheckName))]


OWN = """def pages(total):
    return total // 10


if __name__ == "__main__":
    for total, wanted in [(40, 4)]:
        if pages(total) != wanted:
            raise SystemExit(total)
"""


def find_places(before: str, after: str) -> list[int | None]:
    return [each.line for each in find_own_checks("a.py", before, after)]


def test_a_check_of_itself_that_expects_something_else_is_found() -> None:
    assert find_places(OWN, OWN.replace("4)", "5)")) == [5]
    assert find_places(OWN, OWN.replace("// 10", "// 9")) == []


def test_a_program_that_only_starts_otherwise_is_no_check() -> None:
    started = 'if __name__ == "__main__":\n    raise SystemExit(main())\n'
    assert find_places(started, started.replace("main()", "main(1)")) == []
