"""Runners of tests, one record each: how a command shows one, what makes it report, what it prints."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentflow.checks.repository import get_table, parse_manifest
from agentflow.core.check_command import join_parts, split_command
from agentflow.core.record import Record
from agentflow.core.regex import regex


class TestRunner(Record):
    """What is known of one runner, or of one way to start several."""

    name: str
    program: str = ""
    """An expression for the words that start it, in a command or script that is but one run of it."""
    report: str = ""
    """The options by which it writes a report, `{place}` the file without its ending."""
    variables: dict[str, str] = {}
    """The variables by which it writes one, `{place}` a folder."""
    leaves: str = ""
    """Where it leaves reports in JUnit's form by itself, as a pattern of `find -path`."""
    total: str = ""
    """The line with its sum; its groups are named as outcomes are, or `total`."""
    adds_up: bool = False
    """Each such line is of other tests; else the last one counts."""
    one: dict[str, str] = {}
    """How one test is run, `{}` the command, by a part of the command that shows the runner."""


_NODE_PLACE = r"(?:node (?:--[\w=-]+ )*)?(?:(?:\./)?node_modules/(?:\.bin/|jest/bin/|vitest/))?"
_SUREFIRE = r"Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), "
TEST_RUNNERS = (
    TestRunner(
        name="jest",
        program=rf"{_NODE_PLACE}jest(?:\.m?js)?",
        report="--json --outputFile={place}.json",
        one={"jest": "{} FILE -t NAME"},
    ),
    TestRunner(
        name="vitest",
        program=rf"{_NODE_PLACE}vitest(?:\.m?js)?",
        report="--reporter=default --reporter=json --outputFile.json={place}.json",
        one={"vitest": "{} FILE -t NAME"},
    ),
    TestRunner(
        name="scripts of package.json",
        one={
            "npm test": "{} -- FILE",
            **dict.fromkeys(("pnpm test", "yarn test", "bun run test"), "{} FILE"),
        },
    ),
    TestRunner(
        name="bun",
        program="bun test",
        report="--reporter=junit --reporter-outfile={place}.xml",
        one={"bun test": "{} FILE -t NAME"},
    ),
    TestRunner(
        name="deno",
        program="deno test",
        report="--junit-path={place}.xml",
        total=r"(?:ok|FAILED) \| (?P<passed>\d+) passed(?: \([^)]*\))? \| (?P<failed>\d+) failed"
        r"(?: \([^)]*\))?(?: \| (?P<skipped>\d+) ignored)?.*",
        one={"deno test": "{} FILE --filter NAME"},
    ),
    TestRunner(
        name="PHPUnit",
        program=r"(?:\./)?(?:vendor/bin/)?(?:phpunit|pest)",
        report="--log-junit {place}.xml",
        total=r"OK \((?P<passed>\d+) tests?, \d+ assertions?\)"
        r"|Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?"
        r"(?:, Failures: (?P<failed>\d+))?(?:, [A-Z][\w ]+: \d+)*?(?:, Skipped: (?P<skipped>\d+))?"
        r"(?:, [A-Z][\w ]+: \d+)*\.",
        one={"phpunit": "{} --filter NAME", "composer test": "{} -- --filter NAME"},
    ),
    TestRunner(
        name="RSpec",
        variables={"SPEC_OPTS": "--format progress --format json --out {place}/rspec.json"},
        total=r"(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?"
        r"(?:, (?P<errors>\d+) errors? occurred outside of examples)?",
        one={"rspec": "{} FILE:LINE"},
    ),
    TestRunner(
        name="minitest",
        variables={"RUBYLIB": "{place}"},
        total=r"(?P<total>\d+) (?:runs|tests), \d+ assertions, "
        r"(?P<failed>\d+) failures, (?P<errors>\d+) errors, "
        r"(?:(?P<skipped>\d+) skips|\d+ pendings, (?P<omitted>\d+) omissions.*)",
        one={"rake test": "{} TEST=FILE", "rails test": "{} FILE:LINE"},
    ),
    TestRunner(
        name="Maven",
        leaves="*/target/*-reports/TEST-*.xml",
        total=rf"(?:\[\w+\] )?{_SUREFIRE}Skipped: (?P<skipped>\d+)",
        adds_up=True,
        one={"mvn": "{} -Dtest=CLASS#METHOD"},
    ),
    TestRunner(
        name="Gradle",
        leaves="*/build/test-results/*/TEST-*.xml",
        one={"gradle": "{} --tests CLASS.METHOD"},
    ),
    TestRunner(
        name=".NET",
        total=r"(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), "
        r"Skipped: +(?P<skipped>\d+), Total: +\d+.*",
        adds_up=True,
        one={"dotnet test": "{} --filter FullyQualifiedName~NAME"},
    ),
    TestRunner(
        name="ExUnit",
        total=r"(?:(?P<doctests>\d+) doctests?, )?(?:(?P<properties>\d+) propert\w+, )?"
        r"(?P<total>\d+) tests?, (?P<failed>\d+) failures?"
        r"(?:, (?P<invalid>\d+) invalid)?(?:, \d+ excluded)?(?:, (?P<skipped>\d+) skipped)?(?: \(.*\))?",
        adds_up=True,
        one={"mix test": "{} FILE:LINE"},
    ),
    TestRunner(
        name="XCTest",
        total=r"\t? *Executed (?P<total>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?"
        r"(?P<failed>\d+) failures? .*",
        one={"swift test": "{} --filter NAME"},
    ),
    TestRunner(name="go", one={"go test ./...": "go test ./FOLDER -run NAME"}),
    TestRunner(name="cargo", one={"cargo test": "{} NAME"}),
    TestRunner(name="CTest", one={"ctest": "{} -R NAME"}),
)


