"""`batch`: many tasks, each in a clone of its own, several at once."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import (
    NETWORK,
    NO_INPUT,
    NO_SANDBOX,
    PLAIN,
    YES,
    choose_consent,
    require_number,
)
from agentflow.cli.printing import require_folders, say_json, show, write_result
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.pending import Budget
from agentflow.redact import format_count, list_some
from agentflow.view.text import (
    Line,
    Medium,
    Style,
    choose_medium,
    clip,
    column,
    find_width,
    line,
    send,
    span,
    write_lines,
)
from agentflow.view.words import format_duration, mark_status, style_status

if TYPE_CHECKING:
    from agentflow.batch.folder import TaskFolder
    from agentflow.batch.plan import BatchTask
    from agentflow.batch.results import BatchResult
    from agentflow.batch.run import BatchOptions, BatchOutcome, DoTask, RayCluster, TaskBegun, TellProgress


class RetryKind(StrEnum):
    """The results after which `--retry` begins a task anew."""

    FAILED = "failed"
    LIMIT = "limit"
    ERROR = "error"


_RETRIED = {
    RetryKind.FAILED: (Exit.NOT_VERIFIED, Exit.TAMPERED, Exit.BLOCKED),
    RetryKind.LIMIT: (Exit.LIMIT,),
    RetryKind.ERROR: (Exit.CONFIG, Exit.NO_MODEL, Exit.NO_SANDBOX, Exit.INTERNAL),
}


class BatchEngine(StrEnum):
    """The machines on which the tasks of a batch run."""

    LOCAL = "local"
    RAY = "ray"


_BAR = 24
"""Columns of the bar."""
_ERASE = "\r\x1b[K"
PLAN_FILE = typer.Argument(..., metavar="FILE", help="The tasks, as JSON lines or a YAML list.")
OUT = typer.Option(
    None, "--out", metavar="DIR", help="Where results, patches and records go. [default: FILE with .batch]"
)
JOBS = typer.Option(None, "--jobs", min=1, max=256, metavar="N", help="Tasks at once. [default: one a CPU]")
RESUME = typer.Option(False, "--resume", help="Continue a batch that was stopped or killed, or that waits.")
RETRY = typer.Option(
    None, "--retry", help="With --resume: begin tasks anew that ended so. May be given several times."
)
BATCH_MODEL = typer.Option(None, "--model", metavar="M", help="The model of tasks that name none.")
ALL_COST = typer.Option(
    None,
    "--max-cost",
    min=0,
    callback=require_number,
    metavar="USD",
    help="What all tasks together may cost.",
)
ALL_TOKENS = typer.Option(
    None, "--max-tokens", min=1, metavar="N", help="Tokens that all tasks together may use."
)
TASK_TIMEOUT = typer.Option(
    None,
    "--timeout",
    min=0.1,
    callback=require_number,
    metavar="S",
    help="Seconds that each task may take.",
)
REQUESTS = typer.Option(
    None,
    "--requests",
    min=1,
    metavar="N",
    help="At most N requests at once to one endpoint, for all tasks together.",
)
RATE = typer.Option(
    None,
    "--rate",
    min=0.1,
    callback=require_number,
    metavar="N",
    help="At most N requests a minute to one endpoint, for all tasks.",
)
ENGINE = typer.Option(
    BatchEngine.LOCAL, "--engine", help="Where the tasks run: on this machine or on a Ray cluster."
)
CLUSTER_ADDRESS = typer.Option(
    None,
    "--address",
    metavar="HOST:PORT",
    help="The Ray cluster. [default: RAY_ADDRESS, or one on this machine alone]",
)
CPUS = typer.Option(
    None,
    "--cpus",
    min=0.1,
    callback=require_number,
    metavar="N",
    help="CPUs that Ray sets aside for each task. [default: 1]",
)
MEMORY = typer.Option(
    None,
    "--memory",
    min=0.1,
    callback=require_number,
    metavar="GB",
    help="Memory that Ray sets aside for each task.",
)
FAIL_FAST = typer.Option(False, "--fail-fast", help="Start no more tasks once one is not verified.")
SHUFFLE = typer.Option(
    None, "--shuffle", metavar="SEED", help="Start the tasks in a random but repeatable order."
)
KEEP = typer.Option(False, "--keep", help="Keep the clones in which the tasks worked.")
JUNIT = typer.Option(None, "--junit", metavar="FILE", help="Write the results as JUnit XML.")
BATCH_PAGE = typer.Option(None, "--html", metavar="FILE", help="Write the results as one HTML page.")
JSON_LINES = typer.Option(False, "--json", help="Print each result as a line of JSON.")


def batch(
    plan: Path = PLAN_FILE,
    out: Path | None = OUT,
    jobs: int | None = JOBS,
    resume: bool = RESUME,
    retry: list[RetryKind] | None = RETRY,
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
    fail_fast: bool = FAIL_FAST,
    shuffle: int | None = SHUFFLE,
    keep: bool = KEEP,
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    junit: Path | None = JUNIT,
    html: Path | None = BATCH_PAGE,
    json: bool = JSON_LINES,
    plain: bool = PLAIN,
) -> int:
    """Carry out many tasks, several at once, each in a clone of its own.

    Your repositories are not changed: each task leaves its patch and its record. Exit code 0 means that
    every task is verified.
    """
    from agentflow.batch.plan import locate_model, read_plan
    from agentflow.batch.run import BatchOptions
    from agentflow.model.retry import SharedLimits

    choose_consent(yes=yes, no_input=no_input)
    if retry and not resume:
        raise UsageError("--retry is for a batch that ran before: add --resume")
    require_folders(junit, html)
    switches = {"--yes": yes, "--no-input": no_input, "--no-sandbox": no_sandbox, "--network": network}
    options = BatchOptions(
        jobs=jobs,
        cluster=choose_cluster(engine, address, cpus, memory),
        model=locate_model(model, Path()),
        budget=Budget(cost=max_cost, tokens=max_tokens),
        timeout=timeout,
        limits=SharedLimits(at_once=requests, per_minute=rate),
        switches=tuple(name for name, is_on in switches.items() if is_on),
        seed=shuffle,
        resume=resume,
        retry=tuple(code for kind in retry or () for code in _RETRIED[kind]),
        fail_fast=fail_fast,
        keep=keep,
    )
    tasks = read_plan(plan)
    printed = set[str]()
    outcome = run_with_progress(
        plan, out, tasks, options, plain=plain, printed=printed if json and options.cluster is None else None
    )
    write_reports(junit, html, plan, tasks, outcome)
    if json:
        for result in outcome.results:
            if result.id not in printed:  # it was there before
                say_json(result)
    else:
        show(_tabulate_outcome(outcome))
    return outcome.exit_code


def write_reports(
    junit: Path | None, html: Path | None, plan: Path, tasks: "tuple[BatchTask, ...]", outcome: "BatchOutcome"
) -> None:
    """Write the results as the files that are wanted."""
    if junit is not None:
        from agentflow.batch.results import to_junit

        write_result(junit, to_junit(outcome.results, outcome.missing))
    if html is not None:
        from agentflow.batch.page import write_batch_page

        write_batch_page(html, plan, tasks, outcome)


def choose_cluster(
    engine: BatchEngine, address: str | None, cpus: float | None, memory: float | None
) -> "RayCluster | None":
    """Return the cluster on which tasks are done, None for this machine. Raises UsageError."""
    from agentflow.batch.run import RayCluster

    if engine is BatchEngine.RAY:
        return RayCluster(address=address, cpus=cpus or 1, memory=memory)
    if address or cpus or memory:
        raise UsageError("--address, --cpus and --memory apply only to --engine ray")
    return None


def run_with_progress(
    plan: Path,
    out: Path | None,
    tasks: "tuple[BatchTask, ...]",
    options: "BatchOptions",
    *,
    plain: bool,
    printed: set[str] | None = None,
) -> "BatchOutcome":
    """Run a batch and show its progress on stderr; with `printed` also print each result at once as JSON.

    Raises UsageError or ConfigError.
    """
    from agentflow.batch.run import open_batch, run_batch

    out = (plan.with_suffix(".batch") if out is None else out).absolute()
    if options.cluster is not None:
        _require_possible(options)
    options = options.replace(hidden=(str(plan.absolute().parent),))
    with (
        open_batch(plan, out, tasks, resume=options.resume) as folders,
        _show_progress(folders, plain=plain) as tell,
        _open_engine(options, out) as (fitted, do),
    ):
        outcome = run_batch(
            folders, fitted, tell if printed is None else partial(_tell_json, tell, printed), do
        )
    if outcome.missing:
        more = " and a larger limit" if outcome.exit_code is Exit.LIMIT else ""
        send(f"To continue, run the same command with --resume{more}.\n", sys.stderr)
    return outcome


def _tell_json(tell: "TellProgress", printed: set[str], news: "TaskBegun | BatchResult") -> None:
    """Print a result as a line of JSON, note its id, and show the progress."""
    from agentflow.batch.results import BatchResult

    if isinstance(news, BatchResult):
        say_json(news)
        printed.add(news.id)
    tell(news)


def _require_possible(options: "BatchOptions") -> None:
    """Raise UsageError for what a batch on a cluster cannot do, ConfigError where Ray is not installed."""
    if options.limits.at_once or options.limits.per_minute:
        hint = "limit the tasks at once with --jobs, or the requests in a gateway"
        raise UsageError("--requests and --rate work on one machine only, not with --engine ray", hint=hint)
    if options.keep:
        raise UsageError(
            "--keep does not work with --engine ray: the clones are removed on the other machines"
        )
    assert options.cluster is not None
    if "--network" in options.switches and (options.cluster.address or os.environ.get("RAY_ADDRESS")):
        hint = "leave out --network, or leave out --address to use this machine alone"
        raise UsageError("--network would let every task reach the shared cluster itself", hint=hint)
    if not {"--yes", "--no-input"} & {*options.switches}:
        hint = "--no-input denies what would be asked, --yes approves it"
        raise UsageError("a task on a Ray cluster cannot wait for you", hint=hint)
    if not find_spec("ray"):
        hint = "pip install 'agentflow[ray]'"
        raise ConfigError("--engine ray needs Ray, which is not installed", hint=hint)


@contextmanager
def _open_engine(options: "BatchOptions", out: Path) -> "Iterator[tuple[BatchOptions, DoTask]]":
    """Yield the options with the number of jobs, and what carries out a task. Raises ConfigError."""
    from agentflow.batch.run import do_task

    if options.cluster is None:
        yield options, do_task
        return
    from agentflow.batch.cluster import open_cluster

    with open_cluster(options.cluster, out / "ray.log") as (do, room):
        yield options.replace(jobs=options.jobs or room), do


@contextmanager
def _show_progress(folders: "Sequence[TaskFolder]", *, plain: bool) -> "Iterator[TellProgress]":
    """Show a bar with counts and running tasks at a terminal, elsewhere a line for each result."""
    from agentflow.batch.results import BatchResult, read_result

    known = [result for folder in folders if (result := read_result(folder.place)) and result.is_settled]
    done = [*known]
    medium = choose_medium(sys.stderr, os.environ)
    if medium.live and not plain:
        with _draw_bar(len(folders), done, medium) as draw:
            yield draw
        return

    def tell(news: "TaskBegun | BatchResult") -> None:
        if isinstance(news, BatchResult):
            done.append(news)
            write_lines((_describe_result(news, f"{len(done)}/{len(folders)}"),), sys.stderr, medium)

    yield tell


@contextmanager
def _draw_bar(total: int, done: "list[BatchResult]", medium: Medium) -> "Iterator[TellProgress]":
    """Yield the function that updates the bar; at the end the bar is erased."""
    from agentflow.batch.results import BatchResult, count_statuses

    full, empty = "#-" if medium.ascii else "█░"
    running: list[str] = []

    def draw() -> None:
        filled = _BAR * len(done) // total
        counts = [f"{number} {status}" for status, number in count_statuses(done).items()]
        told = "; ".join(
            filter(None, (", ".join(counts), f"running {list_some(running, 3)}" if running else ""))
        )
        text = f"{full * filled}{empty * (_BAR - filled)} {len(done)}/{total}  {told}"
        send(f"{_ERASE}{clip(text, (find_width(sys.stderr) or 80) - 1)}", sys.stderr)

    def tell(news: "TaskBegun | BatchResult") -> None:
        running[:] = [name for name in running if name != news.id]
        if isinstance(news, BatchResult):
            done.append(news)
        else:
            running.append(news.id)
        draw()

    draw()
    try:
        yield tell
    finally:
        send(_ERASE, sys.stderr)


def _describe_result(result: "BatchResult", count: str = "") -> Line:
    """Return one result in a line."""
    hidden = "" if result.hidden is None else "  resolved" if result.hidden.resolved else "  not resolved"
    return line(
        mark_status(result.status),
        column(result.id, 24),
        column(result.status, 22, style_status(result.status)),
        span(f"{format_duration(result.seconds):>7}  {count}{hidden}  "),
        span(result.reason if result.exit_code else "", Style.DIM),
        hang=4,
    )


def _tabulate_outcome(outcome: "BatchOutcome") -> Iterator[Line]:
    """Yield the results of a batch in the order of its file, and a line with the totals."""
    from agentflow.batch.results import count_statuses

    yield from map(_describe_result, outcome.results)
    for name in outcome.missing:
        yield line(span(f"○ {name}  not done", Style.DIM))
    counts = ", ".join(f"{number} {status}" for status, number in count_statuses(outcome.results).items())
    left = f", {len(outcome.missing)} not done" if outcome.missing else ""
    tokens = sum(result.usage.tokens for result in outcome.results)
    costs = [result.usage.cost_usd for result in outcome.results if result.usage.cost_usd is not None]
    cost = f", ${sum(costs):.2f}" if costs else ""
    total = format_count(len(outcome.results) + len(outcome.missing), "task")
    yield line(span(f"{total}: {counts or 'none'}{left}; {tokens:,} tokens{cost}", Style.BOLD))
