"""The required checks of repositories in other languages."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

from agentflow.checks.repository import Repository, table
from agentflow.checks.required import require
from agentflow.core.evidence import Check, CheckName
from agentflow.sandbox.environment import find_program

_NO_TEST = "no test specified"
"""What `npm init` writes in place of tests."""
_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
)
_SCRIPTS = (
    (CheckName.LINT, "lint"),
    (CheckName.FORMAT, "format:check"),
    (CheckName.BUILD, "build"),
    (CheckName.TESTS, "test"),
)
_LOCAL_TSC = MappingProxyType(
    {"npm": "npx --no-install tsc", "pnpm": "pnpm exec tsc", "yarn": "yarn run tsc", "bun": "bun run tsc"}
)
_RUST_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case)\b|\bproptest!")
_MAKE_TEST = re.compile(r"(?m)^test[ \t]*:(?!=)")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def node_checks(repository: Repository) -> Iterator[Check]:
    """Yield the scripts of package.json that are checks, and the TypeScript compiler."""
    package = _package(repository)
    if not package:
        return
    tool = _package_tool(repository, package)
    missing = _missing(repository, tool, "install Node.js" if tool == "npm" else f"npm install -g {tool}")
    scripts = table(package, "scripts")
    for name, script in _SCRIPTS:
        body = scripts.get(script)
        if isinstance(body, str) and body.strip() and _NO_TEST not in body:
            yield require(name, _script(tool, script), f"script {script!r} in package.json", missing)
    typed = "typescript" in table(package, "dependencies") | table(package, "devDependencies")
    if typed and repository.has("tsconfig.json"):
        yield require(CheckName.TYPES, f"{_LOCAL_TSC[tool]} --noEmit", "tsconfig.json", missing)


def go_checks(repository: Repository) -> Iterator[Check]:
    """Yield vet, golangci-lint where it is configured, and the tests."""
    if not repository.has("go.mod"):
        return
    missing = _missing(repository, "go", "install the Go toolchain")
    yield require(CheckName.LINT, "go vet ./...", "go.mod", missing)
    for name in (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"):
        if repository.has(name):
            absent = _missing(repository, "golangci-lint", "install golangci-lint")
            yield require(CheckName.LINT, "golangci-lint run", name, absent)
    if any(name.endswith("_test.go") for name in repository.files):
        yield require(CheckName.TESTS, "go test ./...", "go.mod", missing)


def rust_checks(repository: Repository) -> Iterator[Check]:
    """Yield cargo check, clippy where it is configured, and the tests."""
    if not repository.has("Cargo.toml"):
        return
    missing = _missing(repository, "cargo", "install the Rust toolchain")
    yield require(CheckName.TYPES, "cargo check --all-targets", "Cargo.toml", missing)
    manifest = repository.toml("Cargo.toml")
    if repository.has("clippy.toml", ".clippy.toml") or table(manifest, "lints", "clippy"):
        absent = missing or _missing(repository, "cargo-clippy", "rustup component add clippy")
        yield require(CheckName.LINT, "cargo clippy --all-targets -- -D warnings", "clippy settings", absent)
    sources = (name for name in repository.files if name.endswith(".rs"))
    if any(_RUST_TEST.search(repository.read(name)) for name in sources):
        yield require(CheckName.TESTS, "cargo test", "Cargo.toml", missing)


def jvm_checks(repository: Repository) -> Iterator[Check]:
    """Yield the tests of a Maven or Gradle build."""
    if not any("src/test/" in f"/{name}" for name in repository.files):
        return
    if repository.has("pom.xml"):
        start, missing = _wrapped(repository, "mvnw", "mvn", "install Maven")
        yield require(CheckName.TESTS, f"{start} -B test", "pom.xml", missing)
    elif repository.has("build.gradle", "build.gradle.kts"):
        start, missing = _wrapped(repository, "gradlew", "gradle", "install Gradle")
        yield require(CheckName.TESTS, f"{start} --no-daemon test", "build.gradle", missing)


def make_checks(repository: Repository) -> Iterator[Check]:
    """Yield the `test` target of a Makefile, for a repository that tells its tests in no other way."""
    makefile = next((name for name in _MAKEFILES if repository.has(name)), "")
    if makefile and _MAKE_TEST.search(repository.read(makefile)):
        missing = _missing(repository, "make", "install make")
        yield require(CheckName.TESTS, "make test", f"target 'test' in {makefile}", missing)


LANGUAGES: Sequence[Callable[[Repository], Iterator[Check]]] = (
    node_checks,
    go_checks,
    rust_checks,
    jvm_checks,
)


def _package(repository: Repository) -> dict[str, Any]:
    try:
        return table(json.loads(repository.read("package.json") or "{}"))
    except ValueError:
        return {}


def _package_tool(repository: Repository, package: dict[str, Any]) -> str:
    """Return the program that runs scripts: as package.json says, else by the lock file that is there."""
    said = str(package.get("packageManager", "")).partition("@")[0]
    locked = (name for lock, name in _LOCKS if repository.has(lock))
    return said if said in _LOCAL_TSC else next(locked, "npm")


def _script(tool: str, script: str) -> str:
    """Return how a script is run; `bun test` would be another thing than `bun run test`."""
    return f"{tool} test" if script == "test" and tool != "bun" else f"{tool} run {script}"


def _missing(repository: Repository, name: str, hint: str) -> str | None:
    return None if find_program(name, repository.root) else f"{name}: {hint}"


def _wrapped(repository: Repository, wrapper: str, name: str, hint: str) -> tuple[str, str | None]:
    """Return the build's own wrapper where there is one, and what is missing."""
    if repository.has(wrapper):
        return f"./{wrapper}", _missing(repository, "java", "install a JDK")
    return name, _missing(repository, name, hint)