class ScriptCommand(Record):
    """A command that runs what a manifest calls `test`."""

    command: str
    """An expression."""
    manifests: tuple[str, ...]
    table: str
    separator: str = ""
    """What stands between the command and options for the script."""


_SCRIPT_COMMANDS = (
    ScriptCommand(
        command="npm (?:run )?test(?: --ignore-scripts)?",
        manifests=("package.json",),
        table="scripts",
        separator=" --",
    ),
    ScriptCommand(command="(?:pnpm|yarn|bun) (?:run )?test", manifests=("package.json",), table="scripts"),
    ScriptCommand(
        command="composer (?:run(?:-script)? )?test",
        manifests=("composer.json",),
        table="scripts",
        separator=" --",
    ),
    ScriptCommand(command="deno task test", manifests=("deno.json", "deno.jsonc"), table="tasks"),
)
_BEGIN = r"(?:cross-env )?(?:\w+=[\w./:-]+ )*(?:(?:npx|bunx) (?:--no-install )?|pnpm exec |yarn )?"
_ALONE = tuple(
    (each, regex(rf"{_BEGIN}{each.program}(?: [^;&|<>()`$]*)?")) for each in TEST_RUNNERS if each.program
)
_OWN_REPORT = regex(
    r"--(?:json|outputFile|reporters?|reporter-outfile|junit-path|log-junit)\b|--watch(?!=false)| -- "
)
_WATCHES = regex(r"(?:^|\s)(--watch(?:All)?(?:=true)?)(?=\s|$)")
ReadFile = Callable[[str], str]


def find_script(command: str, read: ReadFile, folder: str = "") -> tuple[str, str] | None:
    """Return what a command runs by the manifest of its folder, and what stands before further options."""
    for each in _SCRIPT_COMMANDS:
        if regex(each.command).fullmatch(command):
            manifests = (parse_manifest(read(folder + name)) for name in each.manifests)
            for manifest in manifests:
                if body := get_script(manifest, each.table):
                    return body, each.separator
    return None


def get_script(manifest: dict[str, Any], table: str) -> str:
    """Return the one command that a manifest calls `test`; empty where there is none, or are several."""
    said = get_table(manifest, table).get("test")
    said = said.get("command") if isinstance(said, dict) else said
    said = said[0] if isinstance(said, list) and len(said) == 1 else said
    return said.strip() if isinstance(said, str) else ""


class Watching(Record):
    """A test command that does not end: it waits for changed files."""

    option: str
    """By which it does so."""
    instead: str
    """The same command without it."""


def find_watching(command: str, read: ReadFile) -> Watching | None:
    """Return how a command, or the script that it runs, watches for changes; None where it ends."""
    for part in split_command(command):
        body = (find_script(part.command, read, part.folder) or (part.command, ""))[0]
        if found := _WATCHES.search(body):
            once = part.replace(command=f"{body[: found.start()]}{body[found.end() :]}".strip())
            return Watching(option=found[1], instead=once.text)
    return None


def add_reports(command: str, read: ReadFile, scratch: Path) -> str:
    """Return a command in which each part that is one run of a known runner writes a report beside."""
    parts = split_command(command)
    places = [scratch / ("runner" if len(parts) == 1 else f"runner-{at}") for at in range(len(parts))]
    return join_parts(
        part.replace(command=part.command + _find_options(part.command, part.folder, read, place))
        for part, place in zip(parts, places, strict=True)
    )


def _find_options(command: str, folder: str, read: ReadFile, place: Path) -> str:
    body, separator = find_script(command, read, folder) or (command, "")
    runner = next((each for each, alone in _ALONE if alone.fullmatch(body)), None)
    if runner is None or _OWN_REPORT.search(body):
        return ""
    return f"{separator} {runner.report.format(place=shlex.quote(str(place)))}"


def keep_reports(command: str, scratch: Path) -> str:
    """Return a command that puts the reports which runners leave in the repository into a folder of ours."""
    mine = (each for each in TEST_RUNNERS if any(start in command for start in each.one))
    found = [each.leaves for each in mine if each.leaves]
    if not found:
        return command
    began, place = scratch / "began", scratch / "left"
    began.touch()
    place.mkdir()
    paths = " -o ".join(f"-path {shlex.quote(each)}" for each in found)
    copy = """'for f; do cp "$f" "$0/$(printf %s "$f" | tr / _)"; done'"""
    find = f"find . \\( {paths} \\) -newer {shlex.quote(str(began))} -exec sh -c {copy}"
    return f"({command}); r=$?; {find} {shlex.quote(str(place))} {{}} +; exit $r"


def find_form(command: str) -> str:
    """Return how a command runs one test, with placeholders in capitals; empty for an unknown runner."""
    return get_form(command).format(command)


def get_form(command: str) -> str:
    """Return the same with `{}` for the command."""
    forms = (form for each in TEST_RUNNERS for start, form in each.one.items() if start in command)
    return next(forms, "")


def make_variables(scratch: Path, known: Callable[[str], str]) -> dict[str, str]:
    """Return the variables by which runners report into a folder; `known` tells what they hold anyway."""
    given = {
        name: value.format(place=scratch) for each in TEST_RUNNERS for name, value in each.variables.items()
    }
    return {
        name: os.pathsep.join(filter(None, (value, known(name)))) if name == "RUBYLIB" else value
        for name, value in given.items()
    }
