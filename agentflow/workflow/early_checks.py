"""The checks before the task, and the engine's search for a repair, beside the first role's reading."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import anyio
from anyio import to_thread

from agentflow.checks.repository import TEST_COMMAND
from agentflow.core.check_command import format_command
from agentflow.core.errors import AgentflowError, ToolError
from agentflow.core.events import RepairTried, Warned
from agentflow.core.evidence import RED, CheckName, describe_end
from agentflow.core.regex import regex
from agentflow.core.role import FirstTry
from agentflow.core.task import ChecksBeside, Phase, TaskState
from agentflow.model.tiers import REPAIR
from agentflow.process import check_cancelled
from agentflow.redact import redact_text
from agentflow.routing.clauses import is_only_about_checks
from agentflow.settings import find_folders
from agentflow.verdict.case import find_faults
from agentflow.verdict.notes import find_uncounted
from agentflow.verdict.paths import examine_base
from agentflow.verdict.target_tests import find_target_tests
from agentflow.wording import describe_finding
from agentflow.workflow.crew import Crew
from agentflow.workflow.gates import format_check
from agentflow.workflow.task_prompt import write_base_news

_SEARCH_SECONDS = 3.0
"""How long the first edit waits for the search."""
_STOPPED = "the search was stopped at your first edit or command; it had found nothing by then"
_FOUND = ("baseline", "surface", "ignored", "blocked", "foreign_errors", "repair_seconds")
"""The keys of a task that its base run fills in."""


async def examine(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what the checks show before any change."""
    task = await examine_base(crew.judging, task, ends_stalled=is_only_about_checks(task.task))
    foreign = crew.checking.find_foreign_errors(task.baseline)
    return task.replace(blocked=crew.checking.find_blocked(task.baseline), foreign_errors=foreign)


_MOST_TRIAL_SECONDS = 0.2
"""Of one edit; a search whose trials take longer makes too few of them."""
_TOOK = regex(r"\bin (\d+(?:\.\d+)?) ?s\b")
"""What runners print of the time of the tests alone, without their start."""


def drop_slow_repair(crew: Crew, task: TaskState) -> TaskState:
    """Return the task without a tool for repairs where its failing tests take long; replays are told so."""
    for run in crew.checking.find_runs(task.baseline):
        if run.check.name is CheckName.TESTS and run.evidence and (failing := run.list_ids(*RED)):
            printed = _TOOK.findall(run.tail)
            took = float(printed[-1]) if printed else run.evidence.seconds
            if took * len(failing) / len(run.tests_with_result) > _MOST_TRIAL_SECONDS:
                return task.replace(repair_seconds=0)
    return task


def describe_base(crew: Crew, task: TaskState) -> str:
    """Warn of what keeps the result below verified; return how the checks stand, as the gate says it."""
    for warning in _list_warnings(crew, task):
        crew.store.emit(Warned(message=warning))
    lines = map(format_check, crew.checking.find_runs(task.baseline))
    return "\n".join(lines) or "- no checks found in this repository"


class EarlyChecks:
    """Runs them in the background; the result joins the task before anything can change a file.

    Until then it is in no saved state, so that a task that is killed meanwhile runs them again.
    """

    def __init__(self, begin: Callable[..., object], grace: float, recorded: ChecksBeside | None) -> None:
        """Set how many seconds the first request waits, or what a recorded task did."""
        self._begin, self._grace, self._recorded = begin, grace, recorded
        self._examined, self._done = anyio.Event(), anyio.Event()
        self._search = anyio.CancelScope()
        self._found: TaskState | None = None
        self._failure: AgentflowError | None = None

    def start(self, crew: Crew, task: TaskState) -> None:
        self._begin(self._run, crew, task)

    async def _run(self, crew: Crew, task: TaskState) -> None:
        try:
            self._found = task if task.baseline else await examine(crew, task)
            self._examined.set()
            with self._search:
                self._found = await try_first(crew, self._found)
        except AgentflowError as error:
            self._failure = error
        if self._search.cancelled_caught and self._found is not None:
            self._found = self._found.replace(first_try=FirstTry(account=_STOPPED, iteration=task.iteration))
        self._examined.set()
        self._done.set()

    async def _wait(self, done: anyio.Event) -> TaskState:
        await done.wait()
        if self._failure is not None:
            raise self._failure
        assert self._found is not None
        return self._found

    async def find_soon(self, crew: Crew, task: TaskState) -> TaskState:
        """Return the task with the result, or as one whose first role begins beside what still runs."""
        self.start(crew, task)
        if self._recorded is not None:
            is_search = self._recorded.is_search
        else:
            with anyio.move_on_after(0 if task.session.follows else self._grace):
                return await self._wait(self._done)
            is_search = self._examined.is_set()
        found = await self._wait(self._examined) if is_search else task
        return found.replace(
            beside=ChecksBeside(phase=task.routing.steps[0], is_search=is_search), first_try=None
        )

    async def settle(self, crew: Crew) -> None:
        """Wait for the result and save it; nothing where that is done."""
        task = crew.store.task
        if not isinstance(task.beside, ChecksBeside) or task.beside.is_settled:
            return
        await self._wait(self._examined)
        with anyio.move_on_after(_SEARCH_SECONDS) as late:
            await self._done.wait()
        if late.cancelled_caught:
            self._search.cancel()
        found = await self._wait(self._done)
        found = drop_slow_repair(crew, found)
        first_try = found.first_try and found.first_try.replace(refused="you had begun")
        beside = task.beside.replace(is_settled=True)
        task = crew.store.task.replace(beside=beside, first_try=first_try, **found.get_values(_FOUND))
        if not beside.is_search:
            gate = task.get_gate(Phase.REFINEMENT).replace(message=describe_base(crew, task))
            task = task.with_gate(Phase.REFINEMENT, gate)
        crew.store.save(task)

    async def take_news(self, crew: Crew, turns: int) -> str:
        """Return what the role that began beside the run is told of it, once it is there.

        A replay tells it before the same request as the recorded task.
        """
        is_due = self._done.is_set() if self._recorded is None else self._recorded.told == turns
        if is_due:
            await self.settle(crew)
        task, beside = crew.store.task, crew.store.task.beside
        if not isinstance(beside, ChecksBeside) or not beside.is_settled or beside.told not in (None, turns):
            return ""
        if beside.told is None:
            crew.store.save(task.replace(beside=beside.replace(told=turns)))
        return write_base_news(task, crew.gather_material(task))


