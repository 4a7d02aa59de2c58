"""What changed in a manifest or lock file, and what of it a person should look at."""

import time

import pytest

from agentflow.checks.dependencies import Difference, choose_audit, compare, find_manifest

PACKAGE = '{"dependencies": {"chalk": "1.0.0"}}'
LOCK = (
    '{"packages": {"": {"name": "app"}, "node_modules/chalk": {\n"version": "1.0.0",\n%s"resolved": "%s"}}}'
)
CARGO_LOCK = '[[package]]\nname = "rand"\nversion = "%s"\nsource = "%s"\n'
REGISTRY = "registry+https://index.example/crates"


def doubts(found: Difference) -> list[str]:
    return [doubt.said.removeprefix(f"{found.path}: ") for doubt in found.doubts]


def requirements(before: str, after: str) -> Difference:
    return compare("requirements.txt", before, after)


def package(text: str, path: str = "package.json") -> Difference:
    return compare(path, PACKAGE, text)


CHANGES = {
    "project": ("pyproject.toml", "[project]\ndependencies = [%s]\n"),
    "extra": ("pyproject.toml", "[project.optional-dependencies]\nweb = [%s]\n"),
    "group": ("pyproject.toml", "[dependency-groups]\ndev = [%s]\n"),
}


@pytest.mark.parametrize(("path", "text"), CHANGES.values(), ids=CHANGES)
def test_each_list_of_a_python_project_is_compared(path: str, text: str) -> None:
    found = compare(
        path, text % '"alpha>=1", "beta"', text % '"Alpha >= 2", "gamma_ray[fast]~=3; os_name==1"'
    )
    assert found.added == ("gamma-ray ~=3",)
    assert found.moved == ("alpha from >=1 to >= 2",)
    assert found.removed == ("beta",)
    assert not found.doubts


OTHERS = {
    "requirements/dev.txt": ("alpha==1.0\n", "# said\nalpha==1.1 \\\n    --hash=sha256:aa\n"),
    "package.json": ('{"devDependencies": {"alpha": "1.0"}}', '{"devDependencies": {"alpha": "1.1"}}'),
    "poetry.lock": (
        '[[package]]\nname = "alpha"\nversion = "1.0"\n',
        '[[package]]\nname = "alpha"\nversion = "1.1"\n',
    ),
    "package-lock.json": (
        '{"packages": {"node_modules/alpha": {"version": "1.0"}}}',
        '{"packages": {"node_modules/alpha": {"version": "1.1"}}}',
    ),
    "yarn.lock": ('alpha@^1:\n  version "1.0"\n', 'alpha@^1:\n  version "1.1"\n'),
    "pnpm-lock.yaml": (
        "packages:\n\n  alpha@1.0:\n    resolution: {}\n",
        "packages:\n\n  'alpha@1.1(x@1)':\n    a: 1\n",
    ),
    "Pipfile.lock": (
        '{"default": {"alpha": {"version": "==1.0"}}}',
        '{"default": {"alpha": {"version": "==1.1"}}}',
    ),
    "crates/one/Cargo.toml": (
        '[dependencies]\nalpha = "1.0"\n',
        '[dependencies]\nalpha = {version = "1.1"}\n',
    ),
    "Cargo.lock": (CARGO_LOCK % ("1.0", REGISTRY), CARGO_LOCK % ("1.1", REGISTRY)),
    "go.mod": ("require (\n\texample.com/a v1.0\n)\n", "require example.com/a v1.1 // indirect\n"),
    "go.sum": ("example.com/a v1.0 h1:x=\nexample.com/a v1.0/go.mod h1:y=\n", "example.com/a v1.1 h1:x=\n"),
}


@pytest.mark.parametrize("path", OTHERS)
def test_a_moved_version_is_told_in_each_kind_of_file(path: str) -> None:
    found = compare(path, *OTHERS[path])
    (moved,) = found.moved
    assert moved.split(" from ")[1].replace("=", "") in ("1.0 to 1.1", "v1.0 to v1.1")
    assert (found.added, found.removed, found.doubts) == ((), (), ())


