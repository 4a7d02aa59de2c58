"""The model `replay:TASK`: what a saved task was asked and replied, out of its files."""

from pathlib import Path

from agentflow.core.evidence import By
from agentflow.core.messages import Reply
from agentflow.loop.context import request_of
from agentflow.model.recorded import Exchange, Recorded
from agentflow.store.journal import Asked, exchanges, load_run
from agentflow.store.reading import evidence_of, find


def was_offered_search(name: str, root: Path) -> bool:
    """Return whether a saved task's requests offered what its provider runs. Raises TaskNotFound."""
    files = (find(root, name.removeprefix("replay:")) / "runs").glob("*.jsonl")
    return any(tool.by_provider for file in files if (run := load_run(file)) for tool in run.head.tools)


def recorded_model(name: str, root: Path) -> Recorded:
    """Return the model that plays a task's replies. Raises TaskNotFound."""
    path = find(root, name.removeprefix("replay:"))
    known: dict[int, list[Exchange]] = {}
    summaries: dict[int, list[Reply | str]] = {}
    for file in (path / "runs").glob("*.jsonl"):
        number = int(file.name.split("-")[0])
        for one in exchanges(file):
            if isinstance(one, Asked):
                known.setdefault(number, []).append(_exchange(one))
            elif told := one.reply or one.failure:
                summaries.setdefault(number, []).append(told)
    roots = {str(root), *(evidence.cwd for evidence in evidence_of(path) if evidence.by is By.PROGRAM)}
    return Recorded(name, known, tuple(roots), summaries)


def _exchange(one: Asked) -> Exchange:
    return Exchange(
        request=request_of(one.run, one.force) if one.run else None,
        reply=one.reply,
        refused=request_of(one.refused, one.force) if one.refused else None,
    )
