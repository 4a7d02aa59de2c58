"""The end of a task: `report.md`, the object that `--json` prints, and the document of an answer."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

from agentflow.core.check_command import format_command
from agentflow.core.errors import Exit
from agentflow.core.events import IntentTold
from agentflow.core.evidence import CheckRun, Side, select_runs, summarize_evidence
from agentflow.core.pending import tell_decision
from agentflow.core.record import to_builtins
from agentflow.core.regex import regex
from agentflow.core.role import Citation, Issue
from agentflow.core.task import Ending, Failure, GateStatus, Status, TaskState
from agentflow.core.verdict import (
    PLAUSIBLE,
    ProbeResult,
    count_mutants,
)
from agentflow.frontmatter import write_atomic
from agentflow.redact import format_money, list_some, make_visible, nest_text
from agentflow.report.material import Material, Spending, fence_text, tabulate_markdown
from agentflow.report.summary import SummaryPart, list_facts, summarize_task
from agentflow.store.task_file import format_plan
from agentflow.verdict.case import find_hook_files
from agentflow.verdict.ending import fail
from agentflow.verdict.paths import explain
from agentflow.wording import describe_all, describe_approvals
from agentflow.workspace.changes import FileChange

_FOLDER = Path(".claude")
_SLUG_CHARS = 40
_ADVICE = regex(r"^[^a-z0-9\n]*(?:plan|recommendations?)[^a-z0-9\n]*$", re.IGNORECASE | re.MULTILINE)
_EMPTY = frozenset(
    {"", "n/a", "na", "none", "nothing", "todo", "tbd", "unknown", "no findings", "nothing found"}
)
UNKNOWN = "unknown, the files could not be read"


def end_without_answer(task: TaskState) -> Ending | None:
    """Return how a reading task ends if its explorer found nothing, else None."""
    if task.findings is None or not _is_real(task.findings.summary):
        return fail("the explorer's summary is empty")
    cited = (one for one in task.findings.findings if one.place not in task.flagged_findings)
    if task.routing.route != "question" and not any(_is_real(one.claim) for one in cited):
        return fail("the explorer found nothing that it could cite")
    return None


def _is_real(text: str) -> bool:
    return text.strip().strip(".-*_ ").lower() not in _EMPTY


def format_answer(task: TaskState) -> str | None:
    if task.ending is None or task.ending.status is not Status.ANSWERED or task.findings is None:
        return None
    findings = (f"- {one.place}: {one.claim}" for one in task.findings.findings)
    issues = (f"- {issue.describe()}" for issue in (task.review.issues if task.review else ()))
    questions = (f"- open: {question}" for question in task.findings.open_questions)
    return "\n".join((task.findings.summary.strip(), *findings, *issues, *questions))


def has_document(task: TaskState) -> bool:
    """Return whether the answer is also written to a file; the answer to a question is not."""
    return (task.routing.route != "question" and task.options.focus is None) or task.report_requested


def _format_document(task: TaskState) -> str:
    findings, issues = task.findings, task.review.issues if task.review else ()
    assert findings is not None
    summary, advice = split_advice(findings.summary)
    sources: tuple[Citation | Issue, ...] = (*findings.findings, *issues)
    cited = dict.fromkeys(one.path if "://" in one.path else one.place for one in sources)
    sections = (
        ("Summary", [nest_text(summary)], ""),
        (
            "Findings",
            [f"- {nest_text(one.claim)} ({nest_text(one.place)})" for one in findings.findings],
            "none",
        ),
        (
            "Plan / Recommendations",
            _make_items((*advice, *(issue.describe() for issue in issues))),
            "none: neither the explorer nor a reviewer gave any",
        ),
        ("Open Questions", _make_items(findings.open_questions), "none were named"),
        (
            "Sources & Evidence",
            [f"- {nest_text(place)}: {_describe_citation(place, task)}" for place in cited],
            "none cited",
        ),
    )
    parts = [
        f"# {make_visible(task.title.strip().splitlines()[0])}",
        f"Task {task.task_id}, tree {task.base_tree}.",
    ]
    parts.extend("\n".join((f"## {title}", "", *(lines or [f"- {no}"]))) for title, lines, no in sections)
    return "\n\n".join(parts) + "\n"


def _describe_citation(place: str, task: TaskState) -> str:
    if "://" in place:
        return "not checked by the program"
    if place in {*task.flagged_findings, *task.flagged_issues}:
        return "FLAGGED, there is no such line"
    unseen = ", but the explorer did not see it" if place in task.unseen_findings else ""
    return f"the line exists{unseen}"


def split_advice(summary: str) -> tuple[str, tuple[str, ...]]:
    found = _ADVICE.search(summary)
    if found is None or not summary[: found.start()].strip():
        return summary, ()
    items = (row.strip(" \t-*") for row in summary[found.end() :].splitlines())
    return summary[: found.start()].strip(), tuple(item for item in items if item)


def write_document(root: Path, task: TaskState, stamp: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", task.task.lower())[:_SLUG_CHARS].strip("-") or "report"
    base = f"research-{slug}-{stamp}"
    names = (f"{base}{suffix}.local.md" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    name = next(name for name in names if not (root / _FOLDER / name).exists())
    (root / _FOLDER).mkdir(exist_ok=True)
    write_atomic(root / _FOLDER / name, _format_document(task).encode())
    return str(_FOLDER / name)


def format_report(
    task: TaskState, material: Material, changes: tuple[FileChange, ...], told: IntentTold, spent: Spending
) -> str:
    """Return the report as Markdown; every line of it comes from the state and the evidence."""
    assert task.ending is not None
    runs, title = material.runs, task.title.strip().split("\n")[0]
    results = task.parallel_work.results if task.parallel_work else ()
    summary = summarize_task(task, material.find)
    repeated = map(_show_check, select_runs(runs, again=True))
    again = (f"{shown}, the same tests on the code as it is now" for shown in repeated)
    parts = [
        f"# {task.ending.status}: {make_visible(title)}",
        _describe_facts(task),
        _describe_answer(task),
        *(f"## {part.title}\n{_list_rows(part)}".rstrip() for part in summary.parts),
        _list_under("Intent", list(_list_intent(told))),
        _list_under(
            "Recalled from memory", _make_items(f"{one.line} (why: {one.why})" for one in task.known.recalled)
        ),
        f"## Plan\n{format_plan(task.plan)}" if task.plan else "",
        _list_under(
            "Steps of parallel implementers",
            [f"- step {one.step} (run {one.run}): {nest_text(one.change.summary)}" for one in results],
        ),
        _list_under("Checks before the task", [_show_check(run) for run in material.before]),
        _list_under("Checks after the change", _list_final_checks(task, runs)),
        _list_under("With the original checks", list(map(_show_check, select_runs(runs, checks=Side.BASE)))),
        _list_under("Without the change", [*map(_show_check, select_runs(runs, code=Side.BASE)), *again]),
        _list_under("Probes", list(map(_describe_probe, task.probes or ()))),
        _list_under("Tests of the verifier, run on a copy", list(_list_judge_tests(task))),
        _list_under("Decisions about calls", list(_list_decisions(task))),
        _list_under("Failed iterations", list(map(_describe_failure, task.failures))),
        _list_under("Files changed", _list_files(task, changes)),
        _list_under("Tokens and time", _tabulate_spending(spent)),
        _list_under("What counts as checks", _make_items(material.surface())),
        fence_text(make_visible(material.diff).rstrip(), "diff") if material.diff else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_result(
    task: TaskState, material: Material, changes: tuple[FileChange, ...], spent: Spending
) -> dict[str, Any]:
    """Return the result of a task, with the keys of CONTRACT section 7; what is unknown is None."""
    assert task.ending is not None
    unknown = task.base_tree is not None and task.tree is None
    summary = summarize_task(task, material.find)
    return {
        "task_id": task.task_id,
        "status": task.ending.status,
        "exit_code": int(task.ending.exit_code),
        "task": task.task,
        "route": [phase for phase, gate in task.gates.items() if gate.status is not GateStatus.SKIPPED],
        "model": task.model,
        "sandbox": task.sandbox,
        "iterations": task.iteration,
        "proving_rounds": task.proving,
        "gates": to_builtins(task.gates),
        "plan": to_builtins(task.plan),
        "judges": to_builtins(task.judges),
        "proof": to_builtins(task.verdict.proof) if task.verdict else [],
        "unproved": list(describe_all(task.verdict.unproved)) if task.verdict else [],
        "mutants": count_mutants(task.mutants),
        "equivalent": to_builtins(task.change.equivalent) if task.change else [],
        "checks": [_to_entry(run) for run in material.runs],
        "evidence": [run.evidence.id for run in material.runs if run.evidence is not None],
        "files_changed": None if unknown else [change.path for change in changes],
        "paths": [] if unknown else [to_builtins(explain(change.path, task.surface)) for change in changes],
        "hooks_changed": sorted(find_hook_files(task)),
        "usage": to_builtins(task.usage),
        "roles": [to_builtins(one) for one in spent.roles],
        "seconds": {"total": spent.seconds, "model": spent.model, "own": spent.own},
        "answer": format_answer(task),
        "recalled": to_builtins(task.known.recalled),
        "class": task.task_complexity,
        "document": task.document,
        "caveats": [*task.verdict.caveats, *describe_approvals(task.verdict)] if task.verdict else [],
        "pending": to_builtins(task.pending),
        "decisions": task.decisions,
        "why": to_builtins(summary.why),
        "summary": to_builtins(summary.parts),
        "report": f"{material.folder}/report.md",
    }


def _describe_answer(task: TaskState) -> str:
    answer = format_answer(task)
    if not answer:
        return ""
    # as a quotation, so that no line looks like the report's own
    quoted = "\n".join(f"> {row}".rstrip() for row in make_visible(answer).split("\n"))
    return f"## Answer\n{quoted}" + (f"\n\nKept in {task.document}." if task.document else "")


def _describe_facts(task: TaskState) -> str:
    assert task.ending is not None
    usage, cost = task.usage, format_money(task.usage.cost_usd)
    lines = [
        f"- result: {nest_text(task.ending.reason)} (exit {int(task.ending.exit_code)})",
        f"- task: {task.task_id}",
        f"- model: {nest_text(task.model)}, {usage.input} tokens in, {usage.output} out, cost {cost}",
        *(f"- {fact.label}: {nest_text(fact.text)}" for fact in list_facts(task)),
    ]
    if not task.reads_only:
        lines += [f"- tree before: {task.base_tree}", f"- tree after: {task.tree or UNKNOWN}"]
    if task.is_found and task.ending.exit_code is Exit.VERIFIED:
        lines.append(f"- found by the built-in repair engine: {PLAUSIBLE}")
    return "\n".join(lines)


def _show_check(run: CheckRun) -> str:
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({nest_text(str(run.check.missing))})"
    took = f"{evidence.seconds:.1f} s, {evidence.id}"
    hint = f"\n  - {nest_text(run.hint)}" if run.hint else ""
    taken = f", as {evidence.taken_from} showed" if evidence.taken_from else ""
    end = f"{summarize_evidence(evidence)}{taken} ({took})"
    return f"- {run.check.name}: `{nest_text(format_command(evidence.command))}` {end}{hint}"


def _list_final_checks(task: TaskState, runs: tuple[CheckRun, ...]) -> list[str]:
    shown = list(map(_show_check, select_runs(runs)))
    if task.final and not task.held and task.tree != task.base_tree:
        shown.append("- no check was changed, so this is also the result with the original checks")
    return shown


def _list_intent(told: IntentTold) -> Iterator[str]:
    for label, text in (("goal", told.goal), ("constraints", told.constraints)):
        if text:
            yield f"- {label}: {nest_text(text)}"
    yield from [f"- gap: {nest_text(gap)}" for gap in told.gaps] or ["- gaps: none"]


def _describe_failure(one: Failure) -> str:
    evidence = ", ".join(one.evidence) or "no evidence"
    return f"- {one.iteration}: {nest_text('; '.join(describe_all(one.reasons)))} ({evidence})"


def _describe_probe(result: ProbeResult) -> str:
    about = ", ".join(result.subjects) or str(result.check)
    code = ", on the code from before the task" if result.code is Side.BASE else ""
    what = f"{result.kind} ({result.kind.words}): {nest_text(about)}{code}"
    return f"- {what}: {result.end.words} ({result.seconds:.1f} s)"


def _list_judge_tests(task: TaskState) -> Iterator[str]:
    for each in task.judge_tests:
        fails = f"fails: {list_some(map(nest_text, each.failing))}" if each.failing else "passes"
        text = indent(fence_text(make_visible(each.text.rstrip())), "  ") if each.failing else ""
        yield "\n".join(filter(None, (f"- {nest_text(each.path)}: {fails}", text)))


def _list_rows(part: SummaryPart) -> str:
    rows = list[str]()
    for row in part.rows:
        lead = f"{nest_text(row.lead)}: " if row.lead else ""
        names = f": {list_some(list(map(nest_text, row.names)))}" if row.names else ""
        evidence = f" ({', '.join(row.evidence)})" if row.evidence else ""
        rows.append(f"- {lead}{nest_text(row.text)}{names}{evidence}".rstrip(": "))
    return "\n".join(rows)


def _list_files(task: TaskState, changes: tuple[FileChange, ...]) -> list[str]:
    if task.base_tree is not None and task.tree is None:
        return [f"- {UNKNOWN}"]
    kinds = [explain(change.path, task.surface) for change in changes]
    return [
        f"- {change.kind} {nest_text(change.path)} ({about.kind}: {nest_text(about.reason)})"
        for change, about in zip(changes, kinds, strict=True)
    ]


def _tabulate_spending(spent: Spending) -> list[str]:
    if not spent.roles:
        return []
    heads = ("role", "requests:", "tokens in:", "read from a cache:", "tokens out:", "cost:", "model s:")
    rows = list[tuple[str, ...]]()
    for one in spent.roles:
        used = one.usage
        sent = used.input + used.cache_read + used.cache_write
        counts = (f"{count:,}" for count in (one.requests, sent, used.cache_read, used.output))
        rows.append((nest_text(one.role), *counts, format_money(used.cost_usd), f"{one.seconds:.1f}"))
    time = f"{spent.seconds:.1f} s in all: the model {spent.model:.1f} s, agentflow {spent.own:.1f} s"
    return [tabulate_markdown(heads, rows), "", time]


def _list_under(title: str, lines: list[str]) -> str:
    return "\n".join((f"## {title}", *lines)) if lines else ""


def _make_items(texts: Iterable[str]) -> list[str]:
    return [f"- {nest_text(text)}" for text in texts]


def _list_decisions(task: TaskState) -> Iterator[str]:
    for name, answer in task.waiting.answers.items():
        if answer.tool is not None:
            yield f"- {nest_text(make_visible(tell_decision(name, answer)))}"
            for key, rows in answer.list_edits():
                shown = indent(fence_text(make_visible("\n".join(rows)), "diff"), "    ")
                yield f"  - {make_visible(key)}, as the model asked and as it was approved:\n{shown}"


def _to_entry(run: CheckRun) -> dict[str, Any]:
    evidence = run.evidence
    return {
        "check": run.check.name,
        "command": run.check.command,
        "exit_code": evidence.exit_code if evidence else None,
        "evidence": evidence.id if evidence else None,
        "surface": evidence.surface if evidence else None,
        "tests": to_builtins(evidence.tests) if evidence else None,
    }
