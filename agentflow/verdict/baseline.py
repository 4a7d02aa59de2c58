"""How the checks stand before anything changes, and what belongs to them."""

from agentflow.core.evidence import Side
from agentflow.core.task import TaskState
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.mixed import is_shared
from agentflow.verdict.observation import observed_before
from agentflow.verdict.runner import Order
from agentflow.verdict.surface import kind_of, surface_of
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import fingerprint

_NAMED = 5
_SHARED = "settings of checkers beside those of the product"


async def examine_base(context: JudgeContext, task: TaskState) -> TaskState:
    """Run the required checks before anything changes, and write down what belongs to them."""
    assert task.base_tree is not None
    files = context.git.paths(task.base_tree)
    checks = context.checking.required(task, files)
    repository = context.checking.repository(files)
    surface = surface_of(repository, checks, task.surface.added, task.surface.removed)
    order = Order(checks=checks, tree=task.base_tree, surface=Side.BASE, code=Side.BASE)
    ignored = context.git.ignored()
    (baseline,) = await context.checking.run(task, order, ignored=ignored)
    marks = fingerprint(context.git.root, ignored)
    task = task.replace(baseline=baseline, surface=surface, ignored=marks)
    return task.replace(surface=observed_before(context, task))


def listed(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return what belonged to the checks before the task, a line for each reason."""
    if task.base_tree is None:
        return ()
    found: dict[str, list[str]] = {}
    for path in git.paths(task.base_tree):
        kind = kind_of(path, task.surface) or (_SHARED if is_shared(path) else None)
        if kind is not None:
            found.setdefault(kind, []).append(path)
    gap = (f"not watched, names alone tell: {task.surface.gap}",) if task.surface.gap else ()
    return (*(f"{kind}: {_shortened(paths)}" for kind, paths in found.items()), *gap)


def _shortened(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"
