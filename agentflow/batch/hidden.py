"""The hidden check of a task: run after the verdict, on a copy of the final files, in the sandbox."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from agentflow.api.boundary import Wish, open_sandbox
from agentflow.batch.folder import TaskFolder
from agentflow.batch.results import HiddenResult
from agentflow.batch.task import HiddenCheck
from agentflow.checks.repository import WellKnown
from agentflow.checks.run import Shown
from agentflow.core.evidence import Check, CheckName, TestOutcome
from agentflow.core.task import TaskState
from agentflow.process import capture
from agentflow.redact import list_some, visible
from agentflow.sandbox.throwaway import scratch_folder
from agentflow.verdict.reverify import Copies
from agentflow.workspace.git import open_repository


def examine(folder: TaskFolder, state: TaskState, switches: Collection[str]) -> HiddenResult:
    """Return whether the final files of a task pass its hidden check. Raises NoSandbox."""
    check = folder.task.check
    assert check is not None
    git = open_repository(folder.clone)
    wish = Wish(no_sandbox="--no-sandbox" in switches, network="--network" in switches)
    copies = Copies(git=git, sandbox=open_sandbox(git, wish), said=WellKnown())
    with copies.open(state.tree or git.tree(), ()) as place, scratch_folder() as scratch:
        root = place.sandbox.root
        if problem := _put_files(root, check):
            return HiddenResult(resolved=False, reason=problem)
        job = Check(name=CheckName.TESTS, command=check.command, timeout=check.timeout, reason="hidden check")
        return _judge(check, place.run(job, scratch / "output"))


def _put_files(root: Path, check: HiddenCheck) -> str:
    """Write the files of a check into a copy; return why its patch does not fit, or nothing."""
    for name, content in _read_files(check):
        path = root / name
        if not path.parent.resolve().is_relative_to(root.resolve()):
            return f"{name} would lie outside the copy"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link
        path.write_bytes(content)
    if not check.patch:
        return ""
    words = ("git", "apply", "--whitespace=nowarn", "-")
    done = capture(
        words, cwd=root, env={"GIT_CEILING_DIRECTORIES": os.fspath(root.parent)}, stdin=check.patch.encode()
    )
    return (
        f"the check's patch does not fit: {done.stderr.decode('utf-8', 'replace').strip()}"
        if done.returncode
        else ""
    )


def _read_files(check: HiddenCheck) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a check, those of its folder first."""
    found = sorted(Path(check.folder).rglob("*")) if check.folder else []
    for path in filter(Path.is_file, found):
        yield path.relative_to(check.folder).as_posix(), path.read_bytes()
    yield from ((name, text.encode()) for name, text in check.files.items())


def _judge(check: HiddenCheck, shown: Shown) -> HiddenResult:
    """Return whether a run of a check resolves its task."""
    code, ended = shown.execution.exit_code, "it took too long" if shown.execution.timed_out else ""
    if not check.tests:
        return HiddenResult(resolved=code == 0, reason=ended or visible(f"exit {code}"))
    wrong = [test for test in check.tests if _find_outcome(shown, test) is not TestOutcome.PASSED]
    said = ended or (f"not passed: {list_some(wrong)}" if wrong else f"{len(check.tests)} tests passed")
    return HiddenResult(resolved=not wrong and not ended, reason=visible(said))


def _find_outcome(shown: Shown, test: str) -> TestOutcome | None:
    """Return the outcome of a test in a run, by its id or by the end of its id."""
    if test in shown.outcomes:
        return shown.outcomes[test]
    found = {outcome for name, outcome in shown.outcomes.items() if name.endswith(f"::{test}")}
    return found.pop() if len(found) == 1 else None
