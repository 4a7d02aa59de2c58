"""A role at work in its phase: how its run begins or continues, and what becomes of its submission."""

from collections.abc import Iterator

from agentflow.core.errors import ModelError, ModelRejected, ModelUnavailable
from agentflow.core.events import Answered, Classified, Retried, Warned
from agentflow.core.finding import FindingKind
from agentflow.core.fold import DELEGATE
from agentflow.core.languages import is_document_path
from agentflow.core.messages import Speaker, Stop, Usage, sum_usage
from agentflow.core.pending import OWN_WORDS, Answer, Consent, Pending, PendingKind, decide_now
from agentflow.core.record import Record
from agentflow.core.role import Change
from agentflow.core.routing import ROLE_OF
from agentflow.core.run import Run, RunOutcome, RunPaused
from agentflow.core.task import GateStatus, Phase, Status, TaskState
from agentflow.loop.run import continue_run, run_agent
from agentflow.model.tiers import REPAIR
from agentflow.report.report import end_without_answer
from agentflow.routing.classify import MOST_FILES
from agentflow.routing.route import reclassify_by_plan, reclassify_by_size
from agentflow.store.journal import load_run
from agentflow.store.task_file import format_plan, parse_plan
from agentflow.verdict.ending import end_without_result, fail
from agentflow.verdict.surface import is_check_file
from agentflow.workflow.crew import Crew
from agentflow.workflow.early_checks import try_repair
from agentflow.workflow.gates import (
    decide_gate,
    decide_or_suspend,
    end_in_phase,
    make_pending,
    record_answer,
    suspend_for,
)
from agentflow.workflow.refinement import note_drift
from agentflow.workflow.task_prompt import (
    list_plan_lines,
    write_agreed_prompt,
    write_correction_prompt,
    write_follow_prompt,
    write_iteration_prompt,
    write_proving_prompt,
    write_task_prompt,
)

GO_ON = "go on from here"
GIVE_UP = "give up"
_NO_SUMMARY = "the implementer gave no summary"
_LOST = (RunOutcome.NO_SUBMISSION, RunOutcome.INVALID_SUBMISSION)


class RunPrompt(Record):
    """The task prompt of one run, with a name that is unique among simultaneous runs."""

    name: str
    text: str
    earlier: Run | None = None
    """The run whose conversation the prompt continues."""
    followed: Run | None = None
    """The run of an earlier task whose conversation it continues."""
    is_step: bool = False
    """True if it is for a step of the plan, whose run is found by name as other steps change the text."""


async def dispatch(crew: Crew, phase: Phase, prompt: RunPrompt | None = None) -> Run:
    """Run the role of a phase until it ends or waits for something that nobody decided beforehand."""
    while (run := await _dispatch(crew, phase, prompt)).pause is not None:
        item = run.pause.pending
        decision = decide_now(crew.consent, item)
        if decision is None:
            break
        crew.store.save(record_answer(crew.store.task, item, decision))
        crew.store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.author))
    return run


async def _dispatch(crew: Crew, phase: Phase, prompt: RunPrompt | None) -> Run:
    """Run the role of a phase on the newest state, which its calls change.

    An interrupted run of the same prompt continues, and a submitted one is not repeated. A run whose reply
    was lost is begun once more, unless files were changed by then: a person decides about those.
    """
    prompt = prompt or _write_prompt(crew, phase)
    number, saved = _find_saved(crew, phase, prompt)
    failure = None
    try:
        run = await _attempt(crew, phase, prompt, number, saved)
    except ModelUnavailable as error:
        if error.is_settled:
            raise
        failure, run = error, _load_run(crew, number, phase)
    except ModelError:  # the run does not continue, so its usage counts now
        _count_usage(crew, _load_run(crew, number, phase))
        raise
    reason = str(failure) if failure else explain_loss(run)
    if reason is None:
        return run
    _count_usage(crew, run)
    if paused := _ask_about_changes(crew, run, reason):
        return paused
    crew.store.emit(Retried(run=number, attempt=1, reason=reason, seconds=0))
    again = await _attempt(crew, phase, prompt, crew.store.task.runs + 1, None)
    if failure is not None and explain_loss(again) is not None:
        raise failure
    return again


