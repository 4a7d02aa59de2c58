"""What a follow-up takes over from the task before it: the tree to judge from, and what its roles found."""

from collections.abc import Iterator

from agentflow.api.decisions import require_own
from agentflow.core.task import TaskState
from agentflow.core.wording import list_some
from agentflow.redact import one_line
from agentflow.store.reading import events, find, fold_state
from agentflow.workspace.git import Git

_LINE = 300
_MOST_FINDINGS = 10
_MAX_CHARS = 8_000


def follow_task(git: Git, task: TaskState, earlier_id: str) -> TaskState:
    """Return a new task as the follow-up of an earlier one.

    An earlier task that changed nothing or was undone is only told of.
    """
    folder = find(git.root, earlier_id)
    require_own(git, folder)
    earlier = fold_state(folder, tuple(events(folder)))
    told = "\n".join(filter(None, (earlier.earlier, *_describe(git, earlier))))[-_MAX_CHARS:]
    task = task.replace(earlier=told)
    if (
        earlier.undone
        or earlier.base_tree in (None, earlier.tree)
        or not git.has_tree(earlier.base_tree or "")
    ):
        return task
    return task.replace(follows=earlier.task_id, base_tree=earlier.base_tree)


def _describe(git: Git, task: TaskState) -> Iterator[str]:
    """Yield what a task was about, what its roles said, and how it ended, in lines."""
    ended = f"{task.status}: {one_line(task.ending.reason, _LINE)}" if task.ending else str(task.status)
    yield f"- asked: {one_line(task.intent.goal or task.task, _LINE)}"
    yield f"  ended: {'undone, its change is gone' if task.undone else ended}"
    if task.intent.constraints:
        yield f"  constraints: {one_line(task.intent.constraints, _LINE)}"
    if task.findings:
        yield f"  found: {one_line(task.findings.summary, _LINE)}"
        for one in task.findings.findings[:_MOST_FINDINGS]:
            yield f"    {one.place}: {one_line(one.claim, _LINE)}"
    if task.plan:
        yield f"  plan: {one_line(task.plan.summary, _LINE)}"
    if task.change:
        yield f"  done: {one_line(task.change.summary, _LINE)}"
    if task.base_tree and task.tree:
        paths = (each.path for each in git.changes(task.base_tree, task.tree))
        yield f"  files changed: {list_some(paths) or 'none'}"
