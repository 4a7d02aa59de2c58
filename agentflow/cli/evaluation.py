"""`eval`: a batch whose results are examined by hidden checks, and two of them compared."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import NETWORK, NO_SANDBOX, PLAIN
from agentflow.cli.batch import (
    ALL_COST,
    ALL_TOKENS,
    BATCH_MODEL,
    BATCH_PAGE,
    CLUSTER_ADDRESS,
    CPUS,
    ENGINE,
    JOBS,
    JUNIT,
    KEEP,
    MEMORY,
    OUT,
    RATE,
    REQUESTS,
    RESUME,
    TASK_TIMEOUT,
    BatchEngine,
    choose_cluster,
    run_with_progress,
    write_reports,
)
from agentflow.cli.printing import require_folders, say_json, show
from agentflow.core.errors import Exit, UsageError
from agentflow.core.pending import Budget
from agentflow.redact import format_count, list_some
from agentflow.view.text import Line, Style, clip, fill_columns, line, span
from agentflow.view.words import format_duration

if TYPE_CHECKING:
    from agentflow.batch.evaluation import Comparison, Rate, Score
    from agentflow.batch.plan import BatchTask

_COMPARE = "compare"


PLAN_OR_RUNS = typer.Argument(
    ..., metavar="FILE | compare A B", help="The tasks, each with a hidden check; or two runs to compare."
)


def evaluate(
    words: list[str] = PLAN_OR_RUNS,
    out: Path | None = OUT,
    jobs: int | None = JOBS,
    resume: bool = RESUME,
    model: str | None = BATCH_MODEL,
    max_cost: float | None = ALL_COST,
    max_tokens: int | None = ALL_TOKENS,
    timeout: float | None = TASK_TIMEOUT,
    requests: int | None = REQUESTS,
    rate: float | None = RATE,
    engine: BatchEngine = ENGINE,
    address: str | None = CLUSTER_ADDRESS,
    cpus: float | None = CPUS,
    memory: float | None = MEMORY,
    keep: bool = KEEP,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    junit: Path | None = JUNIT,
    html: Path | None = BATCH_PAGE,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    plain: bool = PLAIN,
) -> int:
    """Run tasks and measure with hidden checks how many are resolved, or falsely verified.

    FILE is as for `batch`, or contains SWE-bench instances. Exit code 0 means that all tasks were examined;
    for `compare`, that the second run is not worse than the first by more than chance.
    """
    from agentflow.batch.evaluation import score_groups
    from agentflow.batch.plan import locate_model
    from agentflow.batch.run import BatchOptions
    from agentflow.model.retry import SharedLimits

    if words[0] == _COMPARE:
        return _compare(words[1:], json=json)
    require_folders(junit, html)
    cluster = choose_cluster(engine, address, cpus, memory)
    plan, tasks = _read_checked(words)
    switches = {"--no-input": True, "--no-sandbox": no_sandbox, "--network": network}
    options = BatchOptions(
        jobs=jobs,
        cluster=cluster,
        model=locate_model(model, Path()),
        budget=Budget(cost=max_cost, tokens=max_tokens),
        timeout=timeout,
        limits=SharedLimits(at_once=requests, per_minute=rate),
        switches=tuple(name for name, is_on in switches.items() if is_on),
        resume=resume,
        keep=keep,
    )
    outcome = run_with_progress(plan, out, tasks, options, plain=plain)
    write_reports(junit, html, plan, tasks, outcome)
    scores = score_groups(outcome.results)
    if json:
        say_json(scores)
    else:
        show(_tabulate(scores))
    if outcome.missing and outcome.exit_code in (Exit.LIMIT, Exit.INTERRUPTED, Exit.TERMINATED):
        return outcome.exit_code
    return Exit.NOT_VERIFIED if outcome.missing or scores[-1].unbegun else Exit.VERIFIED


def _read_checked(words: list[str]) -> "tuple[Path, tuple[BatchTask, ...]]":
    """Return the file of tasks and what it says. Raises UsageError for a task without a hidden check."""
    from agentflow.batch.plan import read_plan

    if len(words) > 1:
        hint = "see agentflow eval --help"
        raise UsageError("name one file of tasks, or two runs after `compare`", hint=hint)
    plan = Path(words[0])
    tasks = read_plan(plan)
    if unchecked := [task.id for task in tasks if task.check is None]:
        hint = "`agentflow batch` runs tasks without one"
        raise UsageError(f"{plan}: {unchecked[0]} has no hidden check", hint=hint)
    return plan, tasks


def _compare(words: list[str], *, json: bool) -> int:
    """Print how two runs differ; end 1 where the second is worse by more than chance."""
    from agentflow.batch.evaluation import compare_runs, read_results

    if len(words) != 2:
        raise UsageError(
            "name the folders of two runs", hint="agentflow eval compare before.batch after.batch"
        )
    first, second = (read_results(Path(word)) for word in words)
    found = compare_runs(first, second)
    if json:
        say_json(found)
    else:
        show(_contrast(found, (words[0], words[1])))
    return Exit.NOT_VERIFIED if found.is_worse else Exit.VERIFIED


_GROUP = 12
"""Columns of a group's name."""
_HEADER = ("group", "resolved", "falsely verified", "refused", "time", "tokens", "cost")


