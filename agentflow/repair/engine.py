"""The search for a repair as one function: from the checks before a task to the edits that mend them."""

import difflib
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
from anyio import from_thread
from msgspec import Meta

from agentflow.core.errors import ModelRejected, ToolError
from agentflow.core.events import Searched
from agentflow.core.evidence import CheckName, CheckRun, Side
from agentflow.core.ports import Observer
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import FirstTry, Replacement
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.repair.bench import Bench, SearchWatch
from agentflow.repair.candidates import list_candidates
from agentflow.repair.clues import EditPlace, TestTrace, localise
from agentflow.repair.search import SEARCH_SECONDS, Search, SearchResult, trace_tests
from agentflow.repair.sources import Sources, read_changed, read_sources
from agentflow.repair.target import ADVICE, find_failing_tests, locate_tests, read_target
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.git import open_repository
from agentflow.workspace.working_copy import find_import_paths

_QUICK, _TIMES_SLOW, _MOST_MORE = 2.0, 3, 60.0
"""For each second above the first two that the tests took, a search gets three more, at most so many."""
_SEVERAL = "several edits make the failing tests pass but differ on other inputs; none was made:"
_EDIT = "Edit"
_NONE = "the built-in repair engine cannot run these tests: it knows pytest and unittest only"
_SHOWN = 3
_MISSING = re.compile(r"No module named '([\w.]+)'")
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): (.*)", re.MULTILINE)
T = TypeVar("T")


class Attempt(Record):
    """A repair of an earlier iteration that failed there."""

    tree: str
    account: str
    checks: tuple[CheckRun, ...]
    """What failed on it."""

    @property
    def is_rejected(self) -> bool:
        """True if tests failed that ran on it; nothing else shows that it is wrong."""
        tests = (run.evidence for run in self.checks if run.check.name is CheckName.TESTS)
        return any(record is not None and record.code is Side.FINAL for record in tests)


class _Findings(NamedTuple):
    result: SearchResult
    sources: Sources
    seen: TestTrace
    places: tuple[EditPlace, ...]

    def list_edits(self) -> tuple[Replacement, ...]:
        wanted = {**self.sources.overlay, **self.result.texts}
        return tuple(
            edit
            for path, raw in sorted(wanted.items())
            for edit in find_replacements(
                path, (self.sources.root / path).read_bytes().decode(), raw.decode()
            )
        )


class RepairSearch(Record):
    """The search for a repair of what failed before a task."""

    sandbox: Sandbox
    checks: tuple[CheckRun, ...]
    """Those before the task."""
    blocked: Mapping[CheckName, str]
    """Why a check cannot run as a whole here."""
    observe: Observer
    seconds: float = math.inf
    """How long it may take; without a limit there is nobody else to ask."""
    attempts: tuple[Attempt, ...] = ()

    def mend(self, is_cancelled: Callable[[], bool]) -> FirstTry:
        """Return the best repair, or what takes the last one back. Raises ModelRejected for neither."""
        last = self.attempts[-1] if self.attempts else None
        if last is not None and not last.is_rejected:
            raise self._keep(last.account)
        before = next((run.evidence.tree_before for run in self.checks if run.evidence is not None), None)
        found = self._run(self._open(before, is_cancelled, 0, ""), before)
        result, edits = found.result, found.list_edits()
        note = f" (workers that crashed and were replaced: {result.crashed})" if result.crashed else ""
        account = "; ".join(result.titles) + note
        if not result.texts:
            facts = (*_describe(found), f"next: {_advise(result, found.places)}")
            account = "not mended: " + "\n  ".join(facts)
        if not edits:
            raise self._keep(account) if result.texts else ModelRejected(account)
        return FirstTry(account=account, edits=edits, files=tuple(result.texts), rivals=result.rival_lines)

    def _keep(self, account: str) -> ModelRejected:
        """Return the error for a repair whose failure is no matter of tests."""
        red = ", ".join(run.check.name for run in self.attempts[-1].checks) if self.attempts else "nothing"
        return ModelRejected(f"the tests pass with {account}; it stays, but not mended: {red}", hint=ADVICE)

    def look(self, is_cancelled: Callable[[], bool], run: int = 0, only: str = "") -> FirstTry | None:
        """Return the one repair, or what was learned; None where the engine cannot run the tests.

        Run 0 is the search before the first request. `only` is the file or folder that may be edited.
        """
        try:
            bench = self._open(None, is_cancelled, run, only)
        except ModelRejected:
            return None
        try:
            found = self._run(bench, None)
        except ModelRejected as error:
            return FirstTry(account=str(error))
        result, title = found.result, "; ".join(found.result.titles)
        if not result.texts:
            return FirstTry(account="\n".join(_describe(found)))
        if result.rivals:
            return FirstTry(account="\n- ".join((_SEVERAL, title, *result.rival_lines)))
        return FirstTry(account=title, edits=found.list_edits(), files=tuple(result.texts))

    def _open(self, base: str | None, is_cancelled: Callable[[], bool], run: int, only: str) -> Bench:
        """Return where edits are tried, of the files in a tree or as they are now. Raises ModelRejected."""
        reds = (run.evidence for run in self.checks if run.check.name is CheckName.TESTS and not run.green)
        took = max((record.seconds for record in reds if record is not None), default=0.0)
        # tests that took long are run more than once
        seconds = self.seconds + min(_MOST_MORE, _TIMES_SLOW * max(0.0, took - _QUICK))
        until = time.monotonic() + seconds
        watch = SearchWatch(tell=self.observe, cancelled=is_cancelled, run=run, until=until)
        left = round(min(seconds, SEARCH_SECONDS), 1)
        self.observe(Searched(run=run, tried=0, total=0, seconds_left=left, best=""))
        root = self.sandbox.root
        sources = read_sources(root, base).replace(only=only)
        target = read_target(root, self.checks, self.blocked, sources.files)
        again = [find_failing_tests(each.checks) for each in self.attempts if each.is_rejected]
        more = locate_tests(sorted(frozenset[str]().union(*again)), sources.files)
        target = target.replace(files=tuple(sorted({*target.files, *more})) if target.files else ())
        places = find_import_paths(self.sandbox, target.interpreter, target.env)
        return Bench(sandbox=self.sandbox, sources=sources, target=target, places=places, watch=watch)

    def _run(self, bench: Bench, base: str | None) -> _Findings:
        seen = trace_tests(bench)
        _require_runnable(bench.sources, seen)
        places = localise(bench.sources, seen)
        edits = list_candidates(bench.sources, places, seen)
        git = open_repository(self.sandbox.root)
        trees = [each.tree for each in self.attempts if each.is_rejected]
        rejected = [read_changed(git, base, tree) for tree in trees if base is not None]
        return _Findings(Search(bench, rejected).run(seen, edits), bench.sources, seen, places)


