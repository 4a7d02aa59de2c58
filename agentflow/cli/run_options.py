"""The options of the commands that run a task, and the request that they make."""

from typing import Any

import typer

from agentflow.api.boundary import TaskRequest
from agentflow.cli import arguments
from agentflow.core.pending import Budget
from agentflow.core.record import Record, copy_shared


class RunOptions(Record):
    """How a task runs and is shown: for every command that begins or continues one."""

    model: str | None = arguments.MODEL
    yes: bool = arguments.YES
    no_input: bool = arguments.NO_INPUT
    no_sandbox: bool = arguments.NO_SANDBOX
    json: bool = arguments.ONE_JSON
    events: str | None = typer.Option(
        None, "--events", metavar="FILE|-", help="Write each event as a line of JSON."
    )
    stream: bool = typer.Option(False, "--stream", help="Show the model's replies as they arrive.")
    quiet: bool = arguments.QUIET
    verbose: bool = arguments.VERBOSE
    plain: bool = arguments.PLAIN

    def make_request(self, *others: Record, **more: Any) -> TaskRequest:
        """Return the request of these and other options. Raises UsageError where two contradict."""
        shared = [copy_shared(each, TaskRequest) for each in (self, *others)]
        return TaskRequest(
            consent=arguments.choose_consent(yes=self.yes, no_input=self.no_input),
            detail=arguments.choose_detail(quiet=self.quiet, verbose=self.verbose),
            **{key: value for fields in shared for key, value in fields.items()},
            **more,
        )


class LimitOptions(Record):
    """What a new task may use."""

    max_cost: float | None = arguments.take_number(
        "--max-cost", "Stop when the task has cost this much.", "USD", least=0
    )
    max_tokens: int | None = typer.Option(
        None, "--max-tokens", min=1, metavar="N", help="Stop when the task has used this many tokens."
    )
    timeout: float | None = arguments.take_number("--timeout", "Stop after this many seconds.", "S")
    no_memory: bool = typer.Option(
        False, "--no-memory", help="Recall nothing of earlier tasks, and leave nothing for later ones."
    )

    def to_fields(self) -> dict[str, Any]:
        budget = Budget(cost=self.max_cost, tokens=self.max_tokens, seconds=self.timeout)
        return {"budget": budget, "memory": not self.no_memory}
