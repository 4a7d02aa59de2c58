"""Tests that the machine cannot run, whatever the code says: told by exact signatures, never by a claim."""

import re
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath

from agentflow.checks.repository import Repository, table
from agentflow.core.evidence import RED, CheckName, CheckRun, TestOutcome
from agentflow.core.regex import regex

_MISSING = regex(r"\bModuleNotFoundError: No module named '(?P<module>[\w.]+)'")
_NOT_FOUND = 127
"""What a shell ends with that knows no such command."""
_NOT_FOUND_IN_MAKE = regex(r"(?m)^make.*\bError 127$")
_PROGRAM = regex(
    r"(?m)^(?:.*: )?(?:(?:line )?\d+: (?P<name>[\w./@-]+): (?:command )?not found"
    r"|(?P<path>[\w./@-]+): No such file or directory)$"
)
_TOOL_VERSION = regex(r"Required version `[^`]+` does not match the running version `[^`]+`")
_PLUGIN = regex(
    r"(?m)^(?:.*: )?error: unrecognized arguments: (?P<options>--.*)$"
    r"|^ERROR: Missing required plugins: (?P<plugins>.*)$"
)
"""How pytest ends before any test where a plugin that its settings are made for is not installed."""
_USAGE = 4
_OFFLINE = regex(
    r"ENETUNREACH|EAI_AGAIN|ENOTFOUND|[Cc]ould not resolve host|Temporary failure in name resolution"
    r"|dial tcp: lookup|[Nn]etwork is unreachable"
)
_CLAUSE = regex(r"(?P<sign>~=|==|!=|<=|>=|<|>)\s*(?P<version>\d+(?:\.\d+)*)(?P<star>\.\*)?")

Version = tuple[int, ...]


def read_required_python(repository: Repository) -> str:
    """Return what the repository says of the Python it runs on, such as `>=3.11`; or empty."""
    said = table(repository.toml("pyproject.toml"), "project").get("requires-python")
    older = repository.ini("setup.cfg").get("options", "python_requires", fallback="")
    return said if isinstance(said, str) else older


def blockage(run: CheckRun, output: str, repository: Repository, running: Version | None) -> str:
    """Return the signature by which a check that is red is the machine's fault, or empty."""
    if run.check.missing is not None:
        return run.check.missing
    if run.evidence is None or run.green:
        return ""
    return _unable(run, output, repository) or _why_tests_cannot_run(run, output, repository, running)


def _unable(run: CheckRun, output: str, repository: Repository) -> str:
    """Return why a check that told nothing of the code could not even begin, or empty."""
    if run.tests_with_result or run.findings:
        return ""
    code = run.evidence.exit_code if run.evidence else None
    if code == _NOT_FOUND or _NOT_FOUND_IN_MAKE.search(output):
        names = [found["name"] or found["path"] for found in _PROGRAM.finditer(output)]
        hint = ": npm install" if repository.has("package.json") else ""
        return f"{', '.join(dict.fromkeys(names)) or 'a program'} is not found{hint}"
    if version := _TOOL_VERSION.search(output):
        return version[0]
    if code == _USAGE and (lacking := _PLUGIN.search(output)):
        wanted = lacking["plugins"] or f"the one that knows {lacking['options']}"
        return f"a plugin of pytest is not installed: {wanted.strip()}"
    return "it needs the network (--network opens it)" if _OFFLINE.search(output) else ""


def _why_tests_cannot_run(run: CheckRun, output: str, repository: Repository, running: Version | None) -> str:
    if run.check.name is not CheckName.TESTS:
        return ""
    wanted = read_required_python(repository)
    if wanted and running and not fits(running, wanted):
        return f"requires-python {wanted}, running {'.'.join(map(str, running))}"
    modules = _foreign(run, output, repository)
    said = f"ModuleNotFoundError: {', '.join(modules)} is neither here nor in the repository"
    return said if modules else ""


def _foreign(run: CheckRun, output: str, repository: Repository) -> list[str]:
    """Return the modules that are missing, if that is all that is wrong and none is the repository's own."""
    found = [match["module"] for match in _MISSING.finditer(output)]
    errors = len(run.ids(TestOutcome.ERROR))
    ran = run.ids(TestOutcome.PASSED, TestOutcome.FAILED)
    if not found or ran or errors != len(run.ids(*RED)) or len(found) < errors:
        return []
    paths = [PurePosixPath(path) for path in repository.files]
    own = {name for path in paths for name in (*path.parts, path.stem)}
    tops = {module.partition(".")[0] for module in found}
    return sorted(tops) if own.isdisjoint(tops) and tops.isdisjoint(sys.stdlib_module_names) else []


def fits(running: Version, wanted: str) -> bool:
    """Return whether a version satisfies every clause; a clause of another form is taken as satisfied."""
    return all(_holds(running, clause) for clause in _CLAUSE.finditer(wanted))


def _holds(running: Version, clause: Mapping[str, str] | re.Match[str]) -> bool:
    wanted = tuple(int(part) for part in clause["version"].split("."))
    size = max(len(running), len(wanted))
    now, then = _pad(running, size), _pad(wanted, size)
    same = running[: len(wanted)] == wanted if clause["star"] else now == then
    holds = {
        "==": same,
        "!=": not same,
        ">=": now >= then,
        "<=": now <= then,
        ">": now > then,
        "<": now < then,
        "~=": now >= then and running[: len(wanted) - 1] == wanted[:-1],
    }
    return holds[clause["sign"]]


def _pad(version: Version, size: int) -> Version:
    return (*version, *(0,) * (size - len(version)))