async def try_first(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what the engine finds for a text that asks for nothing but passing checks."""
    if (
        task.session.follows
        or task.routing.forced
        or task.options.plan_mode
        or not is_only_about_checks(task.task)
    ):
        return task
    runs = [
        run for run in crew.checking.find_runs(task.baseline) if run.evidence is not None and not run.green
    ]
    failing = frozenset[str]().union(*(run.list_ids(*RED) or {str(run.check.name)} for run in runs))
    is_asked = bool(find_target_tests(crew.git, task.base_tree, task.task, failing).asked)
    return await try_repair(crew, task) if is_asked else task


async def try_repair(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what the repair engine finds without a request, if it may search.

    Raises ModelRejected where the engine is the task's model and finds nothing.
    """
    is_known = task.first_try is not None and task.first_try.iteration == task.iteration
    search = None if is_known else crew.search_repair(task)
    if search is not None:
        from agentflow.repair.engine import work_in_thread  # noqa: PLC0415  # only where tests fail

        begin, is_alone = time.monotonic(), crew.model.name == REPAIR
        tried = await work_in_thread(search.mend if is_alone else search.look)
        task = task.replace(first_try=tried and tried.replace(iteration=task.iteration))
        if tried:
            took = round(time.monotonic() - begin, 3)
            crew.store.emit(RepairTried(found=bool(tried.files), account=tried.account, seconds=took))
    return task


def awaits_base(task: TaskState) -> bool:
    """Return whether the first role works, or may go on, without the result of the base run."""
    return isinstance(task.beside, ChecksBeside) and not task.beside.is_settled


def _list_warnings(crew: Crew, task: TaskState) -> Iterator[str]:
    at_best = "the result is at best exit code 4"
    for run in crew.checking.find_runs(task.baseline):
        name = run.check.name
        if name is CheckName.TESTS and (found := crew.checking.find_watching(run.check)):
            yield (
                f"{name}: `{format_command(run.check.command)}` does not end, since {found.option} watches "
                f"for changes: write `{found.instead}` into {TEST_COMMAND}"
            )
        if why := task.blocked.get(name) or run.check.left_out:
            part = " as a whole" if run.tests_with_result else ""
            cost = f"; without it {at_best}. To skip it: --skip-check {name} --reason REASON"
            yield f"{name} cannot run{part} here: {why}{'' if run.check.only_looks else cost}"
        elif run.evidence and not (run.green or run.evidence.timed_out or find_faults(run) or run.tells_red):
            cost = "" if run.check.only_looks else f"; {at_best}"
            end = describe_end(run.evidence)
            yield f"{name} fails before the change, without a failing test or finding: {end}{cost}"
        elif name is CheckName.TESTS and run.green and run.counts is None:
            yield f"{describe_finding(find_uncounted(run.check))}; {at_best}"


_GRACE_SECONDS = 0.5
"""How long the first request of a paid model waits for the map."""
_BUILD_SECONDS = 600


class EarlyIndex:
    """Builds the index in the background; a task whose first role cannot wait for it begins without a map."""

    def __init__(self, begin: Callable[..., object]) -> None:
        self._begin = begin
        self._done = anyio.Event()
        self._files: tuple[str, ...] = ()

    def start(self, crew: Crew, task: TaskState) -> None:
        from agentflow.symbols.read import is_worth_indexing  # noqa: PLC0415

        if task.tree is None or task.known.surroundings or crew.model.name == REPAIR:
            return
        files = crew.git.list_paths(task.tree)
        if is_worth_indexing(files):
            self._files = files
            self._begin(self._build, crew)

    async def _build(self, crew: Crew) -> None:
        from agentflow.symbols.build import build  # noqa: PLC0415  # only where there is source

        with suppress(ToolError, OSError):
            await to_thread.run_sync(
                build,
                find_folders(os.environ).symbols,
                crew.git.root,
                self._files,
                _BUILD_SECONDS,
                check_cancelled,
            )
        self._done.set()

    async def draw(self, crew: Crew, task: TaskState, shown: Iterable[str]) -> str:
        """Return the map for a task without the files that are shown anyhow; empty if it is late."""
        if not self._files:
            return ""
        with anyio.move_on_after(_GRACE_SECONDS if crew.grace is not None else math.inf):
            await self._done.wait()
            return await to_thread.run_sync(_draw, crew, task, tuple(shown), abandon_on_cancel=True)
        return ""


def _draw(crew: Crew, task: TaskState, shown: tuple[str, ...]) -> str:
    from agentflow.symbols.index import open_index  # noqa: PLC0415
    from agentflow.symbols.repo_map import write_repo_map  # noqa: PLC0415

    def read(path: str) -> str | None:
        content = crew.workspace.peek(path)
        return None if content is None else redact_text(content.decode("utf-8", "replace"))

    text = f"{task.task}\n{task.intent.goal}" if task.intent.goal != task.task else task.task
    try:
        with open_index(find_folders(os.environ).symbols, crew.git.root) as index:
            return write_repo_map(index, read, text, shown)
    except ToolError:
        return ""