def explain_loss(run: Run) -> str | None:
    """Return how the result of a run was lost, or None; a short but complete reply is not lost."""
    if run.outcome not in _LOST:
        return None
    if run.reply_stop is Stop.MAX_TOKENS:
        return "the reply was cut off"
    return None if run.messages[-1].text.strip() or run.rejected else "the reply was empty"


def _write_prompt(crew: Crew, phase: Phase) -> RunPrompt:
    task = crew.forget_base(crew.store.task, phase)
    material = crew.gather_material(task)
    if earlier := _find_earlier_run(crew, phase):
        write = write_proving_prompt if task.is_proving else write_iteration_prompt
        return RunPrompt(name="", text=write(task, material), earlier=earlier)
    name, decision = find_plan_decision(task)
    planned = _find_plan_run(crew, phase) if task.options.plan_mode and name else None
    if planned and phase is Phase.IMPLEMENTATION:
        return RunPrompt(name="", text=write_agreed_prompt(task, material), followed=planned)
    if task.options.plan_mode and name and phase is Phase.PLANNING:
        told = () if planned else (write_task_prompt(task.replace(rejected_plan=None), phase, material),)
        text = "\n\n".join((*told, write_correction_prompt(task, decision.text)))
        return RunPrompt(name="", text=text, earlier=planned)
    if followed := _find_followed_run(crew, phase):
        is_known = {each.path for each in task.known.excerpts if followed.mentions(each.path)}
        left = tuple(each for each in task.known.excerpts if each.path not in is_known)
        is_other = followed.head.role != ROLE_OF[phase]
        text = write_follow_prompt(task.replace(excerpts=left), phase, material, is_other_role=is_other)
        return RunPrompt(name="", text=text, followed=followed)
    return RunPrompt(name="", text=write_task_prompt(task, phase, material))


def _find_followed_run(crew: Crew, phase: Phase) -> Run | None:
    """Return the run of the task before whose conversation the first role of this one goes on with."""
    task = crew.store.task
    is_first = (
        phase in task.routing.steps[:1] and task.iteration == 1 and not (task.is_found or task.is_proving)
    )
    if task.session.continues is None or not is_first or phase in task.waiting.asked:
        return None
    run = crew.recall_followed(task.session.continues)
    return run if run is not None and _may_be_followed(crew, run) else None


def _may_be_followed(crew: Crew, run: Run) -> bool:
    if run.outcome is None or run.pause is not None or run.active is not None:
        return False
    fits = max(run.tokens, run.used[-1].tokens if run.used else 0) < crew.room(run.head.model).compacted_at
    return fits and not run.is_archived and run.head.model != REPAIR


def _find_plan_run(crew: Crew, phase: Phase) -> Run | None:
    """Return the run that made the plan, where its conversation goes on: to carry it out, or to change it."""
    task = crew.store.task
    is_first = task.iteration == 1 and not task.is_proving and phase not in task.waiting.asked
    if phase is not Phase.PLANNING and not (phase is Phase.IMPLEMENTATION and is_first):
        return None
    role = ROLE_OF[Phase.PLANNING]
    runs = (load_run(crew.store.run_path(number, role)) for number in _list_numbers(crew, role))
    run = next((run for run in runs if run is not None and run.outcome is RunOutcome.SUBMITTED), None)
    return run if run is not None and _may_be_followed(crew, run) else None


def _find_earlier_run(crew: Crew, phase: Phase) -> Run | None:
    """Return the run whose change failed or stands unproved, if its conversation can go on.

    It has to fit, and nothing else may be new.
    """
    task = crew.store.task
    may_go_on = (
        task.options.spares_tokens and phase is Phase.IMPLEMENTATION and phase not in task.waiting.asked
    )
    trees = [failure.tree for failure in task.failures if failure.iteration == task.iteration - 1]
    if task.is_proving and task.stands is not None:
        trees = [task.stands.tree]
    if not may_go_on or not trees or trees[-1] != task.tree:
        return None
    role = ROLE_OF[phase]
    saved = (load_run(crew.store.run_path(number, role)) for number in _list_numbers(crew, role))
    stands = task.stands if task.is_proving else None

    def is_earlier(run: Run) -> bool:
        return run.head.iteration < task.iteration if stands is None else run.head.run <= stands.run

    run = next((run for run in saved if run is not None and is_earlier(run)), None)
    if run is None or run.outcome is not RunOutcome.SUBMITTED or run.active is not None:
        return None
    if run.head.model == REPAIR:  # nothing was said there that a model could go on with
        return None
    tokens = max(run.tokens, run.used[-1].tokens)
    return run if tokens < crew.room(run.head.model).compacted_at else None


