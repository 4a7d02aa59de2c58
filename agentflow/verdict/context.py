"""What judging a change needs: the repository, its checks, and what is to be seen of the diff."""

from agentflow.core.ports import Watch
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.sandbox.run import Sandbox
from agentflow.store.ledger import EvidenceLedger
from agentflow.verdict.checking import Checking
from agentflow.verdict.drift import set_apart
from agentflow.verdict.sight import Sight
from agentflow.workspace.git import FileChange, Git


class JudgeContext(Record):
    """The repository of a task and the program's own eyes on it."""

    git: Git
    sandbox: Sandbox
    checking: Checking
    sight: Sight
    ledger: EvidenceLedger
    watch: Watch
    """Tells what only hooks changed."""

    def look(self, task: TaskState) -> TaskState:
        """Return the task with the tree as it is on disk now, and with what of it only hooks changed."""
        return task.replace(tree=self.git.tree(), hook_files=self.watch.files())

    def changes(self, task: TaskState) -> tuple[FileChange, ...]:
        """Return the files that differ from before the task as of the last tree, but those of hooks."""
        if task.base_tree is None or task.tree is None:
            return ()
        apart = set_apart(task)
        changes = self.git.changes(task.base_tree, task.tree)
        return tuple(change for change in changes if change.path not in apart) if apart else changes
