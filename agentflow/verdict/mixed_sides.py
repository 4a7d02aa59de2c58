"""Trees with the code of one side of a task and the checks of the other."""

from functools import partial

from agentflow.checks.dependencies import find_manifest
from agentflow.core.task import TaskState
from agentflow.verdict.mixed_files import has_parts, is_shared, mix
from agentflow.verdict.projects import find_new_projects, get_folder
from agentflow.verdict.surface import is_kept_original
from agentflow.workspace.changes import ChangeKind
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import TreeSplit, mix_trees


def lay_original_checks(git: Git, task: TaskState) -> str:
    """Return the tree with the code of now and the checks from before the task."""
    base, tree = task.trees
    return mix_trees(git, tree, base, _split_by(task))


def lay_new_checks(git: Git, task: TaskState) -> str:
    """Return the tree with the code from before the task and the checks of now.

    A new project keeps its manifests there: without them its tests fail whatever the code is.
    """
    base, tree = task.trees
    added = (each.path for each in git.list_changes(base, tree) if each.kind is ChangeKind.ADDED)
    manifests = {path for path in added if find_manifest(path)}
    folders = find_new_projects(task.surface, manifests, git.list_paths(base))
    kept = {path for path in manifests if get_folder(path) in folders}
    split = _split_by(task)
    return mix_trees(git, base, tree, split.replace(belongs=lambda path: path in kept or split.belongs(path)))


def _split_by(task: TaskState) -> TreeSplit:
    surface = task.surface
    return TreeSplit(
        belongs=partial(is_kept_original, surface),
        is_shared=lambda path: is_shared(path) or has_parts(surface, path),
        mix=mix,
    )