async def _attempt(crew: Crew, phase: Phase, prompt: RunPrompt, number: int, saved: Run | None) -> Run:
    store = crew.store
    store.save(store.task.replace(runs=max(number, store.task.runs)))
    if saved is None or saved.outcome is None:
        crew = await crew.with_servers(phase)
    agent = crew.build_agent(store.task, phase, number, prompt.name)
    if saved is not None and saved.outcome is None and not saved.used and saved.head.model != agent.model_id:
        return await _attempt(crew, phase, prompt, store.task.runs + 1, None)  # its model was corrected
    if saved is None:
        run = await run_agent(agent, prompt.text, prompt.earlier, prompt.followed)
    else:
        store.change(saved.changes)
        answer = store.task.waiting.answers.get(saved.pause.pending.id) if saved.pause else None
        run = saved if saved.outcome else await continue_run(agent, saved, answer)
    begins_anew = run.pause is not None and run.pause.pending.kind is PendingKind.ESCALATION
    if run.outcome is not None or begins_anew:
        _count_usage(crew, run)
    return run


def _count_usage(crew: Crew, run: Run) -> None:
    task, number = crew.store.task, run.head.run
    if number not in task.counted:
        spent = _sum_usage(crew, run)
        usage = sum_usage((task.usage, spent)) if task.counted else spent
        crew.store.save(task.replace(usage=usage, counted=(*task.counted, number)))


def _sum_usage(crew: Crew, run: Run) -> Usage:
    calls = {call.id for call in run.pending if call.name == DELEGATE}
    saved = map(load_run, crew.store.list_transcripts("*")) if calls else ()
    waiting = (child for child in saved if child is not None and child.head.parent in calls)
    return sum_usage((run.cost, *(_sum_usage(crew, child) for child in waiting)))


def _find_saved(crew: Crew, phase: Phase, prompt: RunPrompt) -> tuple[int, Run | None]:
    for number in _list_numbers(crew, ROLE_OF[phase]):
        run = load_run(crew.store.run_path(number, ROLE_OF[phase]))
        if run is None or run.head.iteration != crew.store.task.iteration:
            break
        is_usable = run.outcome in (None, RunOutcome.SUBMITTED) and bool(run.messages)
        if is_usable and _matches_prompt(prompt, run):
            return number, run
    return crew.store.task.runs + 1, None


def _matches_prompt(prompt: RunPrompt, run: Run) -> bool:
    if not prompt.is_step:
        return run.task_prompt == prompt.text
    begins_anew = run.pause is not None and run.pause.pending.kind is PendingKind.ESCALATION
    return run.head.angle == prompt.name and not begins_anew


def _list_numbers(crew: Crew, role: str) -> Iterator[int]:
    return (
        number for number in range(crew.store.task.runs, 0, -1) if crew.store.run_path(number, role).exists()
    )


def _load_run(crew: Crew, number: int, phase: Phase) -> Run:
    run = load_run(crew.store.run_path(number, ROLE_OF[phase]))
    assert run is not None
    return run


