"""The one object that `task --json` prints."""

from typing import Any

from agentflow.core.evidence import CheckRun
from agentflow.core.record import plain
from agentflow.core.task import GateStatus, TaskState
from agentflow.report.answer import answer
from agentflow.report.material import Material
from agentflow.report.spending import Spending
from agentflow.verdict.drift import set_apart
from agentflow.verdict.paths import explain
from agentflow.workspace.git import FileChange


def result(
    task: TaskState, material: Material, changes: tuple[FileChange, ...], spent: Spending
) -> dict[str, Any]:
    """Return the result of a task, with the keys of CONTRACT section 7; what is unknown is None."""
    assert task.ending is not None
    unknown = task.base_tree is not None and task.tree is None
    runs = (*material.baseline, *material.final, *material.held, *material.fresh)
    return {
        "task_id": task.task_id,
        "status": task.ending.status,
        "exit_code": int(task.ending.exit_code),
        "task": task.task,
        "route": [phase for phase, gate in task.gates.items() if gate.status is not GateStatus.SKIPPED],
        "model": task.model,
        "sandbox": task.sandbox,
        "iterations": task.iteration,
        "gates": plain(task.gates),
        "plan": plain(task.plan),
        "proof": plain(task.verdict.proof) if task.verdict else [],
        "unproved": list(task.verdict.unproved) if task.verdict else [],
        "checks": [_check(run) for run in runs],
        "evidence": [run.evidence.id for run in runs if run.evidence is not None],
        "files_changed": None if unknown else [change.path for change in changes],
        "paths": [] if unknown else [plain(explain(change.path, task.surface)) for change in changes],
        "hooks_changed": sorted(set_apart(task)),
        "usage": plain(task.usage),
        "roles": [plain(one) for one in spent.roles],
        "seconds": {"total": spent.seconds, "model": spent.model, "own": spent.own},
        "answer": answer(task),
        "class": task.task_complexity,
        "document": task.document,
        "caveats": [*task.verdict.caveats, *task.verdict.approvals] if task.verdict else [],
        "pending": plain(task.pending),
        "report": f"{material.folder}/report.md",
    }


def _check(run: CheckRun) -> dict[str, Any]:
    evidence = run.evidence
    return {
        "check": run.check.name,
        "command": run.check.command,
        "exit_code": evidence.exit_code if evidence else None,
        "evidence": evidence.id if evidence else None,
        "surface": evidence.surface if evidence else None,
        "tests": plain(evidence.tests) if evidence else None,
    }