async def work_in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Work in a thread, which can ask whether somebody still waits for it."""
    stop = threading.Event()
    error: ModelRejected | None = None

    async def signal_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(signal_end)
        try:
            found = await anyio.to_thread.run_sync(work, stop.is_set)
        except ModelRejected as rejected:  # a group would wrap it
            error = rejected
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint()  # what came of work that was cut short counts for nothing
    if error is not None:
        raise error
    return found


class RepairInput(Record):
    path: Annotated[str | None, Meta(description="Edit nothing but this file, or files below it.")] = None


class RepairCall(Record):
    """Search for a small edit that makes the failing tests pass: many are tried in copies, within seconds.

    The only one that passes is made; judge it, it may fit no more than these tests. Else you are told the
    candidates, or the suspicious lines and how near the search came.
    """

    search: RepairSearch

    def __call__(self, given: RepairInput, context: ToolContext) -> Output:
        only = context.workspace.to_relative(given.path) if given.path else ""
        only = "" if only == "." else only
        search = partial(self.search.look, run=context.run.head.run, only=only)
        found = from_thread.run(work_in_thread, search)
        if found is None or not found.edits:
            return Output(content=_NONE if found is None else found.account)
        told = f"{found.account}\n{show_diff(context.workspace.root, found.edits)}"
        try:
            for edit in found.edits:
                context.shell.make(_EDIT, to_builtins(edit))
        except ToolError as error:
            return Output(content=f"not made: {error}\nfound: {told}", is_error=True)
        return Output(content=f"made: {told}")


def show_diff(root: Path, edits: Iterable[Replacement]) -> str:
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for edit in edits:
        path = edit.file_path
        before.setdefault(path, (root / path).read_text("utf-8", "replace"))
        after[path] = after.get(path, before[path]).replace(edit.old_string, edit.new_string, 1)
    lines = (
        line
        for path in before
        for line in difflib.unified_diff(
            before[path].splitlines(), after[path].splitlines(), f"a/{path}", f"b/{path}", lineterm="", n=1
        )
    )
    return "\n".join(lines)


def offer_repair(search: RepairSearch) -> Tool:
    """Return the tool of an implementer whose tests fail; each edit it makes is a call of its own."""
    return Tool(
        name="Repair",
        category=Category.AGENT,
        effect=Effect.EXECUTE,
        input=RepairInput,
        call=RepairCall(search=search),
        granted=True,
    )


def _require_runnable(sources: Sources, seen: TestTrace) -> None:
    """Raise ModelRejected where all that fails is the loading of modules that are not installed."""
    missing = [_MISSING.search(seen.messages.get(test, "")) for test in seen.reds]
    names = sorted({found[1] for found in missing if found})
    if names and all(missing) and not any(_is_own(sources, name) for name in names):
        raise ModelRejected(
            f"the tests cannot run here: no module named {', '.join(names)} is installed",
            hint="Install what the tests need, then try again.",
        )


def _is_own(sources: Sources, name: str) -> bool:
    top = name.partition(".")[0]
    return any(
        top in (part.removesuffix(".py") for part in PurePosixPath(path).parts) for path in sources.files
    )


def _describe(findings: _Findings) -> Iterator[str]:
    found, sources, seen, places = findings
    yield _tell_end(found)
    yield from sorted({_name_cause(sources, seen, test) for test in seen.messages} - {""})
    if places:
        yield f"suspicious lines: {', '.join(f'{each.path}:{each.line}' for each in places[:_SHOWN])}"
    if found.kinds:
        ordered = sorted(found.kinds.items(), key=lambda pair: (-pair[1], pair[0]))
        others = sum(count for _, count in ordered[5:])
        shown = [f"{count} {kind}" for kind, count in ordered[:5]]
        yield f"tried: {', '.join([*shown, *([f'{others} others'] if others else [])])}"
    near = found.nearest
    if near is not None and (near.turned or near.nearness > found.base):
        mends = f"; mends {', '.join(near.turned[:_SHOWN])}" if near.turned else ""
        breaks = f"; breaks {', '.join(near.broke[:_SHOWN])}" if near.broke else ""
        values = f"; expected {near.wanted}, got {near.got}" if near.wanted and not near.turned else ""
        yield f"nearest: {near.candidate.title}{mends}{breaks}{values}"


def _tell_end(found: SearchResult) -> str:
    left = max(0, found.total - found.tried)
    ended = f"; {found.crashed} ended the process that tried them" if found.crashed else ""
    ended += f"; {found.hung} did not end" if found.hung else ""
    if found.is_late:
        return f"the time of {found.seconds:.0f} s was over: {found.tried} edits tried, {left} left{ended}"
    if not found.tried:
        return "there is no line of the code under test that an edit could be tried at"
    return f"none of {found.tried} edits makes the failing tests pass{ended}"


def _name_cause(sources: Sources, seen: TestTrace, test: str) -> str:
    """Return what keeps a test from being loaded: a wrong line, or a module that is not there."""
    message = seen.messages[test]
    frames = seen.frames.get(test, ())
    syntax, missing = _SYNTAX.search(message), _MISSING.search(message)
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else test
    if syntax:
        return f"{place} is no Python: {syntax[1]}"
    if missing:
        is_own = _is_own(sources, missing[1])
        whose = "the repository has no module" if is_own else "not installed: module"
        return f"{place} imports {missing[1]}: {whose} {missing[1]}"
    return ""


def _advise(found: SearchResult, places: Sequence[EditPlace]) -> str:
    if not places:
        return f"look at what the failing tests load. {ADVICE}"
    if found.nearest is not None and found.nearest.turned:
        return f"make the nearest edit and run again. {ADVICE}"
    if len(places) > 20:
        return f"add a failing test that runs less code. {ADVICE}"
    return ADVICE


def find_replacements(path: str, before: str, after: str) -> Iterator[Replacement]:
    """Yield the Edit calls that turn one text into another, each old text unique when its turn comes."""
    old, new = _split_lines(before), _split_lines(after)
    shift = 0
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lines = [*new[: start + shift], *old[start:]]
        yield _unique(path, lines, (start + shift, end + shift), new[first:last])
        shift += (last - first) - (end - start)


def _unique(path: str, lines: list[str], span: tuple[int, int], fresh: list[str]) -> Replacement:
    """Return an edit of some lines, with enough lines around them to make the old text unique."""
    text = "".join(lines)
    for extra in range(len(lines) + 1):
        low, high = max(0, span[0] - extra), min(len(lines), span[1] + extra)
        old = "".join(lines[low:high])
        if old and text.count(old) == 1:
            break
    new = "".join([*lines[low : span[0]], *fresh, *lines[span[1] : high]])
    bare, bare_new = old.rstrip("\r\n"), new.rstrip("\r\n")
    if bare and bare_new and text.count(bare) == 1 and old[len(bare) :] == new[len(bare_new) :]:
        old, new = bare, bare_new  # a tool may see line endings its own way
    return Replacement(file_path=path, old_string=old, new_string=new)


def _split_lines(text: str) -> list[str]:
    """Return lines as git and Edit see them: only a newline ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
