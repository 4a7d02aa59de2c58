"""The verdict on a task as an in-toto statement with a SLSA verification summary, unsigned."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentflow import __version__
from agentflow.core.errors import Exit, StateError
from agentflow.core.task import TaskState
from agentflow.store.reading import events, fold_state
from agentflow.workspace.git import Git

_STATEMENT = "https://in-toto.io/Statement/v1"
_SUMMARY = "https://slsa.dev/verification_summary/v1"
_SLSA = "1.0"
_NAME = "urn:agentflow"
_WEB = ("https", "http", "ssh", "git")
_FAILED = "FAILED"


def make_statement(git: Git, record: Path, bundle: Path) -> dict[str, Any]:
    """Return what a task's record says of its final files; the bundle that holds the record is its proof.

    Raises StateError for a task without a verdict on files.
    """
    happened = tuple(events(record))
    task = fold_state(record, happened)
    if task.ending is None or task.verdict is None or task.tree is None:
        raise StateError(f"task {task.task_id} has no verdict yet, so there is nothing to attest")
    is_passed = task.ending.exit_code == Exit.VERIFIED
    about = f"{_NAME}:task:{task.task_id}"
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    return {
        "_type": _STATEMENT,
        "subject": list(_list_subjects(git, task.tree)),
        "predicateType": _SUMMARY,
        "predicate": {
            "verifier": {"id": f"{_NAME}:verifier", "version": {"agentflow": __version__}},
            "timeVerified": happened[-1].at,
            "resourceUri": _find_address(git) or about,
            "policy": {"uri": f"{_NAME}:required-checks", "annotations": {"checks": _list_checks(task)}},
            "inputAttestations": [{"uri": about, "name": bundle.name, "digest": {"sha256": digest}}],
            "verificationResult": "PASSED" if is_passed else _FAILED,
            "verifiedLevels": ["AGENTFLOW_VERIFIED" if is_passed else _FAILED],
            "slsaVersion": _SLSA,
            f"{_NAME}:verdict": {
                "status": task.status,
                "exitCode": int(task.ending.exit_code),
                "reason": task.ending.reason,
                "caveats": list(task.verdict.caveats),
                "approvals": list(task.verdict.approvals),
            },
        },
    }


def _list_subjects(git: Git, tree: str) -> Iterator[dict[str, Any]]:
    """Yield the judged tree, and the newest commit where it holds exactly that."""
    yield {"name": "tree", "digest": {"gitTree": tree}}
    if git.head == tree:
        yield {"name": "commit", "digest": {"gitCommit": git.call("rev-parse", "HEAD").decode().strip()}}


def _list_checks(task: TaskState) -> list[str]:
    return [f"{item.check.name}: {item.check.command}" for item in task.final]


def _find_address(git: Git) -> str:
    """Return where the repository comes from, without names and passwords; empty where that is no address."""
    try:
        parts = urlsplit(git.call("config", "--get", "remote.origin.url").decode().strip())
        port = f":{parts.port}" if parts.port else ""
    except (StateError, ValueError):
        return ""
    if parts.scheme not in _WEB or not parts.hostname:
        return ""
    return f"git+{parts.scheme}://{parts.hostname}{port}{parts.path}"