def test_other_tables_of_a_manifest_are_no_dependencies() -> None:
    before, after = '[project]\nname = "a"\n', '[project]\nname = "b"\n[tool.ruff]\nselect = ["requestz"]\n'
    assert compare("pyproject.toml", before, after) == Difference(path="pyproject.toml")
    assert find_manifest("src/app.py") is None
    assert find_manifest("docs/requirements.md") is None


OUTSIDE = {
    "git": "alpha @ git+https://host.example/a.git@main",
    "editable": "-e git+ssh://git@host.example/a.git#egg=alpha",
    "wheel": "https://host.example/alpha-1-py3-none-any.whl",
    "other index": "--extra-index-url https://host.example/simple",
    "beside the repository": "../alpha",
    "by its path": "/opt/alpha",
}


@pytest.mark.parametrize("line", OUTSIDE.values(), ids=OUTSIDE)
def test_what_is_not_from_the_registry_is_to_be_looked_at(line: str) -> None:
    assert doubts(requirements("beta\n", f"beta\n{line}\n")) == [f"{line} is not from the registry"]
    assert not doubts(requirements(f"{line}\n", f"{line}\nbeta\n"))


@pytest.mark.parametrize(
    "spec",
    ["user/repo", "github:user/repo", "git@host.example:u/r.git", "file:../../x", "https://h.example/x.tgz"],
)
def test_a_package_from_elsewhere_is_to_be_looked_at(spec: str) -> None:
    found = package(f'{{"dependencies": {{"chalk": "1.0.0", "alpha": "{spec}"}}}}', "web/package.json")
    assert doubts(found) == [f"alpha {spec} is not from the registry"]


@pytest.mark.parametrize(
    "spec", ["^2.0.0", "file:../shared", "workspace:*", "npm:@scope/other@1.0", ">=1 <2", ""]
)
def test_a_package_of_the_registry_or_the_repository_is_no_doubt(spec: str) -> None:
    found = package(f'{{"dependencies": {{"chalk": "1.0.0", "alpha": "{spec}"}}}}', "web/package.json")
    assert not doubts(found)


@pytest.mark.parametrize(
    ("path", "after"),
    [
        ("go.mod", "require example.com/a v1.0\nreplace example.com/a => ../../a\n"),
        ("go.mod", "require example.com/a v1.0\nreplace example.com/a => example.com/b v1.0\n"),
        ("Cargo.toml", '[dependencies]\nalpha = {git = "https://host.example/a"}\n'),
        ("Cargo.toml", '[patch.crates-io]\nalpha = {path = "../alpha"}\n'),
        ("Cargo.lock", CARGO_LOCK % ("1.0", "git+https://host.example/rand#1")),
        ("uv.lock", '[[package]]\nname = "a"\nversion = "1"\nsource = {git = "https://host.example/a"}\n'),
        ("pyproject.toml", '[project]\ndependencies = ["a"]\n[tool.uv.sources]\na = {path = "../a"}\n'),
        ("package-lock.json", LOCK % ("", "git+ssh://git@host.example/chalk.git#1")),
    ],
)
def test_each_kind_of_file_tells_what_is_from_elsewhere(path: str, after: str) -> None:
    assert any("is not from the registry" in said for said in doubts(compare(path, "", after)))


def test_a_lock_that_takes_packages_from_another_host_is_to_be_looked_at() -> None:
    before = LOCK % ("", "https://registry.example/chalk.tgz")
    found = compare("package-lock.json", before, LOCK % ("", "https://evil.example/chalk.tgz"))
    assert doubts(found) == ["packages come from https://evil.example, which none did before"]
    assert not doubts(compare("package-lock.json", "", before))


def test_what_an_install_would_run_is_to_be_looked_at() -> None:
    script = '{"dependencies": {"chalk": "1.0.0"}, "scripts": {"postinstall": "node x.js", "test": "jest"}}'
    assert doubts(package(script)) == ["scripts.postinstall runs a script when it is installed: node x.js"]
    before = LOCK % ("", "https://registry.example/chalk.tgz")
    after = LOCK % ('"hasInstallScript": true,\n', "https://registry.example/chalk.tgz")
    assert doubts(compare("package-lock.json", before, after)) == ["chalk runs a script when it is installed"]


