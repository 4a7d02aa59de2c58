"""The tool `Repair` of an implementer: the engine searches while it waits."""

import difflib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import from_thread
from msgspec import Meta

from agentflow.core.errors import ToolError
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import Replacement
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.repair.engine import RepairSearch, work_in_thread

_EDIT = "Edit"
_NONE = "the built-in repair engine cannot run these tests: it knows pytest and unittest only"


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
