"""The crew of a task: one agent for each role, the checks, the store."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from agentflow.compose.builder import AgentFactory, SubagentPlace
from agentflow.compose.capability import Capability
from agentflow.compose.standard import Kit
from agentflow.core.evidence import CheckName, Surface
from agentflow.core.messages import DEFAULT_ROOM, ContextLimits
from agentflow.core.pending import Consent
from agentflow.core.ports import Model, ToolSource, Watch
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.routing import PIPELINE, ROLE_OF
from agentflow.core.run import Run
from agentflow.core.task import ChecksBeside, Phase, TaskMessage, TaskState
from agentflow.core.tool import Tool
from agentflow.hooks.chain import Chain
from agentflow.library.roles import Roles, list_subagents
from agentflow.library.skills import Skills, offer_skills, rank_by_words
from agentflow.loop.agent import Agent, Surroundings
from agentflow.model.tiers import DEEP, FAST, REPAIR
from agentflow.permissions.role_rules import find_owner
from agentflow.redact import redact_text
from agentflow.report.material import Material
from agentflow.routing.clauses import Table
from agentflow.routing.route import JUDGING
from agentflow.sandbox.background import BackgroundCommands
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox
from agentflow.store.journal import RunFile, load_run, load_runs, read_messages
from agentflow.store.ledger import TreeLedger
from agentflow.store.reading import TASKS
from agentflow.store.tasks import TaskStore
from agentflow.tools.files import NOTEBOOK_EDIT
from agentflow.tools.registry import SUBMITS, WEB, Toolbox, name_server_tools, offer_order
from agentflow.tools.remember import REMEMBER
from agentflow.tools.symbols import INDEX_TOOLS
from agentflow.verdict.case import list_runs
from agentflow.verdict.checking import Checking, Inspections, JudgeContext
from agentflow.verdict.own_tests import OwnTests
from agentflow.verdict.paths import describe_surface
from agentflow.verdict.some_tests import SomeTests
from agentflow.workflow.task_prompt import list_whole_files
from agentflow.workspace.changes import FileChange
from agentflow.workspace.git import Git
from agentflow.workspace.hook_watch import NoWatch
from agentflow.workspace.path_guard import PathGuard
from agentflow.workspace.side_copy import SideCopy
from agentflow.workspace.snapshot import TaskSnapshots
from agentflow.workspace.working_copy import to_pythonpath

if TYPE_CHECKING:
    from agentflow.repair.engine import RepairSearch
    from agentflow.workflow.early_checks import EarlyChecks, EarlyIndex

_BOUNDS = ("turns", "tool_calls")
_LEAST_COST = 1e-9
"""A limit of money that is used up: none at all would be no limit."""


async def _take_for_reachable() -> None:
    """Assume that a model on this machine can be reached."""


class StepPlace(Record):
    """The place of one step of a plan, where several are worked on at the same time."""

    copy: SideCopy | None = None
    """Its copy; None for the repository itself."""
    share: int = 1
    """The number of runs that share what is left of the budget."""
    since: str | None = None
    """The tree with which its change is compared; None for the tree before the task."""


class Recorded(Record):
    """What happened in the recorded task, where one is replayed, that no run's file says."""

    beside: ChecksBeside | None
    """What ran beside its first role."""
    conversation: Run | None
    """The conversation that it went on with."""
    recall_messages: Callable[[int, int], tuple[str, ...]]
    """Returns what a person said, by run and turns."""


