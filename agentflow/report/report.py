"""How a task ended: `report.md` for people, and the one object that `task --json` prints."""

from typing import Any

from agentflow.core.errors import Exit
from agentflow.core.events import IntentTold
from agentflow.core.evidence import CheckRun, Side, select_runs, summarize_evidence
from agentflow.core.record import plain
from agentflow.core.task import Failure, GateStatus, TaskState
from agentflow.core.verdict import PLAUSIBLE, ProbeResult, Proof, describe_probe
from agentflow.redact import list_some, nest, visible
from agentflow.report.answer import format_answer
from agentflow.report.material import Material, RoleSpending, Spending, fence_text
from agentflow.store.task_file import format_plan
from agentflow.verdict.case import find_hook_files
from agentflow.verdict.paths import explain
from agentflow.workspace.changes import FileChange

UNKNOWN = "unknown, the files could not be read"


def format_report(
    task: TaskState, material: Material, changes: tuple[FileChange, ...], told: IntentTold, spent: Spending
) -> str:
    """Return the report as Markdown; every line of it comes from the state and the evidence."""
    assert task.ending is not None
    runs = material.runs
    parts = [
        f"# {task.ending.status}: {visible(_find_first_line(task.task))}",
        _describe_facts(task),
        _describe_intent(told),
        _describe_answer(task),
        f"## Plan\n{format_plan(task.plan)}" if task.plan else "",
        _list_under("Steps of parallel implementers", _list_steps(task)),
        _list_under("Checks before the task", [_show_check(run) for run in material.before]),
        _list_under(
            "Checks after the change", [*map(_show_check, select_runs(runs)), *_explain_one_run(task)]
        ),
        _list_under("With the original checks", list(map(_show_check, select_runs(runs, checks=Side.BASE)))),
        _list_under("Without the change", _list_without_change(runs)),
        _list_under("Proof", _list_proof(task)),
        _list_under("Probes", list(map(_describe_probe, task.probes or ()))),
        _list_under("Changes to the checks", _list_changes_to_approve(task)),
        _list_under("Failed iterations", [_describe_failure(failure) for failure in task.failures]),
        _list_under("Caveats", _list_caveats(task)),
        _list_under("Files changed", _list_files(task, changes)),
        _list_under("Changed only by hooks", [f"- {nest(path)}" for path in sorted(find_hook_files(task))]),
        _list_under("Tokens and time", _tabulate_spending(spent)),
        _list_under("What counts as checks", [f"- {nest(line)}" for line in material.surface]),
        fence_text(visible(material.diff).rstrip(), "diff") if material.diff else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_result(
    task: TaskState, material: Material, changes: tuple[FileChange, ...], spent: Spending
) -> dict[str, Any]:
    """Return the result of a task, with the keys of CONTRACT section 7; what is unknown is None."""
    assert task.ending is not None
    unknown = task.base_tree is not None and task.tree is None
    return {
        "task_id": task.task_id,
        "status": task.ending.status,
        "exit_code": int(task.ending.exit_code),
        "task": task.task,
        "route": [phase for phase, gate in task.gates.items() if gate.status is not GateStatus.SKIPPED],
        "model": task.model,
        "sandbox": task.sandbox,
        "iterations": task.iteration,
        "gates": plain(task.gates),
        "plan": plain(task.plan),
        "proof": plain(task.verdict.proof) if task.verdict else [],
        "unproved": list(task.verdict.unproved) if task.verdict else [],
        "checks": [_to_entry(run) for run in material.runs],
        "evidence": [run.evidence.id for run in material.runs if run.evidence is not None],
        "files_changed": None if unknown else [change.path for change in changes],
        "paths": [] if unknown else [plain(explain(change.path, task.surface)) for change in changes],
        "hooks_changed": sorted(find_hook_files(task)),
        "usage": plain(task.usage),
        "roles": [plain(one) for one in spent.roles],
        "seconds": {"total": spent.seconds, "model": spent.model, "own": spent.own},
        "answer": format_answer(task),
        "class": task.task_complexity,
        "document": task.document,
        "caveats": [*task.verdict.caveats, *task.verdict.approvals] if task.verdict else [],
        "pending": plain(task.pending),
        "report": f"{material.folder}/report.md",
    }


def _list_steps(task: TaskState) -> list[str]:
    """Return which run carried out each step that had an implementer of its own."""
    results = task.parallel_work.results if task.parallel_work else ()
    return [f"- step {each.step} (run {each.run}): {nest(each.change.summary)}" for each in results]


def _describe_intent(told: IntentTold) -> str:
    """Return how the task was understood, and what had to be assumed or asked."""
    named = (("goal", told.goal), ("constraints", told.constraints))
    lines = [f"- {label}: {nest(text)}" for label, text in named if text]
    gaps = [f"- gap: {nest(gap)}" for gap in told.gaps] or ["- gaps: none"]
    return _list_under("Intent", [*lines, *gaps])


def _describe_answer(task: TaskState) -> str:
    said = format_answer(task)
    where = f"\n\nKept in {task.document}." if task.document else ""
    return f"## Answer\n{_quote(said)}{where}" if said else ""


def _quote(text: str) -> str:
    """Return a text as a quotation, so that none of its lines looks like one of the report."""
    return "\n".join(f"> {row}".rstrip() for row in visible(text).split("\n"))


def _describe_facts(task: TaskState) -> str:
    assert task.ending is not None
    spent = task.usage.cost_usd
    cost = "unknown" if spent is None else f"{spent:.4f} USD"
    lines = [
        f"- result: {nest(task.ending.reason)} (exit {int(task.ending.exit_code)})",
        f"- task: {task.task_id}",
        f"- model: {nest(task.model)}, {task.usage.input} tokens in, {task.usage.output} out, cost {cost}",
        f"- class: {task.task_complexity}, route {task.route.replace('_', ' ')}",
    ]
    if not task.reads_only:
        lines += [
            f"- iterations: {task.iteration} of {task.max_iterations}",
            f"- tree before: {task.base_tree}",
            f"- tree after: {task.tree or UNKNOWN}",
        ]
    if task.sandbox == "none":
        lines.append("- sandbox: NOT SANDBOXED, commands ran with your rights")
    else:
        gaps = f"; not isolated: {', '.join(task.gaps)}" if task.gaps else ""
        lines.append(f"- sandbox: {nest(task.sandbox)}{nest(gaps)}")
    if task.is_found and task.ending.exit_code is Exit.VERIFIED:
        lines.append(f"- found by the built-in repair engine; {PLAUSIBLE}, and nothing more is claimed")
    return "\n".join(lines)


def _show_check(run: CheckRun) -> str:
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({nest(str(run.check.missing))})"
    took = f"{evidence.seconds:.1f} s, {evidence.id}"
    hint = f"\n  - {nest(run.hint)}" if run.hint else ""
    taken = f", as {evidence.taken_from} showed" if evidence.taken_from else ""
    end = f"{summarize_evidence(evidence)}{taken} ({took})"
    return f"- {run.check.name}: `{nest(evidence.command)}` {end}{hint}"


def _list_without_change(runs: tuple[CheckRun, ...]) -> list[str]:
    again = select_runs(runs, again=True)
    now = [f"{_show_check(run)}, the same tests on the code as it is now" for run in again]
    return [*map(_show_check, select_runs(runs, code=Side.BASE)), *now]


def _describe_probe(result: ProbeResult) -> str:
    about = ", ".join(result.subjects) or str(result.check)
    code = ", on the code from before the task" if result.code is Side.BASE else ""
    end = describe_probe(result.kind, result.end)
    return f"- {result.kind} ({result.kind.meaning}): {nest(about)}{code}: {end} ({result.seconds:.1f} s)"


def _explain_one_run(task: TaskState) -> list[str]:
    """Return why there is only one run of the checks after the change."""
    if not task.final or task.held or task.tree == task.base_tree:
        return []
    return ["- no check was changed, so this is also the result with the original checks"]


def _list_changes_to_approve(task: TaskState) -> list[str]:
    """Return what a person has to approve or has approved."""
    verdict = task.verdict
    if verdict is None or not verdict.weakened:
        return []
    if verdict.approvals:
        return [f"- {nest(line)}" for line in verdict.approvals]
    return [
        *(f"- {nest(line)}" for line in verdict.weakened),
        "",
        "Only a person can approve it.",
    ]


def _list_proof(task: TaskState) -> list[str]:
    """Return what proves the change, and what of it is unproved."""
    verdict = task.verdict
    if verdict is None:
        return []
    return [*map(_describe_proof, verdict.proof), *(f"- unproved: {nest(line)}" for line in verdict.unproved)]


def _describe_proof(proof: Proof) -> str:
    shown = f": {list_some([nest(test) for test in proof.tests])}" if proof.tests else ""
    evidence = f" ({', '.join(proof.evidence)})" if proof.evidence else ""
    return f"- {proof.kind}: {proof.kind.meaning}{shown}{evidence}"


def _list_files(task: TaskState, changes: tuple[FileChange, ...]) -> list[str]:
    if task.base_tree is not None and task.tree is None:
        return [f"- {UNKNOWN}"]
    return [_describe_file(change, task) for change in changes]


def _describe_file(change: FileChange, task: TaskState) -> str:
    found = explain(change.path, task.surface)
    return f"- {change.kind} {nest(change.path)} ({found.kind}: {nest(found.reason)})"


def _describe_failure(failure: Failure) -> str:
    evidence = ", ".join(failure.evidence) or "no evidence"
    return f"- {failure.iteration}: {nest('; '.join(failure.reasons))} ({evidence})"


def _list_caveats(task: TaskState) -> list[str]:
    verdict = task.verdict
    said = () if verdict is None else (*verdict.caveats, *verdict.approvals, *verdict.notes)
    return [f"- {nest(text)}" for text in said]


def _tabulate_spending(spent: Spending) -> list[str]:
    """Return a table of what each role used, and how the time was spent."""
    if not spent.roles:
        return []
    columns = ("role", "requests", "tokens in", "read from a cache", "tokens out", "cost in USD", "model s")
    rows = (columns, ("---", *["---:"] * 6), *map(_fill_cells, spent.roles))
    time = f"{spent.seconds:.1f} s in all: the model {spent.model:.1f} s, agentflow {spent.own:.1f} s"
    return [*(f"| {' | '.join(row)} |" for row in rows), "", time]


def _fill_cells(one: RoleSpending) -> tuple[str, ...]:
    used = one.usage
    cost = "unknown" if used.cost_usd is None else f"{used.cost_usd:.4f}"
    sent = used.input + used.cache_read + used.cache_write
    counts = (one.requests, sent, used.cache_read, used.output)
    return (nest(one.role), *(f"{count:,}" for count in counts), cost, f"{one.seconds:.1f}")


def _list_under(title: str, lines: list[str]) -> str:
    return "\n".join((f"## {title}", *lines)) if lines else ""


def _find_first_line(text: str) -> str:
    return text.strip().split("\n")[0] if text.strip() else ""


def _to_entry(run: CheckRun) -> dict[str, Any]:
    evidence = run.evidence
    return {
        "check": run.check.name,
        "command": run.check.command,
        "exit_code": evidence.exit_code if evidence else None,
        "evidence": evidence.id if evidence else None,
        "surface": evidence.surface if evidence else None,
        "tests": plain(evidence.tests) if evidence else None,
    }
