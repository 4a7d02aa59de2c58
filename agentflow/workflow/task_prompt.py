"""The task prompts of the roles: the surroundings, the task, and the results that a role builds on."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from agentflow.core.evidence import (
    RED,
    CheckName,
    CheckRun,
    Side,
    TestOutcome,
    find_same_check,
    summarize_evidence,
)
from agentflow.core.finding import FileKind
from agentflow.core.regex import regex
from agentflow.core.role import Limits, Plan, Role, describe_results
from agentflow.core.routing import ROLE_OF, Access
from agentflow.core.task import ChecksBeside, Excerpt, Failure, Instruction, Phase, TaskState
from agentflow.library.instructions import MAX_IN_PROMPT, describe_reach, select_instructions
from agentflow.loop.prompts import read_prompt
from agentflow.redact import list_some
from agentflow.report.material import Material, fence_text
from agentflow.routing.route import JUDGING
from agentflow.runners.selection import describe_one_test
from agentflow.sandbox.profile import ACCESS, Level
from agentflow.tools.shell import BASH
from agentflow.verdict.surface import find_kind
from agentflow.wording import list_lines

MAX_DIFF_CHARS = 20_000
TAIL_LINES = 20
MAX_FAILING = 20
_FormatCheck = Callable[[CheckRun, Material], str]
_RESULTS: Mapping[Phase, Mapping[str, Any]] = MappingProxyType(
    {
        Phase.EXPLORATION: {"findings": None, "cited": ()},
        Phase.PLANNING: {"plan": None},
        Phase.IMPLEMENTATION: {"change": None},
    }
)
"""The role's own result by its phase, which its prompt leaves out."""

_FILE = regex(r"(?m)^(?=diff --git )")
_FILE_NAME = regex(r"diff --git a/.* b/(?P<path>.*)")
_BEFORE_TASK = "Checks before the task"

_WRITES = {
    Access.READ: "the repository is read-only for them",
    Access.WRITE: "the repository may be written, except for .git, .claude, .agents and .mcp.json",
    Access.THROW_AWAY: "what a command writes into the repository is discarded when it ends",
}


def write_task_prompt(task: TaskState, phase: Phase, material: Material) -> str:
    """Return the prompt of a phase's role; its own result does not change it, so a run is found again."""
    task = task.replace(**_RESULTS.get(phase, {}))
    repo_map = "" if phase in JUDGING else task.known.repo_map  # judges look for themselves
    told = (_format_task(task, phase), _format_recalled(task, phase), repo_map)
    head = (write_opening(task, phase, material), *told, _format_exploration(task, phase))
    if task.reads_only:
        parts = [*head, *_list_reading_parts(task, phase, material)]
    else:
        form = _format_check_line if phase in JUDGING else _format_check
        is_beside = isinstance(task.beside, ChecksBeside) and not task.baseline and phase is task.beside.phase
        before = _format_checks(_BEFORE_TASK, material.before, material, form)
        before = f"## {_BEFORE_TASK}\n{read_prompt('checks-run.md').strip()}" if is_beside else before
        parts = [*head, before, *_list_change_parts(task, phase, material)]
    return "\n\n".join(part for part in parts if part)


def write_base_news(task: TaskState, material: Material) -> str:
    """Return what a role is told of the checks, and of the search for a repair, that ran while it began."""
    is_search = isinstance(task.beside, ChecksBeside) and task.beside.is_search
    checks = "" if is_search else _format_checks(_BEFORE_TASK, material.before, material, _format_check)
    return "\n\n".join(filter(None, (checks, _format_first_try(task))))


def write_follow_prompt(task: TaskState, phase: Phase, material: Material, *, is_other_role: bool) -> str:
    """Return what a follow-up adds to the conversation of the task before."""
    since = f"## Since then\n{task.session.since}" if task.session.since else ""
    parts = [
        f"# Follow-up\n{read_prompt('follow.md')}",
        _format_surroundings(task, phase, material) if is_other_role else "",
        _format_task(task.replace(earlier=""), phase),
        since,
        *(
            _list_reading_parts(task, phase, material)
            if task.reads_only
            else (_format_excerpts(task, material),)
        ),
    ]
    return "\n\n".join(filter(None, parts))


