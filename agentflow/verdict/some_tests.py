"""Some tests of a repository, run by its own check command, and what failed."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from agentflow.checks.run import CheckWatch, execute
from agentflow.core.check_command import format_command
from agentflow.core.errors import NotAllowed
from agentflow.core.evidence import RED, CheckName, CheckRun, describe_counts
from agentflow.core.ports import Workspace
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.tool import TestSelection, TestsRun
from agentflow.redact import list_some, strip_colours
from agentflow.runners.selection import select_tests
from agentflow.sandbox.environment import find_build_cache
from agentflow.sandbox.run import Sandbox, guess_reason
from agentflow.verdict.checking import Checking

_SAID_LINES, _SAID_CHARS = 8, 600
"""Of one failure."""
_BLOCK = regex(
    r"(?m)^(?:(?:FAIL|ERROR): \S+ \((?P<dotted>[\w.]+)\).*|---- (?P<cargo>\S.*?) stdout ----"
    r"|(?:=== (?:RUN|NAME|CONT) +| *--- FAIL: )(?P<go>\S+).*|(?P<line>[=-]{70})"
    r"|Ran \d+ tests?.*|failures:| *--- .*|test result: .*|(?:FAIL|PASS|ok)(?:\t.*)?)$\n?"
)
"""Where the output of a runner that writes no report begins to speak of a test, or of something else."""
_PLACE = regex(r"(?P<path>[\w./@+-]+\.\w+)(?:\", line |:|\()(?P<line>\d+)")
_NOISE = regex(r"(?m)^(?:\s+at .*|Traceback .*|\s+File \".*|note: .*|thread .* panicked at .*|\s+\^+)\n?")
_PYTEST_LINE = regex(r"(?m)^[>E]   .*")


class SomeTests(Record):
    """Runs some tests of a task on the files as they are now; nothing that they write stays."""

    checking: Checking
    sandbox: Sandbox
    task: TaskState
    workspace: Workspace

    def __call__(self, wanted: TestSelection, sink: Path, cancelled: Callable[[], bool]) -> TestsRun:
        """Run them; their output goes to `sink`. Raises ToolError where they cannot run."""
        sandbox, files = self.sandbox, self.workspace.list_files()
        required = self.checking.require(self.task, files)
        check = next((check for check in required if check.name is CheckName.TESTS), None)
        if check is None or check.missing:
            raise NotAllowed(f"the tests cannot run here: {check.missing if check else 'no tests found'}")
        read = self.checking.read_repository(files).read
        narrowed, whole = select_tests(check, wanted, frozenset(files), read)
        cache = sandbox.build_cache or find_build_cache(sandbox.root, os.environ)
        watch = CheckWatch(cancelled=cancelled)
        shown = execute(narrowed, sandbox.replace(build_cache=cache), sink, watch=watch)
        failures = describe_failures(shown, sink.read_text("utf-8", "replace"), sandbox)
        before = {test for run in self.checking.find_runs(self.task.baseline) for test in run.list_ids(*RED)}
        old = sorted(failures.keys() & before)
        why = guess_reason(sandbox, shown.execution.tail) if shown.execution.exit_code else ""
        counted = describe_counts(shown.counts) if shown.counts else "no count"
        remarks = (
            *(f"cannot be narrowed, so all of it ran: {command}" for command in whole),
            f"failed before the task too: {list_some(old)}" if old else "",
            why,
            *shown.execution.notes,
        )
        return TestsRun(
            execution=shown.execution,
            summary=f"{counted}: {format_command(narrowed.command)}",
            failures=failures,
            remarks=tuple(filter(None, remarks)),
        )


def describe_failures(shown: CheckRun, output: str, sandbox: Sandbox) -> dict[str, str]:
    """Return place and assertion of each test that failed, by its id."""
    red, printed = sorted(shown.list_ids(*RED)), _list_printed(output)
    found = dict[str, str]()
    for test in red:
        said = shown.failures.get(test) or next(
            (text for name, text in printed.items() if test == name or test.endswith(f"::{name}")), ""
        )
        said = said.replace(f"{sandbox.place}/", "").replace(f"{sandbox.root}/", "")
        found[test] = _describe(test, strip_colours(said), sandbox.folders)
    return found


def _list_printed(output: str) -> dict[str, str]:
    blocks = list(_BLOCK.finditer(output))
    found, name = dict[str, str](), ""
    ends = [each.start() for each in blocks[1:]] + [len(output)]
    for block, end in zip(blocks, ends, strict=False):
        name = name if block["line"] else block["dotted"] or block["cargo"] or block["go"] or ""
        if name:
            found[name] = found.get(name, "") + output[block.end() : end]
    return found


def _describe(test: str, said: str, folders: Iterable[Path]) -> str:
    found = (
        place for place in _PLACE.finditer(said) if any((each / place["path"]).is_file() for each in folders)
    )
    places = [f"{place['path']}:{place['line']}" for place in found]
    is_python = ".py" in test or 'File "' in said  # which tells the most recent call last
    lines = _PYTEST_LINE.findall(said) or _NOISE.sub("", said).splitlines()
    kept = [" ".join(line.split()) for line in lines if line.strip()][:_SAID_LINES]
    return "\n".join((*places[-1 if is_python else 0 :][:1], *kept))[:_SAID_CHARS]
