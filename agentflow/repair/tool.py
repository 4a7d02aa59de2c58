"""The engine beside a model that is paid: one search before its first request, and the tool `Repair`."""

import difflib
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import from_thread
from msgspec import Meta

from agentflow.core.errors import ModelRejected, ToolError
from agentflow.core.evidence import CheckName
from agentflow.core.ports import Observer
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import FirstTry, Replacement
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.repair.bench import Hope, SearchWatch
from agentflow.repair.case import RepairCase, describe_search
from agentflow.repair.policy import tell_progress, work_in_thread
from agentflow.repair.search import SearchResult
from agentflow.repair.sources import read_sources
from agentflow.repair.target import Brief, read_brief, read_record
from agentflow.sandbox.run import Sandbox

_QUICK, _TIMES_SLOW, _MOST_MORE = 2.0, 3, 60.0
"""For each second above the first two that the tests took, a search gets three more, at most so many."""
_EDIT = "Edit"
_SEVERAL = "each of these edits makes the failing tests pass; they differ on other inputs, so none was made:"
_NONE = "the built-in repair engine cannot run these tests: it knows pytest and unittest only"


class RepairSearch(Record):
    """A search on the files as they are now."""

    sandbox: Sandbox
    prompt: str
    """The implementer's, which names the failing checks."""
    seconds: float
    observe: Observer

    async def search(self, run: int, only: str = "") -> FirstTry | None:
        """Return the one repair, or what was learned; None where the engine cannot run the tests.

        Run 0 is the search before the first request. The search ends when this is cancelled.
        """
        return await work_in_thread(partial(self._search, run, only))

    def _search(self, run: int, only: str, is_cancelled: Callable[[], bool]) -> FirstTry | None:
        brief = read_brief(self.prompt).replace(failed=())
        tell, seconds = partial(tell_progress, self.observe, run), self.seconds + self._find_slowness(brief)
        watch = SearchWatch(tell=tell, cancelled=is_cancelled, until=time.monotonic() + seconds)
        tell(Hope(tried=0, total=0, seconds_left=seconds, best=""))
        sources = read_sources(self.sandbox.root, None).replace(only=only)
        try:
            case = RepairCase(self.sandbox, brief, sources, watch, {})
        except ModelRejected:
            return None
        try:
            return _to_first_try(case, case.searched)
        except ModelRejected as error:
            return FirstTry(account=str(error))

    def _find_slowness(self, brief: Brief) -> float:
        """Return how much more time tests get that took long before: they are run more than once."""
        reds = (shown for shown in brief.before if shown.name == CheckName.TESTS and not shown.is_green)
        try:
            took = max((read_record(self.sandbox.root, shown).seconds for shown in reds), default=0.0)
        except ModelRejected:
            return 0.0
        return min(_MOST_MORE, _TIMES_SLOW * max(0.0, took - _QUICK))


def _to_first_try(case: RepairCase, found: SearchResult) -> FirstTry:
    title = "; ".join(found.titles)
    if not found.texts:
        return FirstTry(account="\n".join(describe_search(found, case.sources, case.seen, case.places)))
    if found.rivals:
        return FirstTry(account="\n- ".join((_SEVERAL, title, *found.rival_lines)))
    return FirstTry(account=title, edits=case.list_edits(found))


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
        found = from_thread.run(self.search.search, context.run.head.run, "" if only == "." else only)
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
    """Return what some edits change, as they are made one after the other."""
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
