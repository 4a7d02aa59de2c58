from collections import Counter
from pathlib import Path

import pytest

from agentflow.core.languages import LANGUAGES
from agentflow.runners import table
from agentflow.runners.table import find_named_runners, get_form, list_runners, tell_each_test

WITHOUT_RUNNERS = {"calls", "fitting", "import_errors", "runner", "scripts", "selection", "table"}


def test_each_module_beside_the_table_has_runners() -> None:
    modules = {path.stem for path in Path(table.__file__).parent.glob("[a-z]*.py")}
    assert len(list_runners()) >= len(modules - WITHOUT_RUNNERS)
    assert modules >= WITHOUT_RUNNERS
    assert [name for name, count in Counter(each.name for each in list_runners()).items() if count > 1] == []


def test_tests_are_found_by_the_manifests_of_their_language() -> None:
    known = {each.name: each.manifests for each in reversed(LANGUAGES) if each.manifests}
    for runner in (each for each in list_runners() if each.rules):
        for rule in runner.rules:
            assert set(rule.manifest) <= set(known[runner.language]), runner.name


@pytest.mark.parametrize(
    ("command", "names", "form"),
    [
        ("coverage run -m pytest", ["pytest"], ""),
        ("python3 manage.py test -v 2", ["unittest"], ""),
        (
            "r=0; { go test ./...; } || r=1; { cargo test; } || r=1; exit $r",
            ["go", "cargo"],
            "{} TARGET -- NAME",
        ),
        ("npx jest --ci", [], "{} FILE -t NAME"),
        ("make test", [], ""),
    ],
)
def test_a_command_shows_its_runners(command: str, names: list[str], form: str) -> None:
    assert [each.name for each in find_named_runners(command)] == names
    if form:
        assert get_form(command.rpartition("{ ")[2]) == form


def test_a_red_unit_test_of_rust_keeps_no_other_tests_from_running() -> None:
    assert tell_each_test("A=1 cargo test --all -- x") == "A=1 cargo test --no-fail-fast --all -- x"
    assert tell_each_test("cargo test --no-fail-fast") == "cargo test --no-fail-fast"
