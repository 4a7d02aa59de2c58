"""Changed dependencies, shown to a tool that knows of vulnerabilities, where there is one and it may ask."""

from anyio import to_thread

from agentflow.checks.dependencies import audit_of
from agentflow.checks.manifests import manifest_of
from agentflow.checks.required import require
from agentflow.core.evidence import CheckName, ended
from agentflow.core.task import TaskState
from agentflow.sandbox.environment import find_program
from agentflow.sandbox.profile import CHECKS
from agentflow.verdict.context import JudgeContext
from agentflow.workspace.git import ChangeKind

_CLOSED = "not run (the network is closed to checks: `network: [checks]` in config.yaml opens it)"


async def audited(context: JudgeContext, task: TaskState) -> str:
    """Return what the tools say of the dependencies that changed, or why none was asked.

    What is known of vulnerabilities is another thing tomorrow, so that no verdict rests on it.
    """
    assert task.base_tree is not None
    assert task.tree is not None
    changes = context.git.changes(task.base_tree, task.tree)
    paths = [each.path for each in changes if each.kind is not ChangeKind.DELETED and manifest_of(each.path)]
    commands = dict.fromkeys(command for path in paths if (command := audit_of(path)))
    if commands and CHECKS not in context.sandbox.opened.network:
        return _CLOSED
    return "; ".join([await _said(context, task, command) for command in commands])


async def _said(context: JudgeContext, task: TaskState, command: str) -> str:
    name = command.split(maxsplit=1)[0]
    if find_program(name, context.git.root) is None:
        return f"not run ({name} is not installed)"
    assert task.tree is not None
    check = require(CheckName.LINT, command, "the dependencies changed")
    async with context.checking.copy(task, task.tree) as place:
        shown, _ = await to_thread.run_sync(place.tried, check)
    execution = shown.execution
    lines = [line.strip() for line in execution.tail.splitlines() if line.strip()]
    last = next((line for line in lines if "vulnerabilit" in line), lines[-1] if lines else "")
    return f"{command}: {ended(execution)}{f': {last}' if last else ''}"
