"""Run one required check and read what it showed."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from agentflow.checks.bytecode import had_bytecode, has_bytecode
from agentflow.checks.interpreter import variables
from agentflow.checks.results import counts, findings, junit
from agentflow.checks.unittest_output import unittest_verbose
from agentflow.core.evidence import Check, CheckName, TestCounts, TestOutcome
from agentflow.core.execution import Execution
from agentflow.core.record import Record
from agentflow.process import Command
from agentflow.sandbox.profile import CHECKS
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder

_TAIL_LINES = 40
_TAIL_CHARS = 8_000
_REPORT_BYTES = 64 << 20
"""Of a hundred thousand tests; a check may write as much as the disk holds."""
_SETTINGS = MappingProxyType(
    {
        "CI": "true",  # nobody is there: test runners neither watch nor ask
        "NO_COLOR": "1",
        "PY_COLORS": "0",
        "PYTHONHASHSEED": "0",  # base and final run are compared; set order must not tell them apart
        "PYTHONUNBUFFERED": "1",  # what a test prints stays where it was printed
        "RUFF_OUTPUT_FORMAT": "concise",
    }
)
_UNITTEST = re.compile(r"-m unittest\b")
_PYTEST = re.compile(r"\bpytest\b")


class Shown(Record):
    """What a check showed."""

    execution: Execution
    counts: TestCounts | None
    """None where the runner does not tell; of pytest and unittest no result means no test."""
    outcomes: Mapping[str, TestOutcome]
    findings: Mapping[str, int]


def execute(
    check: Check,
    sandbox: Sandbox,
    sink: Path,
    *,
    timeout: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    env: Mapping[str, str] | None = None,
) -> Shown:
    """Run a check in a repository, its output going to `sink`; it leaves nothing of ours behind.

    `env` is added last, such as the import path of a copy.
    """
    place = sandbox.place
    with scratch_folder() as scratch:
        report = scratch / "junit.xml"
        command = Command(
            argv=("bash", "-c", check.command),
            cwd=str(sandbox.root),
            timeout=check.timeout if timeout is None else timeout,
            env={**_environment(check, sandbox, scratch), **(env or {})},
        )
        finished = sandbox.of(CHECKS, scratch).run(command, sink, cancelled)
        is_whole = report.is_file() and report.stat().st_size <= _REPORT_BYTES
        written = report.read_text("utf-8", "replace") if is_whole else ""
    output = sink.read_text("utf-8", "replace")
    outcomes = _outcomes(check, written, output)
    return Shown(
        execution=_execution(check, sandbox, finished),
        counts=_counts(check, outcomes),
        outcomes=outcomes,
        findings={} if check.name is CheckName.TESTS else findings(output.replace(f"{place}/", "")),
    )


def _environment(check: Check, sandbox: Sandbox, scratch: Path) -> dict[str, str]:
    """Return the variables of a check; caches go where they vanish with the run."""
    caches = {
        "COVERAGE_FILE": str(scratch / "coverage"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "MYPY_CACHE_DIR": str(scratch / "mypy"),
        "RUFF_CACHE_DIR": str(scratch / "ruff"),
    }
    options = (
        *("-o", f"cache_dir={scratch / 'pytest'}"),
        *("-o", "junit_family=xunit1"),
        f"--junitxml={scratch / 'junit.xml'}",
    )
    pytest = {"PYTEST_ADDOPTS": shlex.join(options)} if check.name is CheckName.TESTS else {}
    return {**_SETTINGS, **caches, **pytest, **_compiled(sandbox.folders, scratch), **variables(sandbox.root)}


def _compiled(folders: Iterable[Path], scratch: Path) -> dict[str, str]:
    """Return what keeps a check from compiled code that is there already, and from leaving any.

    Compiling everything anew in a scratch folder costs seconds, so only a repository that needs it pays.
    """
    *below, top = folders
    if any(map(had_bytecode, below)) or has_bytecode(top):
        return {"PYTHONPYCACHEPREFIX": str(scratch / "pycache")}
    return {"PYTHONDONTWRITEBYTECODE": "1"}


def _outcomes(check: Check, report: str, output: str) -> dict[str, TestOutcome]:
    if check.name is not CheckName.TESTS:
        return {}
    found = unittest_verbose(output) if _UNITTEST.search(check.command) else {}
    return found | junit(report)


def _counts(check: Check, outcomes: Mapping[str, TestOutcome]) -> TestCounts | None:
    told = _UNITTEST.search(check.command) or _PYTEST.search(check.command)
    return counts(outcomes) if outcomes or (check.name is CheckName.TESTS and told) else None


def _execution(check: Check, sandbox: Sandbox, finished: Execution) -> Execution:
    """Return what ran, as it stands in the repository whatever copy it ran on."""
    return finished.replace(
        command=check.command,
        cwd=str(sandbox.root),
        tail="\n".join([*finished.tail.splitlines(), *finished.notes][-_TAIL_LINES:])[-_TAIL_CHARS:],
        sandbox=sandbox.level,
    )
