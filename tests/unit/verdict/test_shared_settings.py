import json
import tomllib

import pytest

from agentflow.verdict.mixed_files import is_shared, mix

BEFORE = """\
[build-system]
requires = ["hatchling"]

[project]
name = "pager"
version = "1.0"
dependencies = []

[tool.pytest.ini_options]
addopts = "--strict-markers"  # every marker is declared
xfail_strict = true

[tool.mypy]
strict = true

[tool.uv]
dev-dependencies = ["pytest"]
"""
NOW = BEFORE.replace('"1.0"', '"1.1"').replace("dependencies = []", 'dependencies = ["attrs"]')


def test_the_product_is_as_now_and_the_checkers_as_before() -> None:
    weakened = NOW.replace('"--strict-markers"', '"--ignore=tests/test_slow.py"')
    weakened = weakened.replace("[tool.mypy]\nstrict = true\n", "")

    mixed = tomllib.loads(mix("pyproject.toml", BEFORE, weakened))

    assert mixed["project"]["version"] == "1.1"
    assert mixed["project"]["dependencies"] == ["attrs"]
    assert mixed["tool"]["pytest"]["ini_options"]["addopts"] == "--strict-markers"
    assert mixed["tool"]["mypy"] == {"strict": True}
    assert mixed["tool"]["uv"] == {"dev-dependencies": ["pytest"]}


@pytest.mark.parametrize("tools", ["tool.mypy.strict = true\n", "tool = {mypy = {strict = true}}\n"])
def test_tables_of_any_form_are_told_apart(tools: str) -> None:
    before = f'{tools}[project]\nname = "pager"\nversion = "1.0"\n'
    now = '[project]\nname = "pager"\nversion = "1.1"\n'
    wanted = {"project": {"name": "pager", "version": "1.1"}, "tool": {"mypy": {"strict": True}}}
    assert tomllib.loads(mix("pyproject.toml", before, now)) == wanted


def test_a_file_whose_checkers_are_the_same_stays_as_it_is() -> None:
    assert mix("pyproject.toml", BEFORE, NOW) == NOW


@pytest.mark.parametrize(
    "sneaked",
    [
        '[project.entry-points.pytest11]\nhide = "pager.hide"\n',
        '[project.entry-points]\npytest11 = {hide = "pager.hide"}\n',
        '[tool.coverage.run]\nomit = ["*"]\n',
        "[tool.ruff]\nexclude = ['src']\n",
        '["tool"."pytest"."ini"]\na = 1\n',
    ],
)
def test_what_a_checker_would_obey_is_left_out(sneaked: str) -> None:
    mixed = mix("pyproject.toml", BEFORE, NOW + sneaked)

    assert tomllib.loads(mixed) in (tomllib.loads(NOW), tomllib.loads(BEFORE))


def test_text_that_only_looks_like_a_header_is_no_header() -> None:
    now = NOW + '\n[tool.mypy.extra]\nnote = """\n[project]\nname = "other"\n"""\n'

    assert tomllib.loads(mix("pyproject.toml", BEFORE, now)) in (tomllib.loads(NOW), tomllib.loads(BEFORE))


@pytest.mark.parametrize("damaged", ["[tool.pytest", "x = = 1", "[project]\nname='a'\nname='b'"])
def test_a_damaged_file_counts_as_it_was(damaged: str) -> None:
    assert mix("pyproject.toml", BEFORE, damaged) == BEFORE


def test_the_scripts_of_a_package_are_as_before() -> None:
    before = '{"name": "a", "scripts": {"test": "jest"}, "jest": {"bail": 1}}'
    now = '{"name": "a", "scripts": {"test": "jest || true"}, "dependencies": {"x": "1"}}'

    mixed = mix("web/package.json", before, now)

    assert '"test": "jest"' in mixed
    assert '"bail": 1' in mixed
    assert '"x": "1"' in mixed


def test_a_new_script_that_no_check_runs_is_the_products() -> None:
    before = '{"name": "a", "scripts": {"test": "run-p unit:* && npm run e2e"}}'
    now = before.replace("}}", ', "start": "node a.js"}}')

    assert mix("package.json", before, now) == now
    for name in ("pretest", "posttest", "prestart", "unit:slow", "e2e", "lint", "test:fast", "build"):
        sneaked = now.replace("}}", f', "{name}": "true"}}}}')
        assert json.loads(mix("package.json", before, sneaked)) == json.loads(now)
    assert '"test": "run-p' in mix("package.json", before, now.replace("run-p", "true"))


def test_a_name_by_which_tests_load_code_leads_where_it_did() -> None:
    before = '{"imports": {"#cart": "./lib/cart.js"}, "scripts": {"test": "x"}}'
    now = '{"imports": {"#cart": "./lib/plain.js", "#tax": "./lib/tax.js"}, "scripts": {"test": "x"}}'

    mixed = json.loads(mix("package.json", before, now))

    assert mixed["imports"] == {"#cart": "./lib/cart.js", "#tax": "./lib/tax.js"}
    assert mix("package.json", before, more := before.replace("{", '{"main": "a.js", ', 1)) == more


def test_sections_of_checkers_in_setup_cfg_are_as_before() -> None:
    before = "[metadata]\nname = a\n[tool:pytest]\naddopts = -ra\n"
    now = "[metadata]\nname = b\n[tool:pytest]\naddopts = -k nothing\n[options.extras_require]\nX = y\n"

    mixed = mix("setup.cfg", before, now)

    assert "name = b" in mixed
    assert "addopts = -ra" in mixed
    assert "X = y" in mixed


def test_only_files_with_both_kinds_of_settings_are_mixed() -> None:
    assert is_shared("sub/pyproject.toml")
    assert not is_shared("tox.ini")


CRATE = (
    '[package]\nname = "bill"\nversion = "0.1.0"\n\n[lib]\ndoctest = true\n\n'
    '[[test]]\nname = "a"\npath = "a.rs"\n'
)


def test_the_test_targets_of_a_crate_are_as_before() -> None:
    now = CRATE.replace("0.1.0", '0.2.0"\nautotests = false\nedition = "2021').replace("a.rs", "b.rs")
    now = now.replace("doctest = true", "doctest = false\nname = 'bill'")

    mixed = tomllib.loads(mix("Cargo.toml", CRATE, now))

    assert mixed["package"] == {"name": "bill", "version": "0.2.0", "edition": "2021"}
    assert mixed["test"] == [{"name": "a", "path": "a.rs"}]
    assert mixed["lib"] == {"doctest": True, "name": "bill"}


def test_a_manifest_of_a_crate_in_which_no_test_changed_is_that_of_now() -> None:
    now = CRATE.replace("0.1.0", "0.2.0") + '\n[dependencies]\nserde = "1"\n'

    assert mix("Cargo.toml", CRATE, now) == now
    assert mix("Cargo.toml", CRATE, "package = 1\n") != ""
