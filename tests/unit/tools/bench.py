"""A bench to use one tool after the other in one run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentflow.core.errors import ToolError
from agentflow.core.evidence import By, Evidence, Execution, Side
from agentflow.core.fold import advance
from agentflow.core.messages import Message, Notice, Reply, Speaker, Text, ToolCall, ToolResult
from agentflow.core.role import Role, ToolRule
from agentflow.core.run import (
    CallAnswered,
    MessageAdded,
    ReplyReceived,
    Run,
    RunEntry,
    RunOpened,
)
from agentflow.core.tool import Output, Shell, Tool, ToolContext
from agentflow.parse import fit
from agentflow.tools.inputs import check_input
from agentflow.tools.registry import make_standard_toolbox
from agentflow.workspace.path_guard import PathGuard
from tests.support.boxes import boxed

OPENED = RunOpened(
    run=1, role="implementer", agent="implementer", iteration=1, model="m", system="", tools=(), submit=None
)
BRIEF = MessageAdded(message=Message(speaker=Speaker.USER, parts=(Text(text="do it"),)), notice=Notice.BRIEF)


def a_record(evidence_id: str, **changes: Any) -> Evidence:
    record = Evidence(
        id=evidence_id,
        task_id="t",
        iteration=1,
        role="verifier",
        by=By.PROGRAM,
        check=None,
        command="true",
        cwd=".",
        exit_code=0,
        timed_out=False,
        started_at="2026-01-02T03:04:05Z",
        seconds=0.1,
        stdout_sha256="0" * 64,
        bytes=0,
        tree_before="t1",
        tree_after="t1",
        surface=Side.FINAL,
        code=Side.FINAL,
        sandbox="none",
    )
    return record.replace(**changes)


class Records:
    """A ledger in memory."""

    def __init__(self, *records: Evidence) -> None:
        self.records = {record.id: record for record in records}

    def record(self, execution: Execution, *, role: str | None, iteration: int, by: By) -> Evidence:
        number = f"ev-{len(self.records) + 1:04}"
        self.records[number] = a_record(
            number, command=execution.command, role=role, iteration=iteration, by=by
        )
        return self.records[number]

    def find(self, evidence_id: str) -> Evidence | None:
        return self.records.get(evidence_id)


class Bench:
    """Calls tools as the loop does: each call and its result become part of the run."""

    def __init__(self, root: Path, outputs: Path) -> None:
        self.root = root
        self.outputs = outputs
        self.ledger = Records()
        self.run = advance(advance_from(OPENED), BRIEF)
        self.calls = 0
        self.write_paths: tuple[str, ...] = ()
        self.runner = boxed(root).of("implementer")
        self.cancelled: Callable[[], bool] = lambda: False
        self.slow_checkers = set[str]()

    def context(self, call_id: str = "call-0") -> ToolContext:
        rules = (ToolRule(tool="Read"),)
        return ToolContext(
            tools=make_standard_toolbox().tools,
            workspace=PathGuard(self.root),
            shell=Shell(runner=self.runner, outputs=self.outputs, slow_checkers=self.slow_checkers),
            role=Role(
                name="implementer",
                description="d",
                model="fast",
                tools=rules,
                prompt="",
                source="implementer.md",
                origin="bundled",
                part="implementer",
                write_paths=self.write_paths,
            ),
            task_id="t",
            call_id=call_id,
            run=self.run,
            ledger=self.ledger,
            cancelled=self.cancelled,
            changed=None,
        )

    def __call__(self, tool: Tool, **given: Any) -> Output:
        self.calls += 1
        call = ToolCall(id=f"call-{self.calls}", name=tool.name, input=given)
        self.advance(ReplyReceived(reply=Reply(parts=(call,))))
        try:
            context = self.context(call.id)
            check_input(tool, given, context)
            output = tool.call(fit(tool.input, given), context)
        except ToolError as error:
            self.advance(CallAnswered(result=ToolResult(call_id=call.id, content=str(error), is_error=True)))
            raise
        self.advance(
            CallAnswered(result=ToolResult(call_id=call.id, content=output.content), changes=output.changes)
        )
        return output

    def advance(self, entry: RunEntry) -> None:
        self.run = advance(self.run, entry)

    def file(self, path: str, content: str | bytes = "") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place


def advance_from(entry: RunOpened) -> Run:
    return advance(Run(head=entry), entry)