@pytest.mark.parametrize("name", ["reqeusts", "request", "requestss", "requestz", "rrequests"])
def test_a_name_one_letter_from_a_well_known_one_is_to_be_looked_at(name: str) -> None:
    assert doubts(requirements("", f"{name}==1\n")) == [f"{name} is one letter from requests: is it meant?"]


def test_a_name_one_letter_from_one_that_was_there_is_to_be_looked_at() -> None:
    assert doubts(requirements("in-house==1\n", "in-house==1\ninn-house==1\n")) == [
        "inn-house is one letter from in-house: is it meant?"
    ]


@pytest.mark.parametrize("name", ["requests", "httpx", "rich", "requests-cache", "attrs", "tomli"])
def test_a_name_of_its_own_is_no_doubt(name: str) -> None:
    assert not doubts(requirements("alpha==1\n", f"alpha==1\n{name}==1\n"))


def test_a_name_that_stood_there_already_is_no_doubt() -> None:
    assert not doubts(requirements("requestz==1\n", "requestz==2\n"))


@pytest.mark.parametrize(("spec", "is_told"), [("", True), (">=1", True), ("==1", False)])
def test_what_is_not_pinned_where_all_others_are_is_told(spec: str, is_told: bool) -> None:
    (added,) = requirements("alpha==1\nbeta==2\n", f"alpha==1\nbeta==2\ngamma{spec}\n").added
    assert added.endswith("(not pinned, as all others were)") is is_told
    (other,) = requirements("alpha\nbeta==2\n", f"alpha\nbeta==2\ngamma{spec}\n").added
    assert "pinned" not in other


@pytest.mark.parametrize(
    ("path", "text"), [("package.json", "{"), ("Cargo.toml", "[a"), ("poetry.lock", "=")]
)
def test_a_damaged_file_is_told_as_such(path: str, text: str) -> None:
    assert compare(path, "", text).damaged


@pytest.mark.parametrize(
    "text", ["[]", "null", '"a"', '{"dependencies": [1, {"a": 2}]}', '{"dependencies": 3}']
)
def test_a_document_of_another_shape_names_nothing(text: str) -> None:
    assert compare("package.json", "", text) == Difference(path="package.json")


def test_the_audit_is_of_the_folder_that_changed() -> None:
    assert choose_audit("a b/requirements.txt") == "pip-audit -r 'a b/requirements.txt'"
    assert choose_audit("web/package-lock.json") == "npm --prefix web audit"
    assert choose_audit("Cargo.lock") == "cargo-audit audit --file Cargo.lock"
    assert choose_audit("go.mod") == "govulncheck -C . ./..."
    assert choose_audit("app.py") is None


def test_hosts_are_found_in_a_lock_of_one_line() -> None:
    entry = '"node_modules/%s": {"resolved": "https://%s/x.tgz"}'
    before = f'{{"packages": {{{entry % ("a", "one.example")}, {entry % ("b", "one.example")}}}}}'
    after = f'{{"packages": {{{entry % ("a", "evil.example")}, {entry % ("b", "one.example")}}}}}'
    assert doubts(compare("package-lock.json", before, after)) == [
        "packages come from https://evil.example, which none did before"
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package-lock.json", '{"packages": "' + "resolved " * 200_000 + '"}'),
        ("yarn.lock", "a@:\n" + "\n" * 200_000),
        ("requirements.txt", "a" * 1_000_000 + "+" + " " * 1_000_000),
        ("requirements.txt", "a ==1" + " " * 100_000 + "x"),
        ("go.sum", "a" * 100_000 + " v" + "1" * 100_000),
        ("go.mod", "require a.b/c => " + " " * 1_000_000),
        ("package.json", '{"dependencies": {"a": "' + "=> " * 300_000 + '"}}'),
        ("package.json", '{"dependencies": ' + "[" * 200_000),
    ],
)
def test_no_file_takes_long(path: str, text: str) -> None:
    begin = time.process_time()
    compare(path, "", text)
    assert time.process_time() - begin < 5


def test_many_changed_paths_are_sorted_out_quickly() -> None:
    begin = time.process_time()
    assert not any(find_manifest(f"src/package{number}/module.py") for number in range(20_000))
    assert time.process_time() - begin < 2