class Crew(Record):
    """The parts that every phase works with; the state of the task is passed on separately."""

    git: Git
    workspace: PathGuard
    sandbox: Sandbox
    roles: Roles
    model: Model
    models: Mapping[str, str]
    """Tier to model id, where the user overrides it."""
    toolbox: Toolbox
    store: TaskStore
    checking: Checking
    inspections: Inspections
    """What inspecting the change finds."""
    snapshots: TaskSnapshots
    """The files before and after the task, for undo."""
    table: Table
    """The rules that classify the task."""
    watch: Watch
    """Finds the files that only hooks changed."""
    reach: Callable[[], Awaitable[None]] = _take_for_reachable
    """Raises ModelError where the model's server is not there, before the checks run."""
    room: Callable[[str], ContextLimits] = lambda _: DEFAULT_ROOM
    """Returns how long a conversation with a model may be, by its id."""
    consent: Consent = Consent.SUSPEND
    """How items that wait for a person are decided beforehand."""
    attended: bool = False
    """A person sits at the terminal and is asked there."""
    hooks: Chain = Chain()
    """Those of the task as a whole."""
    capabilities: tuple[Capability, ...] = ()
    """What every role gets beside the standard ones."""
    skills: Skills = Skills()
    servers: ToolSource | None = None
    """The MCP servers; None where none is configured."""
    denied: Callable[[tuple[Tool, ...]], frozenset[str]] = lambda _: frozenset()
    """Returns the server tools that the user's rules take away as a whole."""
    webhook: str | None = None
    """The user's address that is told when the task waits or ends."""
    step: StepPlace = StepPlace()
    recorded: Recorded | None = None
    base: "EarlyChecks | None" = None
    """The checks before the task, where its first role may begin beside them."""
    index: "EarlyIndex | None" = None
    """The index of symbols, which is built while the task begins."""
    grace: float | None = None
    """How many seconds that role waits for them; None for as long as they take."""
    mutate: Callable[[str, str, Callable[[], bool]], str] = lambda *_: ""
    """Tells which lines no test notices of what differs from a tree, as `ToolContext.mutate` does."""
    memory: Git | None = None
    """The repository whose memory the task reads and adds to; None for a replay."""

    def find_role(self, phase: Phase) -> Role:
        """Return the role of a phase; in plan mode the planner explores as well, with what that takes."""
        role, explorer = (self.roles.find_part(part) for part in (ROLE_OF[phase], PIPELINE[0]))
        if phase is not Phase.PLANNING or not self.store.task.options.plan_mode:
            return role
        most = {key: max(getattr(each.limits, key) for each in (role, explorer)) for key in _BOUNDS}
        tools = tuple(dict.fromkeys((*role.tools, *explorer.tools)))
        return role.replace(tools=tools, limits=role.limits.replace(**most))

    async def with_servers(self, phase: Phase) -> "Crew":
        """Return the crew with the tools of the MCP servers that the role of a phase may use."""
        if self.servers is None:
            return self
        tools = await self.servers.open_tools(self.find_role(phase))
        denied = self.denied(tools)
        named = tuple(name_server_tools(role, tools, denied) for role in self.roles.all)
        return self.replace(
            toolbox=Toolbox.of(*self.toolbox.tools, *tools), roles=self.roles.replace(all=named)
        )

    def switch_to_copy(self, copy: SideCopy, share: int) -> "Crew":
        """Return the crew for work in a copy of the repository, without MCP servers."""
        sandbox = self.sandbox.switch_to_view(copy.view)
        if sandbox.level is not Level.FULL:  # elsewhere the copy stands at the repository's own place
            imports = {"PYTHONPATH": to_pythonpath(copy.root, ("src", "."))}
            opened = sandbox.opened.replace(environment={**sandbox.opened.environment, **imports})
            sandbox = sandbox.replace(opened=opened)
        return self.replace(
            git=copy.git,
            workspace=self.workspace.switch_to_copy(copy.root),
            sandbox=sandbox,
            servers=None,
            watch=NoWatch(),
            step=StepPlace(copy=copy, share=share, since=copy.tree),
        )

    def build_agent(self, task: TaskState, phase: Phase, number: int, angle: str = "") -> Agent:
        """Return the agent for one run of a phase; `angle` tells runs at the same time apart."""
        model, models = self._choose_model(task, phase)
        toolbox = self._fill_toolbox(task, phase)
        factory = AgentFactory(
            kit=Kit(
                model=model,
                models=models,
                toolbox=offer_order(toolbox) if task.parallel_work else toolbox,
                events=self.store.emit,
                todos=() if self.step.copy else task.todos,
                repair=self._offer_repair(task, phase),
                reader=self.sandbox.of(PIPELINE[0]),
                room=self.room,
            ),
            capabilities=self.capabilities,
            known=tuple(
                _fit_budget(role, task, self.step.share)
                for role, _ in rank_by_words(task.task, list_subagents(self.roles.all))
            ),
            skills=partial(offer_skills, self.skills, phase=phase, paths=task.paths, text=task.task),
            place=self._place_subagent,
        )
        role = _fit_budget(self.find_role(phase), task, self.step.share)
        role = self._drop_needless_tools(role, task)
        return factory.build_first(role, self._build_surroundings(task, phase, number).replace(angle=angle))

    def _fill_toolbox(self, task: TaskState, phase: Phase) -> Toolbox:
        """Return the tools, with those for notebooks only where there is one: each request carries them."""
        writes = phase is Phase.IMPLEMENTATION and self.toolbox.find(NOTEBOOK_EDIT.name) is None
        files = self.git.list_paths(task.base_tree) if writes and task.base_tree else ()
        if not any(path.endswith(".ipynb") for path in files):
            return self.toolbox
        return Toolbox.of(*self.toolbox.tools, NOTEBOOK_EDIT)

    def _drop_needless_tools(self, role: Role, task: TaskState) -> Role:
        """Return a role without tools of an index or a memory that is not there: each request has them."""
        from agentflow.symbols.read import is_worth_indexing  # noqa: PLC0415  # only where a role runs

        names = set[str]() if task.options.remembers else {REMEMBER.name}
        if task.base_tree is not None and not is_worth_indexing(self.git.list_paths(task.base_tree)):
            names |= {tool.name for tool in INDEX_TOOLS}
        return role.replace(tools=tuple(rule for rule in role.tools if rule.tool not in names))

    def _choose_model(self, task: TaskState, phase: Phase) -> tuple[Model, Mapping[str, str]]:
        """Return the model of a run, with the id of each tier; a found repair needs none that is paid."""
        if phase is not Phase.IMPLEMENTATION or task.first_try is None or not task.is_first_try:
            return self.model, self.models
        from agentflow.repair.policy import Repair  # noqa: PLC0415  # only where a repair was found

        return Repair(found=task.first_try), {DEEP: REPAIR, FAST: REPAIR}

    def search_repair(self, task: TaskState) -> "RepairSearch | None":
        """Return the search for a repair, where tests fail that the built-in engine may know how to run."""
        is_alone, checks = self.model.name == REPAIR, self.checking.find_runs(task.baseline)
        red = [run for run in checks if run.check.name is CheckName.TESTS and run.evidence and not run.green]
        may_look = any(runner in run.check.command for run in red for runner in ("pytest", "unittest"))
        if not is_alone and not (task.options.repair_seconds and may_look):
            return None
        from agentflow.repair.engine import Attempt, RepairSearch  # noqa: PLC0415  # only where tests fail

        search = RepairSearch(
            sandbox=self.sandbox, checks=checks, blocked=task.blocked, observe=self.store.emit
        )
        if not is_alone:
            return search.replace(seconds=task.options.repair_seconds)
        account = task.first_try.account if task.first_try else ""
        attempts = (
            Attempt(
                tree=failure.tree,
                account=account,
                checks=tuple(run for run in self.checking.recall(failure.evidence) if not run.green),
            )
            for failure in task.failures
        )
        return search.replace(attempts=tuple(attempts))

    def _offer_repair(self, task: TaskState, phase: Phase) -> Tool | None:
        if phase is not Phase.IMPLEMENTATION or task.is_first_try or self.step.copy is not None:
            return None
        is_beside = self._begins_beside(task, phase)  # then its tools are chosen without the base run
        search = None if is_beside else self.search_repair(task)
        if search is None:
            return None
        from agentflow.repair.engine import offer_repair  # noqa: PLC0415  # only where tests fail

        return offer_repair(search)

    def _place_subagent(self, parent: Surroundings, name: str, call_id: str) -> SubagentPlace:
        runs = (load_run(path) for path in self.store.list_transcripts(name))
        saved = next((run for run in runs if run is not None and run.head.parent == call_id), None)
        task = self.store.task
        number = saved.head.run if saved else task.runs + 1
        self.store.save(task.replace(runs=max(number, task.runs)))
        path = self.store.run_path(number, name)
        around = parent.replace(
            number=number,
            journal=RunFile(path, lambda _: None),  # its changes are its own, not the task's
            transcript=path,
            angle="",
            shown=(),
            take_messages=None,
            take_news=None,
        )
        return SubagentPlace(
            around=around,
            events=partial(self.store.emit, parent=parent.number),
            saved=saved,
            answer=task.waiting.answers.get(saved.pause.pending.id) if saved and saved.pause else None,
        )

    def _build_surroundings(self, task: TaskState, phase: Phase, number: int) -> Surroundings:
        ledger = self.store.ledger
        held = frozenset(item.evidence for item in task.held if item.evidence is not None)
        judging = phase is Phase.VERIFICATION and task.tree is not None
        implements = phase is Phase.IMPLEMENTATION
        base = self.base if self._begins_beside(task, phase) else None
        # then planning may ask nothing: a person has to confirm its plan
        will_confirm = self.consent is Consent.SUSPEND and phase is Phase.PLANNING and task.routing.forced
        files = self.workspace
        if phase is Phase.REVIEW and task.base_tree is not None:  # it also reads what was deleted
            files = files.show_deleted(self.git, task.base_tree)
        return Surroundings(
            workspace=files,
            runner=self.sandbox.of(ROLE_OF[phase]),
            ledger=TreeLedger(ledger=ledger, tree=task.tree or "", iteration=task.iteration, held=held)
            if judging
            else ledger,
            journal=self.store.open_run(number, ROLE_OF[phase]),
            outputs=self.store.folder / "outputs",
            task_id=task.task_id,
            number=number,
            iteration=task.iteration,
            phase=phase,
            transcript=self.store.run_path(number, ROLE_OF[phase]),
            consent=self.consent,
            terms=task.options.terms,
            has_asked=phase in task.waiting.asked or will_confirm,
            owners=self._map_owners(),
            shown=list_whole_files(task, self._list_changed_paths(task)) if implements else (),
            watch=self.watch,
            take_messages=None if phase in JUDGING else partial(self._take_messages, phase, number),
            settle=partial(base.settle, self) if base else None,
            take_news=partial(base.take_news, self) if base else None,
            changed=self._find_own_changes if implements else None,
            mutate=None if self.step.copy else partial(self.mutate, task.base_tree or ""),
            background=None if self.step.copy else BackgroundCommands(),
            run_tests=SomeTests(
                checking=self.checking, sandbox=self.sandbox, task=task, workspace=self.workspace
            ),
            try_test=OwnTests(context=self.judging, workspace=self.workspace, load=lambda: self.store.task)
            if judging
            else None,
            repository=self.step.copy.main if self.step.copy else None,
        )

    def _map_owners(self) -> dict[str, str]:
        roles = tuple(self.roles.find_part(part) for part in PIPELINE)
        names = (*(tool.name for tool in self.toolbox.tools), *WEB)
        owned = {name: owner for name in names if (owner := find_owner(name, roles))}
        return {**owned, **{tool: part for part, tool in SUBMITS.items()}}

    def _begins_beside(self, task: TaskState, phase: Phase) -> bool:
        is_first = isinstance(task.beside, ChecksBeside) and phase is task.beside.phase
        return is_first and task.iteration == 1

    def forget_base(self, task: TaskState, phase: Phase) -> TaskState:
        """Return the task as its first role finds it, if that begins beside the checks before the task."""
        if not self._begins_beside(task, phase):
            return task
        task = task.replace(first_try=None)
        if isinstance(task.beside, ChecksBeside) and task.beside.is_search:
            return task
        surface = Surface(added=task.surface.added, removed=task.surface.removed)
        return task.replace(baseline=(), blocked={}, foreign_errors=(), surface=surface)

    def _take_messages(self, phase: Phase, number: int, turns: int) -> tuple[str, ...]:
        task = self.store.task
        if new := self._find_messages(task, number, turns):
            told = (TaskMessage(text=text, phase=phase, iteration=task.iteration) for text in new)
            self.store.save(task.replace(said=(*task.session.said, *told)))
        return new

    def has_message(self, task: TaskState) -> bool:
        """Return whether a message of the person has reached no role yet."""
        return bool(self._find_messages(task, task.runs + 1, 0))

    def _find_messages(self, task: TaskState, number: int, turns: int) -> tuple[str, ...]:
        if self.recorded is not None:
            return self.recorded.recall_messages(number, turns)
        return read_messages(self.store.folder)[len(task.session.said) :]

    def _find_own_changes(self) -> dict[str, bool]:
        """Return the files that differ from before the task or step, and whether it changed each itself."""
        seen = self.take_tree(self.store.task)
        seen = seen.replace(base_tree=self.step.since or seen.session.start_tree or seen.base_tree)
        own = {change.path for change in self.list_changes(seen)}
        return {change.path: change.path in own for change in self.list_changes(seen.replace(hook_files={}))}

    def recall_followed(self, task_id: str) -> Run | None:
        """Return the newest run of an earlier task that worked for itself and judged nothing."""
        if self.recorded is not None:
            return self.recorded.conversation
        roles = {ROLE_OF[phase] for phase in (Phase.EXPLORATION, Phase.IMPLEMENTATION)}
        runs = tuple(load_runs(self.store.folder.with_name(task_id)))
        own = (run for run in reversed(runs) if run.head.parent is None and not run.head.angle)
        return next((run for run in own if run.head.role in roles), None)

    def gather_material(self, task: TaskState) -> Material:
        is_unchecked = task.tree is None or task.reads_only
        return Material(
            runs=list_runs(task, self.checking.find_runs),
            surface=tuple if is_unchecked else partial(describe_surface, self.git, task),
            recall=self.checking.recall,
            diff=self.make_diff(task),
            folder=f"{TASKS}/{task.task_id}",
            changed=self._list_changed_paths(task),
            roles={role: _fit_budget(self.find_role(phase), task) for phase, role in ROLE_OF.items()},
            network=self.sandbox.opened.network,
        )

    def make_diff(self, task: TaskState) -> str:
        """Return the task's own change up to its last recorded tree, without files of hooks."""
        paths = self._list_changed_paths(task)
        if task.base_tree is None or task.tree is None or not paths:
            return ""
        return redact_text(self.git.make_diff(task.base_tree, task.tree, *(paths if task.hook_files else ())))

    def _list_changed_paths(self, task: TaskState) -> tuple[str, ...]:
        return tuple(change.path for change in self.list_changes(task))

    @property
    def is_confined(self) -> bool:
        """Nothing that a role who only reads can start is able to change a file."""
        is_free = self.servers is not None or not isinstance(self.watch, NoWatch)
        return self.sandbox.level is Level.FULL and not is_free

    @property
    def judging(self) -> JudgeContext:
        return JudgeContext(
            git=self.git,
            sandbox=self.sandbox,
            checking=self.checking,
            inspections=self.inspections,
            ledger=self.store.ledger,
            watch=self.watch,
        )

    def take_tree(self, task: TaskState) -> TaskState:
        """Return the task with the tree on disk now, and with the files that only hooks changed."""
        return self.judging.take_tree(task)

    def list_changes(self, task: TaskState) -> tuple[FileChange, ...]:
        """Return the files that the task itself changed up to its last recorded tree."""
        return self.judging.list_changes(task)


def _fit_budget(role: Role, task: TaskState, share: int = 1) -> Role:
    limits, budget, usage = role.limits, task.options.budget, task.usage
    if budget.tokens is not None:
        left = max(1, (budget.tokens - usage.tokens) // share)
        limits = limits.replace(tokens=min(left, limits.tokens or left))
    if budget.cost is not None:
        rest = max(_LEAST_COST, (budget.cost - (usage.cost_usd or 0)) / share)
        limits = limits.replace(cost=min(rest, limits.cost or rest))
    return role.replace(limits=limits)
