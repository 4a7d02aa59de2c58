"""RunTests: some tests, or all, by the repository's own runner."""

from itertools import islice
from textwrap import indent

from agentflow.core.errors import ConfigError, InvalidInput, NotAllowed
from agentflow.core.evidence import describe_end
from agentflow.core.messages import ToolResult
from agentflow.core.record import Record, to_builtins
from agentflow.core.tool import (
    Category,
    Effect,
    Output,
    Subject,
    TestSelection,
    TestsRun,
    Tool,
    ToolContext,
)
from agentflow.redact import redact_text, strip_colours
from agentflow.tools.files import WriteInput

_MOST = 20
"""Failures that are shown with what is said of them."""
_TAIL_LINES = 40


def run_tests(wanted: TestSelection, context: ToolContext) -> Output:
    """Run some tests, or all."""
    if context.shell.run_tests is None:
        raise NotAllowed("this repository's tests are not known here")
    if any(ord(sign) < ord(" ") for text in (*wanted.ids, *wanted.paths, wanted.pattern) for sign in text):
        raise InvalidInput("ids, paths and pattern are one line each")
    paths = tuple(map(context.workspace.to_relative, wanted.paths))
    sink = context.shell.outputs / f"{context.call_id}.out"
    ran = context.shell.run_tests(wanted.replace(paths=paths), sink, context.cancelled)
    return _tell_run(ran, context)


def _tell_run(ran: TestsRun, context: ToolContext) -> Output:
    parts = (*(part for each in context.run.messages for part in each.parts), *context.run.answers)
    told = {pair for part in parts if isinstance(part, ToolResult) for pair in part.failures.items()}
    failures = {test: redact_text(said) for test, said in islice(ran.failures.items(), _MOST)}
    shown = [
        f"FAILED {test}: as before" if (test, said) in told else f"FAILED {test}\n{indent(said, '  ')}"
        for test, said in failures.items()
    ]
    left = len(ran.failures) - len(failures)
    rest = [f"… and {left} more fail"] if left else []
    is_untold = ran.execution.exit_code != 0 and not failures
    tail = strip_colours(ran.execution.tail).splitlines()[-_TAIL_LINES:] if is_untold else []
    lines = (ran.summary, *ran.remarks, *shown, *rest, *tail, describe_end(ran.execution))
    return Output(content="\n".join(lines), execution=ran.execution, failures=failures)


RUN_TESTS = Tool(
    name="RunTests",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=TestSelection,
    call=run_tests,
    subjects={"pattern": Subject.TEXT, "paths": Subject.TEXT, "ids": Subject.TEXT},
    reads=lambda _: True,  # whatever the tests write, they write into a copy
)


def try_test(wanted: WriteInput, context: ToolContext) -> Output:
    """Run a new test file on a copy of the change; nothing of it stays."""
    if context.shell.try_test is None:
        raise NotAllowed("only the verifier of a change tries tests of its own")
    path = context.workspace.to_relative(wanted.file_path)
    sink = context.shell.outputs / f"{context.call_id}.out"
    ran, tried = context.shell.try_test(path, wanted.content, sink, context.cancelled)
    changes = {"judge_tests": to_builtins(tried)}
    return _tell_run(ran, context).replace(changes=changes)


TRY_TEST = Tool(
    name="TryTest",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=WriteInput,
    call=try_test,
    subjects={"file_path": Subject.TEXT},
)


class MutantsInput(Record):
    path: str | None = None


def try_mutants_here(wanted: MutantsInput, context: ToolContext) -> Output:
    """List changed lines that no test notices. `a.py:3  x > 0 → true`: test x = 0."""
    if context.shell.mutate is None:
        raise NotAllowed("Mutants is not there for a step that runs beside others")
    path = context.workspace.to_relative(wanted.path) if wanted.path else ""
    try:
        return Output(content=context.shell.mutate("" if path == "." else path, context.cancelled))
    except ConfigError as error:
        return Output(content=f"no mutant was tried: {error}")


TRY_MUTANTS = Tool(
    name="Mutants",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=MutantsInput,
    call=try_mutants_here,
    subjects={"path": Subject.TEXT},
    reads=lambda _: True,  # whatever the tests write, they write into a copy
)