def write_correction_prompt(task: TaskState, correction: str) -> str:
    """Return what a person's correction of a plan adds to the conversation that made it."""
    since = f"## Since then\n{task.session.since}" if task.session.since else ""
    head = f"# The plan is to be changed\n{read_prompt('correct.md')}"
    return "\n\n".join(
        filter(None, (head, fence_text(correction), since, _format_plan(task.rejected_plan, "Plan so far")))
    )


def write_agreed_prompt(task: TaskState, material: Material) -> str:
    """Return what the agreed plan adds to the conversation that made it."""
    phase = Phase.IMPLEMENTATION
    is_untold = isinstance(task.beside, ChecksBeside) and task.beside.told is None
    parts = (
        f"# The plan is agreed\n{read_prompt('agreed.md')}",
        _format_surroundings(task, phase, material),
        f"## Since then\n{task.session.since}" if task.session.since else "",
        _format_plan(task.plan),
        _format_checks(_BEFORE_TASK, material.before, material, _format_check) if is_untold else "",
    )
    return "\n\n".join(filter(None, parts))


def write_iteration_prompt(task: TaskState, material: Material) -> str:
    """Return what a new iteration adds to the implementer's conversation."""
    new = (each for each in task.failures if each.iteration == task.iteration - 1)
    head = f"# Iteration {task.iteration} of {task.max_iterations}\n{read_prompt('failed.md')}"
    return "\n\n".join((head, *(_format_failure(each, material) for each in new)))


def write_proving_prompt(task: TaskState, _material: Material) -> str:
    """Return what a proving round adds to the implementer's conversation: the places that no test notices."""
    if not task.is_proving or task.stands is None:
        return ""
    head = f"# Proving round {task.proving} of {task.options.prove_rounds}\n{read_prompt('proving.md')}"
    return "\n".join((head, "", "## No test notices", list_lines(task.stands.verdict.unproved)))


def write_opening(task: TaskState, phase: Phase, material: Material) -> str:
    """Return what every task prompt begins with."""
    parts = (_format_surroundings(task, phase, material), _format_instructions(task, material))
    return "\n\n".join(filter(None, parts))


def _format_surroundings(task: TaskState, phase: Phase, material: Material) -> str:
    role = material.roles.get(ROLE_OF[phase])
    lines = (
        *task.known.surroundings,
        *_describe_tests(material.before),
        *_describe_blocked(task, material.before),
        *(_describe_sandbox(task, ROLE_OF[phase], role, material.network) if role else ()),
        *(_describe_limits(task, role.limits) if role else ()),
    )
    return "\n".join(("# Surroundings", *(f"- {line}" for line in lines))) if lines else ""


def _describe_tests(baseline: tuple[CheckRun, ...]) -> Iterator[str]:
    for run in baseline:
        if run.check.name is CheckName.TESTS and not run.check.missing:
            one = describe_one_test(run.check)
            yield f"all tests: `{run.check.command}`" + (f"; one test: `{one}`" if one else "")


def _describe_blocked(task: TaskState, baseline: tuple[CheckRun, ...]) -> Iterator[str]:
    for run in baseline:
        name = run.check.name
        if (why := task.blocked.get(name)) and run.tests_with_result:
            yield f"cannot run as a whole here: {name} ({why})"
        elif why := why or run.check.missing or run.check.left_out:
            yield f"cannot run here: {name} ({why})"


def _describe_sandbox(task: TaskState, part: str, role: Role, network: tuple[str, ...]) -> Iterator[str]:
    if not role.list_rules(BASH.name):
        return
    if task.sandbox == Level.NONE:
        yield "commands run without a sandbox, with the user's rights: keep to the repository"
        return
    reach = "network" if part in network else "no network"
    access = ACCESS.get(part, Access.READ)
    if access is Access.LAYER:
        access = Access.THROW_AWAY if task.sandbox == Level.FULL else Access.READ
    yield f"commands run in a sandbox: {reach}, an empty home, a fresh /tmp for each; {_WRITES[access]}"


def _describe_limits(task: TaskState, limits: Limits) -> Iterator[str]:
    iteration = f"iteration {task.iteration} of {task.max_iterations}; " if not task.reads_only else ""
    parts = (f"at most {limits.turns} turns and {limits.tool_calls} tool calls", *_describe_budget(task))
    yield f"{iteration}{', '.join(parts)}"