def _tabulate(scores: "tuple[Score, ...]") -> Iterator[Line]:
    yield from _make_table(tuple((one.group, one) for one in scores))
    last = scores[-1]
    if last.caveats_unresolved:
        yield line(f"{last.caveats_unresolved} verified with a caveat and not resolved")
    if last.unbegun:
        yield line(span(f"{last.unbegun} could not begin: results.jsonl says why", Style.BAD))
    yield line(span("in brackets: 95 % confidence (Wilson); time: the median of a task", Style.DIM))


def _make_table(rows: "Sequence[tuple[str, Score]]") -> Iterator[Line]:
    """Yield a row for each score below the header, in columns as wide as what stands in them."""
    heads = [span(head, Style.BOLD) for head in _HEADER]
    table = [[span(text) for text in (clip(name, _GROUP), *_format_score(score))] for name, score in rows]
    yield from (line(*row) for row in fill_columns([heads, *table]))


def _format_score(one: "Score") -> tuple[str, ...]:
    return (
        _format_rate(one.resolved),
        _format_rate(one.falsely_verified),
        str(one.refused),
        format_duration(one.seconds) if one.seconds else "-",
        _format_count(one.tokens),
        "-" if one.cost_usd is None else f"${one.cost_usd:.2f}",
    )


def _format_rate(rate: "Rate") -> str:
    return f"{rate.count}/{rate.of} [{100 * rate.low:.0f}-{rate.high:.0%}]" if rate.of else "-"


def _format_count(number: int) -> str:
    """Return a number of tokens in a few columns, such as 840, 12.3k or 4.5M."""
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1e6 - 50 else f"{number / 1e6:.1f}M"


def _contrast(found: "Comparison", names: tuple[str, str]) -> Iterator[Line]:
    yield line(f"first: {names[0]}   second: {names[1]}", hang=4)
    yield from _make_table((("first", found.first), ("second", found.second)))
    tasks = format_count(found.tasks, "task")
    yield line(f"{tasks}: both resolve {found.both}, neither {found.neither}")
    yield line(f"only the first: {len(found.first_only)}  {list_some(found.first_only)}", hang=4)
    yield line(f"only the second: {len(found.second_only)}  {list_some(found.second_only)}", hang=4)
    gain = found.difference
    yield line(f"resolved, paired difference: {gain.value:+.0%} [{gain.low:+.0%}, {gain.high:+.0%}]")
    words, style = _judge(found)
    yield line(span(f"the second is {words}: p = {found.p:.3f} (McNemar, exact, two-sided)", style), hang=4)
    if found.unpaired:
        yield line(span(f"without a pair, and left out: {list_some(found.unpaired)}", Style.WARN), hang=4)


def _judge(found: "Comparison") -> tuple[str, Style]:
    if found.is_worse:
        return "worse by more than chance", Style.BAD
    if found.is_better:
        return "better by more than chance", Style.GOOD
    return "neither better nor worse by more than chance", Style.PLAIN
