"""`evidence`: the executed commands as a table, and one record with its output."""

from agentflow.core.evidence import By, Evidence, Side, describe_end
from agentflow.redact import one_line
from agentflow.view.status import colour
from agentflow.view.tasks import Snapshot
from agentflow.view.text import BLANK, Line, Span, Style, cells, column, label_row, line, span
from agentflow.view.words import counts, duration, evidence_mark, plural, tree_words

_COMMAND = 200
_TASK = 400
_OUTPUT_LINES = 60
_WHEN = {Side.BASE: "before", Side.FINAL: "after"}
"""The change."""
_HEADS = ("id", "check", "exit", "tree", "code", "pass", "fail", "time")


def evidence_table(snapshot: Snapshot) -> tuple[Line, ...]:
    """Return one row for each executed command, in the order they were run."""
    if not snapshot.evidence:
        return (line(span("no command was run", Style.DIM)),)
    rows = [_cells(one) for one in snapshot.evidence]
    widths = [max(cells(row[place].text) for row in (*rows, _heads())) for place in range(len(_HEADS))]
    return (
        line("  ", *_fill_columns(_heads(), widths), span("command", Style.DIM), hang=4),
        *(
            line(
                evidence_mark(one),
                *_fill_columns(row, widths),
                span(one_line(one.command, _COMMAND)),
                hang=4,
            )
            for one, row in zip(snapshot.evidence, rows, strict=True)
        ),
    )


def _heads() -> tuple[Span, ...]:
    return tuple(span(head, Style.DIM) for head in _HEADS)


def _fill_columns(row: tuple[Span, ...], widths: list[int]) -> tuple[Span, ...]:
    return tuple(column(part.text, width + 2, part.style) for part, width in zip(row, widths, strict=True))


def _cells(evidence: Evidence) -> tuple[Span, ...]:
    code = "time" if evidence.timed_out else "-" if evidence.exit_code is None else str(evidence.exit_code)
    tests = evidence.tests
    failed = tests.failed + tests.errors if tests else 0
    return (
        span(evidence.id, Style.ACCENT),
        span("agent" if evidence.by is By.AGENT else evidence.check or "-"),
        span(f"{code} flaky" if evidence.flaky else code, colour(evidence)),
        span(tree_words(evidence.tree_before), Style.DIM),
        span(_side(evidence)),
        span(str(tests.passed) if tests else "-"),
        span(str(failed) if tests else "-", Style.BAD if failed else Style.PLAIN),
        span(duration(evidence.seconds), Style.DIM),
    )


def _side(evidence: Evidence) -> str:
    if evidence.by is By.AGENT:
        return "-"
    is_held = evidence.code is Side.FINAL and evidence.surface is Side.BASE
    return "mixed" if is_held else _WHEN[evidence.code]


def _side_words(evidence: Evidence) -> str:
    """Return whose code ran, and under whose checks where that differs."""
    if evidence.by is By.AGENT:
        return "-"
    if evidence.code is evidence.surface:
        return _WHEN[evidence.code]
    return "after, checks from before" if evidence.surface is Side.BASE else "before, tests of now"


def _tries(evidence: Evidence) -> tuple[Line, ...]:
    """Return the runs before this one on the same tree, and what had mixed results among all of them."""
    runs = (f"{describe_end(each)} ({each.fault}), output in {each.output}" for each in evidence.tries)
    mixed = (", ".join(one_line(name, _TASK) for name in evidence.flaky),) if evidence.flaky else ()
    return (
        *(label_row("before", span(run, Style.WARN)) for run in runs),
        *(label_row("flaky", span(name, Style.WARN)) for name in mixed),
    )


def evidence_detail(evidence: Evidence, output: str) -> tuple[Line, ...]:
    """Return all of one record, and the end of what the command printed."""
    chosen = f"{evidence.by}, {evidence.check or evidence.role or 'no check'}"
    trees = f"{tree_words(evidence.tree_before)} → {tree_words(evidence.tree_after)}"
    printed = output.rstrip("\n").split("\n")
    left_out = len(printed) - _OUTPUT_LINES
    return (
        line(
            evidence_mark(evidence),
            span(evidence.id, Style.BOLD),
            f"  {one_line(evidence.command, _TASK)}",
        ),
        label_row(
            "exit", span(describe_end(evidence), colour(evidence)), span(f"  {counts(evidence.tests)}")
        ),
        *_tries(evidence),
        label_row("chosen by", span(chosen), span(f"  iteration {evidence.iteration}", Style.DIM)),
        label_row("code", span(_side_words(evidence)), span(f"  tree {trees}", Style.DIM)),
        label_row("where", span(evidence.cwd), span(f"  sandbox {evidence.sandbox}", Style.DIM)),
        label_row("when", span(evidence.started_at), span(f"  {duration(evidence.seconds)}", Style.DIM)),
        label_row(
            "output", span(f"{plural(evidence.bytes, 'byte')}  sha256 {evidence.stdout_sha256}", Style.DIM)
        ),
        BLANK,
        *((line(span(f"… {left_out} lines above …", Style.DIM)),) if left_out > 0 else ()),
        *(line(row) for row in printed[-_OUTPUT_LINES:] if output),
    )