def _describe_budget(task: TaskState) -> Iterator[str]:
    """Yield roughly how much of the budget is left, rounded so that a resumed run reads the same."""
    budget, usage = task.options.budget, task.usage
    if budget.cost is not None:
        yield f"about {_percent_left(usage.cost_usd or 0, budget.cost)} % left of {budget.cost:g} USD"
    if budget.tokens is not None:
        yield f"about {_percent_left(usage.tokens, budget.tokens)} % left of {budget.tokens:,} tokens"


def _percent_left(used: float, allowed: float) -> int:
    return max(0, round(10 * (1 - used / allowed))) * 10


def _format_instructions(task: TaskState, material: Material) -> str:
    paths = (*task.paths, *material.changed, *(each.path for each in task.known.excerpts))
    found = select_instructions(task.known.instructions, paths)
    parts = [f"# Instructions of the repository\n{read_prompt('instructions.md')}"]
    left = MAX_IN_PROMPT
    for each in found:
        parts.append(_format_instruction(each, max(0, left)))
        left -= len(each.text)
    return "\n\n".join(parts) if found else ""


def _format_instruction(one: Instruction, most: int) -> str:
    where = f" ({said})" if (said := describe_reach(one)) else ""
    text = one.text[:most].rstrip()
    cut = one.size - len(one.text[:most])
    note = (f"({cut:,} more characters left out; Read {one.path} if you need them)",) if cut else ()
    return "\n".join((f"## {one.path}{where}", *((fence_text(text, "markdown"),) if text else ()), *note))


def _format_excerpts(task: TaskState, material: Material, *, whole: bool = True) -> str:
    known = (each for each in _fresh_excerpts(task, material.changed) if each.lines)
    found = tuple(each for each in known if whole or not each.is_whole)
    parts = [f"## Seen already\n{read_prompt('seen.md')}"]
    for each in found:
        text = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(each.lines, each.first))
        parts.append(f"### {each.path}{' (whole)' if each.is_whole else ''}\n{fence_text(text)}")
    return "\n".join(parts) if found else ""