def _ask_about_changes(crew: Crew, run: Run, reason: str) -> Run | None:
    task = crew.store.task
    if crew.step.copy is not None:
        return None  # nothing of it is in the repository
    seen = crew.take_tree(task)
    if run.head.role != ROLE_OF[Phase.IMPLEMENTATION] or task.tree is None or seen.tree is None:
        return None
    changes = crew.list_changes(seen.replace(base_tree=task.tree))
    if not changes:
        return None
    rows = crew.git.make_diff(task.tree, seen.tree, *(each.path for each in changes)).split("\n")
    lines = [row for row in rows if not row.startswith(("+++", "---"))]
    added, removed = (sum(row.startswith(sign) for row in lines) for sign in "+-")
    asked = {
        "why": f"the {run.head.role} was interrupted: {reason}",
        "changed": ", ".join(f"{one.kind} {one.path}" for one in changes),
        "lines": f"+{added} -{removed}",
    }
    pending = make_pending(f"lost-{run.head.run}", PendingKind.QUESTION, asked, (GO_ON, GIVE_UP))
    if decide_now(crew.consent, pending) is not None:
        return None
    crew.store.save(seen)
    return run.replace(pause=RunPaused(call_id="", pending=pending))


_PLAN_ID = "plan-"
"""Before the number of a plan, in the order in which a person is asked about them."""
CHOICES = ("confirm", f"correct the plan: {OWN_WORDS}", f"adjust the scope: {OWN_WORDS}")


async def work(crew: Crew, task: TaskState) -> TaskState:
    """Run the role of the phase and take its submission."""
    phase = task.current_phase
    answer = task.waiting.answers.get(f"lost-{task.runs}")
    if answer is not None and answer.text == GIVE_UP:
        return end_in_phase(task, phase, fail("given up after an interrupted change"))
    if phase is Phase.PLANNING and (decision := find_plan_decision(task))[0]:
        task = _take_plan_edits(crew, _take_tree(crew, task))
        crew.store.save(task)
        if decision[1].approved:
            return accept(crew, task, crew.roles.find_part(ROLE_OF[phase]).name)
    run = await _run_role(crew, phase)
    task = crew.store.task
    if run.pause is not None:
        return suspend_for(task, run.pause.pending)
    if not (task.reads_only and crew.is_confined):  # the end has a look as well
        task = _take_tree(crew, task)
    is_unfit = run.outcome is RunOutcome.INVALID_SUBMISSION
    if phase is Phase.IMPLEMENTATION and is_unfit and crew.list_changes(task):
        task = _take_files(crew, task, run)  # the files are judged, whatever was said of them
    elif run.outcome is not RunOutcome.SUBMITTED:
        return end_in_phase(task, phase, end_without_result(run))
    return accept(crew, task, run.head.agent)


