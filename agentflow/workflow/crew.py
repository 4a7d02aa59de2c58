"""The crew of a task: one agent for each role, the checks, the store."""

from collections.abc import Mapping
from types import MappingProxyType

from agentflow.core.messages import total
from agentflow.core.ports import Model
from agentflow.core.record import Record
from agentflow.core.role import PIPELINE
from agentflow.core.run import Run
from agentflow.core.task import Phase, TaskState
from agentflow.library.roles import Roles
from agentflow.loop.agent import Agent
from agentflow.loop.context import system_prompt
from agentflow.loop.run import run_agent
from agentflow.model.tiers import model_id
from agentflow.permissions.decide import owner_of
from agentflow.store.ledger import TreeLedger
from agentflow.store.tasks import HOME, TaskStore
from agentflow.tools.registry import SUBMITS, Toolbox
from agentflow.workflow.brief import Material, brief
from agentflow.workflow.checking import Checking
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import FileChange, Git

ROLE_OF: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.EXPLORATION: "explorer",
        Phase.PLANNING: "planner",
        Phase.IMPLEMENTATION: "implementer",
        Phase.REVIEW: "reviewer",
        Phase.VERIFICATION: "verifier",
    }
)
"""Who works in a phase."""


class Crew(Record):
    """Everything the phases use; the state itself is handed from phase to phase."""

    git: Git
    workspace: Fence
    roles: Roles
    model: Model
    models: Mapping[str, str]
    """Tier to model id, where the user overrides it."""
    toolbox: Toolbox
    store: TaskStore
    checking: Checking

    async def dispatch(self, task: TaskState, phase: Phase) -> tuple[TaskState, Run]:
        """Run the role of a phase; return the state with what its calls changed, and the run."""
        number = task.runs + 1
        self.store.save(task.replace(runs=number))
        run = await run_agent(self._agent(task, phase, number), brief(task, phase, self.material(task)))
        usage = run.usage if number == 1 else total((task.usage, run.usage))
        task = self.store.task.replace(usage=usage)
        self.store.save(task)
        return task, run

    def _agent(self, task: TaskState, phase: Phase, number: int) -> Agent:
        role = self.roles.part(ROLE_OF[phase])
        submit = self.toolbox.find(SUBMITS[ROLE_OF[phase]])
        ledger = self.store.ledger
        judging = phase is Phase.VERIFICATION and task.tree is not None
        return Agent(
            role=role,
            model=self.model,
            model_id=model_id(role.model, self.models),
            system=system_prompt(role, submit.name if submit else None),
            tools=self.toolbox.offered(role),
            submit=submit,
            owners={tool.name: owner for tool in self.toolbox.tools if (owner := self._owner(tool.name))},
            workspace=self.workspace,
            ledger=TreeLedger(ledger=ledger, tree=task.tree or "") if judging else ledger,
            journal=self.store.open_run(number, ROLE_OF[phase]),
            observe=self.store.emit,
            outputs=self.store.folder / "outputs",
            task_id=task.task_id,
            number=number,
            iteration=task.iteration,
        )

    def _owner(self, tool: str) -> str | None:
        return owner_of(tool, tuple(self.roles.part(part) for part in PIPELINE))

    def material(self, task: TaskState) -> Material:
        """Return what a brief or a report quotes beside the state."""
        return Material(
            baseline=self.checking.runs(task.baseline),
            final=self.checking.runs(task.final),
            shown=self.checking.shown,
            diff=self.diff(task),
            folder=f"{HOME}/{task.task_id}",
        )

    def diff(self, task: TaskState) -> str:
        """Return the change so far, as of the last tree that was taken."""
        if task.base_tree is None or task.tree is None or task.tree == task.base_tree:
            return ""
        return self.git.diff(task.base_tree, task.tree)

    def changes(self, task: TaskState) -> tuple[FileChange, ...]:
        """Return the files that differ from before the task, as of the last tree that was taken."""
        if task.base_tree is None or task.tree is None:
            return ()
        return self.git.changes(task.base_tree, task.tree)
