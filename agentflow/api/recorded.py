"""The model `replay:TASK`: what a saved task was asked and replied, out of its files."""

from pathlib import Path

from agentflow.core.evidence import By
from agentflow.loop.nodes import request_of
from agentflow.model.recorded import Exchange, Recorded
from agentflow.store.exchanges import exchanges
from agentflow.store.journal import load_run
from agentflow.store.reading import evidence_of, find


def was_offered_search(name: str, root: Path) -> bool:
    """Return whether a saved task's requests offered what its provider runs. Raises TaskNotFound."""
    files = (find(root, name.removeprefix("replay:")) / "runs").glob("*.jsonl")
    return any(tool.by_provider for file in files if (run := load_run(file)) for tool in run.head.tools)


def recorded_model(name: str, root: Path) -> Recorded:
    """Return the model that plays a task's replies. Raises TaskNotFound."""
    path = find(root, name.removeprefix("replay:"))
    known: dict[int, list[Exchange]] = {}
    for file in (path / "runs").glob("*.jsonl"):
        for run, force, reply in exchanges(file):
            request = request_of(run, force) if run else None
            known.setdefault(int(file.name.split("-")[0]), []).append(Exchange(request=request, reply=reply))
    roots = {str(root), *(evidence.cwd for evidence in evidence_of(path) if evidence.by is By.PROGRAM)}
    return Recorded(name, known, tuple(roots))