def _take_tree(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with the tree of now; what is changed while its plan is made or waits is told."""
    seen = crew.take_tree(task)
    is_told = task.options.plan_mode and task.current_phase is Phase.PLANNING and task.tree and seen.tree
    return note_drift(crew, seen, task.tree, seen.tree) if is_told and task.tree and seen.tree else seen


def find_plan_decision(task: TaskState) -> tuple[str, Answer]:
    """Return the id and the answer of the newest plan that a person decided about; no id without one."""
    named = ((name, answer) for name, answer in task.waiting.answers.items() if name.startswith(_PLAN_ID))
    return next(named, ("", Answer(approved=False)))


def _take_plan_edits(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with its plan as the person edited it, before agreeing to it or having it changed."""
    name, decision = find_plan_decision(task)
    key = "plan" if decision.approved else "rejected_plan"
    before = getattr(task, key)
    if decision.input:  # it was taken before
        return task.replace(**{key: parse_plan(decision.input["plan"])})
    text = crew.store.read_edited_plan(name, before)
    if not text:
        return task
    decision = decision.replace(tool="plan", input={"plan": text}, asked={"plan": format_plan(before)})
    return task.replace(**{key: parse_plan(text)}, answers={**task.waiting.answers, name: decision})


def _take_files(crew: Crew, task: TaskState, run: Run) -> TaskState:
    """Return the task with the change that is in the files, of which no submission could be taken."""
    crew.store.emit(Warned(message=f"{end_without_result(run).reason}; the files are judged as they are"))
    said = next((each.text for each in reversed(run.messages) if each.speaker is Speaker.ASSISTANT), "")
    files = tuple(change.path for change in crew.list_changes(task))
    return task.replace(change=Change(summary=said.strip() or _NO_SUMMARY, files=files))


def accept(crew: Crew, task: TaskState, agent: str) -> TaskState:
    """Return the task with the submission of its role, or waiting for a person to confirm the plan."""
    phase = task.current_phase
    task, event = _reclassify(crew, task, phase)
    if event:
        crew.store.emit(event)
    if task.reads_only and (ending := end_without_answer(task)):
        return end_in_phase(task, phase, ending)
    is_unchanged = task.tree == task.session.start_tree or not crew.list_changes(task)
    if phase is Phase.IMPLEMENTATION and task.change is not None and is_unchanged:
        said = f"{FindingKind.NOTHING_CHANGED.words}; the {ROLE_OF[phase]} says:\n{task.change.summary}"
        return end_in_phase(task, phase, fail(said), agent=agent)
    if phase is Phase.PLANNING and task.plan and (item := _find_unconfirmed(crew, task)):
        crew.store.write_plan(item.id, task.plan)
        is_said = phase in task.waiting.asked and not task.options.plan_mode
        task = decide_or_suspend(crew, task, item, Consent.NO if is_said else crew.consent)
    if task.status is Status.SUSPENDED:
        return task
    return decide_gate(task, GateStatus.PASSED, _summarize_result(task, phase), agent=agent)


async def _run_role(crew: Crew, phase: Phase) -> Run:
    """Run the role of a phase; where a repair that was found cannot be made, the model is asked after all."""
    task = crew.store.task
    if phase is Phase.IMPLEMENTATION and crew.model.name == REPAIR:
        crew.store.save(await try_repair(crew, task))
        return await dispatch(crew, phase)
    if phase is not Phase.IMPLEMENTATION or not task.is_first_try:
        return await dispatch(crew, phase)
    why = "you have sent another message"
    if not crew.has_message(task):
        try:
            run = await dispatch(crew, phase)
        except ModelRejected as error:
            why = str(error)
        else:
            if run.pause or run.outcome is RunOutcome.SUBMITTED:
                return run
            why = "the run ended first"
    task = crew.take_tree(crew.store.task)  # some of the edits may be made
    assert task.first_try is not None
    crew.store.save(task.replace(first_try=task.first_try.replace(refused=why)))
    return await dispatch(crew, phase)


def _reclassify(crew: Crew, task: TaskState, phase: Phase) -> tuple[TaskState, Classified | None]:
    if phase is Phase.PLANNING:
        return reclassify_by_plan(task, crew.table)
    if phase is Phase.IMPLEMENTATION:
        paths = [change.path for change in crew.list_changes(task)]
        checks = [path for path in paths if is_check_file(task.surface, path) or is_document_path(path)]
        return reclassify_by_size(task, len(paths), len(paths) - len(checks), crew.table)
    return task, None


def _find_unconfirmed(crew: Crew, task: TaskState) -> Pending | None:
    """Return the plan as a question to a person, unless it is confirmed or needs nobody."""
    name, decision = find_plan_decision(task)
    if task.plan is None or task.reads_only or decision.approved or (name and not task.options.plan_mode):
        return None
    files = {file for step in task.plan.steps for file in step.files}
    is_wide = len(files) > MOST_FILES
    if not (task.options.plan_mode or task.routing.forced or is_wide):
        return None
    intent, item_id = task.intent, f"{_PLAN_ID}{int(name.removeprefix(_PLAN_ID) or 0) + 1}"
    shown = {
        "goal": intent.goal,
        "constraints": intent.constraints,
        "assumptions": intent.assumptions,
        "why": "of high risk" if task.routing.forced else f"touches {len(files)} files" if is_wide else "",
        "plan": "\n".join(list_plan_lines(task.plan)),
        "edit": crew.store.locate_plan(item_id).relative_to(crew.git.root).as_posix(),
    }
    given = {key: text for key, text in shown.items() if text}
    return make_pending(item_id, PendingKind.PLAN, given, CHOICES)


def _summarize_result(task: TaskState, phase: Phase) -> str:
    results = {
        Phase.EXPLORATION: task.findings,
        Phase.PLANNING: task.plan,
        Phase.IMPLEMENTATION: task.change,
    }
    found = results.get(phase)
    return f"- {found.summary}" if found else "- done"