def list_whole_files(task: TaskState, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that a prompt shows whole."""
    return tuple(each.path for each in _fresh_excerpts(task, changed) if each.is_whole)


def _fresh_excerpts(task: TaskState, changed: tuple[str, ...]) -> Iterator[Excerpt]:
    whole = {each.path for each in task.known.excerpts if each.is_whole}
    cited = [each for each in task.known.cited if each.path not in whole]
    paths = {each.path for each in cited}
    for each in (*(each for each in task.known.excerpts if each.path not in paths), *cited):
        if each.path not in changed:
            yield each


def _format_recalled(task: TaskState, phase: Phase) -> str:
    """Return what the memory holds for the task; judges get none, so that they look for themselves."""
    if not task.known.recalled or phase in JUDGING:
        return ""
    lines = "\n".join(f"- {one.line}" for one in task.known.recalled)
    return f"## Remembered\n{read_prompt('remembered.md')}\n{fence_text(lines)}"


def _format_exploration(task: TaskState, phase: Phase) -> str:
    """Return an earlier exploration; judges get none, so that they look for themselves."""
    if not task.options.explored or phase in JUDGING:
        return ""
    return f"## Explored earlier\n{fence_text(task.options.explored[:MAX_DIFF_CHARS], 'markdown')}"


def _list_reading_parts(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    if phase is Phase.REVIEW:
        return _format_findings(task), _format_excerpts(task, material), read_prompt("audit.md")
    wanted = "question.md" if task.routing.route == "question" else "inquiry.md"
    return _format_excerpts(task, material), read_prompt(wanted)


def _list_change_parts(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    seen = _format_excerpts(task, material)
    match phase:
        case Phase.EXPLORATION:
            return (seen,)
        case Phase.PLANNING:
            order = read_prompt("order.md") if task.parallel_work else ""
            rejected = _format_plan(task.rejected_plan, "Plan that the user had corrected")
            alone = read_prompt("agree.md") if task.options.plan_mode else ""
            return _format_findings(task), seen, rejected, order, alone
        case Phase.IMPLEMENTATION:
            done = describe_results(task.parallel_work) if task.iteration == 1 else ""
            found = (_format_findings(task), seen, _format_plan(task.plan), done, _format_first_try(task))
            known = (*found, quote_diff("Change so far", material.diff))
            return *known, *_format_failures(task, material), write_proving_prompt(task, material)
        case Phase.REVIEW | Phase.VERIFICATION:
            return _list_judging_parts(task, phase, material)
        case Phase.REFINEMENT | Phase.COMPLETE:
            return ()


def _format_first_try(task: TaskState) -> str:
    found = task.first_try
    if found is None or (found.edits and not found.refused):
        return ""
    told = f"{found.account}\nnot made: {found.refused}" if found.refused else found.account
    return f"## Searched already\n{read_prompt('first_try.md')}\n{fence_text(told)}"


def _list_judging_parts(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    """Return what judges are shown; they differ at the end alone, for the cache of a provider.

    The verifier reads the tests of the change once its own are written.
    """
    reasons = [reason for failure in task.failures for reason in failure.reasons]
    failed = f"## Why it was sent back before\n{list_lines(reasons)}" if reasons else ""
    tests = _format_excerpts(task.replace(cited=()), material, whole=False)
    plan, claims = _format_plan(task.plan), _compare_claims(task, material)
    why = "\n- ".join(("## Why judges are asked", *task.judges.why)) if task.judges else ""
    shown = tuple(run for run in material.runs if run.code is Side.FINAL and not run.again)
    after = _format_checks("Checks after the change", shown, material, _format_later_check)
    own, of_tests = _split_diff(task, material.diff)
    if phase is Phase.REVIEW or not own:
        last = quote_diff("Tests of the change", of_tests)
    else:
        last = _name_tests(of_tests)
    review = _format_review(task) if phase is Phase.VERIFICATION else ""
    return plan, tests, claims, failed, after, quote_diff("Change", own), why, last, review


def _split_diff(task: TaskState, diff: str) -> tuple[str, str]:
    """Return the parts of a diff about anything but tests, and those about tests."""
    parts: tuple[list[str], list[str]] = ([], [])
    for part in _FILE.split(diff):
        found = _FILE_NAME.match(part)
        is_test = found is not None and find_kind(found["path"], task.surface) is FileKind.TESTS
        parts[is_test].append(part)
    return "".join(parts[False]), "".join(parts[True])


def _name_tests(diff: str) -> str:
    paths = [found["path"] for part in _FILE.split(diff) if (found := _FILE_NAME.match(part))]
    return f"## Tests of the change\nnot shown here: {', '.join(paths)}" if paths else ""


def _compare_claims(task: TaskState, material: Material) -> str:
    if task.change is None:
        return ""
    claimed, changed = dict.fromkeys(task.change.files), dict.fromkeys(material.changed)
    missing = changed.keys() - claimed.keys() if task.session.start_tree is None else ()
    lines = (
        ("named", claimed),
        ("named, but unchanged", claimed.keys() - changed.keys()),
        ("changed, but missing from `files`", missing),
    )
    told = (f"- {title}: {', '.join(sorted(paths))}" for title, paths in lines if paths)
    return "\n".join(("## Files that the implementer names", *told))


def _format_review(task: TaskState) -> str:
    if task.review is None or not task.options.sequential:
        return ""
    issues = (f"- {issue.describe()}" for issue in task.review.issues)
    return "\n".join(("## Review", str(task.review.verdict), *issues))


def _format_task(task: TaskState, phase: Phase) -> str:
    intent = task.intent
    here = (phase, task.iteration)  # what was said then is in the conversation
    told = "\n".join(f"- {each.text}" for each in task.session.said if (each.phase, each.iteration) != here)
    named = (
        ("Description", _keep_addition(intent.goal, intent.description)),
        ("Actions", _keep_addition(intent.goal, intent.actions)),
        ("Constraints", intent.constraints),
        ("Assumptions", intent.assumptions),
    )
    around = (
        ("Earlier in this session", task.session.earlier),
        ("Said since", told),
        ("Context", task.known.context),
    )
    said = [f"## {title}\n{text}" for title, text in (*named, *around) if text]
    return "\n\n".join((f"# Task\n{intent.goal or task.task}", *said))


def _keep_addition(goal: str, text: str) -> str:
    is_more = any(line.removeprefix("- ") not in goal for line in text.split("\n"))
    return text if is_more else ""


def _format_checks(title: str, runs: tuple[CheckRun, ...], material: Material, form: _FormatCheck) -> str:
    if not runs:
        return f"## {title}\nnone: this repository has no check that agentflow can find"
    return "\n".join((f"## {title}", *(form(run, material) for run in runs)))


def _format_check(run: CheckRun, material: Material) -> str:
    is_red = run.evidence is not None and not run.green
    printed = (fence_text(take_last_lines(run.tail)),) if is_red else ()
    return "\n".join((_format_check_line(run, material), *printed))


def _format_later_check(run: CheckRun, material: Material) -> str:
    before = find_same_check(run, material.before)
    told = _list_differences(before, run) if before and before.outcomes and run.outcomes else ()
    return "\n".join((_format_check(run, material), *told))


def _list_differences(before: CheckRun, after: CheckRun) -> Iterator[str]:
    passed_before, passes = before.list_ids(TestOutcome.PASSED), after.list_ids(TestOutcome.PASSED)
    groups = {
        "failed before, passes now": before.list_ids(*RED) & passes,
        "new, passes": passes - before.outcomes.keys(),
        "passed before, not now": passed_before - passes,
    }
    for title, tests in groups.items():
        if tests:
            yield f"  {title}: {list_some(sorted(tests), MAX_FAILING)}"
    if not any(groups.values()):
        yield "  no test result differs from before the task"


def take_last_lines(printed: str) -> str:
    """Return the end of a failed check's output, as prompts show it."""
    return "\n".join(printed.rstrip().splitlines()[-TAIL_LINES:])


def _format_check_line(run: CheckRun, material: Material) -> str:
    name, evidence = str(run.check.name), run.evidence
    colours = ("red", "green")
    if evidence is None:
        return f"- {name}: not run ({run.check.missing})"
    if (evidence.surface, evidence.code) == (Side.BASE, Side.FINAL):
        origin = "files" if run.check.name is CheckName.TESTS else "configuration"
        name, colours = f"{name} with the original {origin}", ("failed", "passed")
    colour = colours[run.green]
    output = f"{material.folder}/evidence/{evidence.id}.out"
    lines = [
        f"- {name}: {colour}, {summarize_evidence(evidence)}, evidence {evidence.id}, output in {output}",
        f"  `{run.check.command}`",
    ]
    failing = () if run.green else sorted(run.list_ids(*RED))
    if failing:
        lines.append(f"  failing: {list_some(failing, MAX_FAILING)}")
    return "\n".join(lines)


def _format_findings(task: TaskState) -> str:
    findings = task.findings
    if findings is None:
        return ""
    marks = {
        **dict.fromkeys(task.unseen_findings, " (the explorer did not see this line)"),
        **dict.fromkeys(task.flagged_findings, " (no such line)"),
    }
    lines = [f"- {one.place}{marks.get(one.place, '')}: {one.claim}" for one in findings.findings]
    questions = [f"- open: {question}" for question in findings.open_questions]
    return "\n".join(("## Findings", findings.summary, *lines, *questions))


def _format_plan(plan: Plan | None, title: str = "Plan") -> str:
    return "\n".join((f"## {title}", *list_plan_lines(plan))) if plan else ""


def list_plan_lines(plan: Plan) -> tuple[str, ...]:
    acceptance = [f"- must hold: {item}" for item in plan.acceptance]
    risks = [f"- risk: {item}" for item in plan.risks]
    files = [f" ({', '.join(step.files)})" if step.files else "" for step in plan.steps]
    steps = [f"{number}. {step.title}{files[number - 1]}" for number, step in enumerate(plan.steps, 1)]
    return (plan.summary, *steps, *acceptance, *risks)


def _format_failures(task: TaskState, material: Material) -> tuple[str, ...]:
    newest = max((failure.iteration for failure in task.failures), default=0)
    return tuple(
        _format_failure(each, material, _format_check if each.iteration == newest else _format_check_line)
        for each in task.failures
    )


def _format_failure(failure: Failure, material: Material, form: _FormatCheck = _format_check) -> str:
    red = (run for run in material.recall(failure.evidence) if not run.green)
    by = f" in {failure.phase}" if failure.phase is Phase.REVIEW else ""
    heading = f"## Iteration {failure.iteration} failed{by}"
    tests = (
        f"### {each.path}, a test of the verifier that fails (it is not in the repository)\n"
        f"{fence_text(each.text.rstrip())}\n{each.said}".rstrip()
        for each in failure.tests
    )
    shown = (form(run, material) for run in red)
    return "\n".join((heading, list_lines(failure.reasons), *shown, *tests))


def quote_diff(title: str, diff: str) -> str:
    if not diff:
        return ""
    left = len(diff) - MAX_DIFF_CHARS
    note = f"\n({left} more characters left out)" if left > 0 else ""
    return f"## {title}\n{fence_text(diff[:MAX_DIFF_CHARS].rstrip(), 'diff')}{note}"
