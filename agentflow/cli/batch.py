"""`batch` and `eval`: many tasks, each in a clone of its own; and hidden checks of what they did."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import typer

from agentflow.batch.evaluation import Comparison, Rate, Score, compare_runs, read_results, score_groups
from agentflow.batch.folder import TaskFolder
from agentflow.batch.page import write_batch_page
from agentflow.batch.plan import BatchTask, locate_model, read_plan
from agentflow.batch.results import BatchResult, count_statuses, read_result, to_junit
from agentflow.batch.run import (
    BatchOptions,
    BatchOutcome,
    DoTask,
    RayCluster,
    TaskBegun,
    TellProgress,
    do_task,
    open_batch,
    run_batch,
)
from agentflow.cli import arguments
from agentflow.cli.printing import require_folders, say_json, show, tell_result, write_result
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.pending import Budget
from agentflow.core.record import Record
from agentflow.model.retry import SharedLimits
from agentflow.redact import format_count, format_money, list_some
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
    tabulate,
    write_lines,
)
from agentflow.view.words import format_duration, mark_status, style_status


class RetryKind(StrEnum):
    FAILED = "failed"
    LIMIT = "limit"
    ERROR = "error"


_RETRIED = {
    RetryKind.FAILED: (Exit.NOT_VERIFIED, Exit.TAMPERED, Exit.BLOCKED),
    RetryKind.LIMIT: (Exit.LIMIT,),
    RetryKind.ERROR: (Exit.CONFIG, Exit.NO_MODEL, Exit.NO_SANDBOX, Exit.INTERNAL),
}


class BatchEngine(StrEnum):
    LOCAL = "local"
    RAY = "ray"


_BAR = 24
"""Columns of the bar."""
_ERASE = "\r\x1b[K"
PLAN_FILE = typer.Argument(..., metavar="FILE", help="The tasks, as JSON lines or a YAML list.")


class ManyOptions(Record):
    """What `batch` and `eval` have in common."""

    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="DIR",
        help="Where results, patches and records go. [default: FILE with .batch]",
    )
    jobs: int | None = typer.Option(
        None, "--jobs", min=1, max=256, metavar="N", help="Tasks at once. [default: one a CPU]"
    )
    resume: bool = typer.Option(
        False, "--resume", help="Continue a batch that was stopped or killed, or that waits."
    )
    model: str | None = typer.Option(None, "--model", metavar="M", help="The model of tasks that name none.")
    max_cost: float | None = arguments.take_number(
        "--max-cost", "What all tasks together may cost.", "USD", least=0
    )
    max_tokens: int | None = typer.Option(
        None, "--max-tokens", min=1, metavar="N", help="Tokens that all tasks together may use."
    )
    timeout: float | None = arguments.take_number("--timeout", "Seconds that each task may take.", "S")
    requests: int | None = typer.Option(
        None,
        "--requests",
        min=1,
        metavar="N",
        help="At most N requests at once to one endpoint, for all tasks together.",
    )
    rate: float | None = arguments.take_number(
        "--rate", "At most N requests a minute to one endpoint, for all tasks."
    )
    engine: BatchEngine = typer.Option(
        BatchEngine.LOCAL, "--engine", help="Where the tasks run: on this machine or on a Ray cluster."
    )
    address: str | None = typer.Option(
        None,
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster. [default: RAY_ADDRESS, or one on this machine alone]",
    )
    cpus: float | None = arguments.take_number(
        "--cpus", "CPUs that Ray sets aside for each task. [default: 1]"
    )
    memory: float | None = arguments.take_number(
        "--memory", "Memory that Ray sets aside for each task.", "GB"
    )
    keep: bool = typer.Option(False, "--keep", help="Keep the clones in which the tasks worked.")
    no_sandbox: bool = arguments.NO_SANDBOX
    network: bool = arguments.NETWORK
    junit: Path | None = typer.Option(None, "--junit", metavar="FILE", help="Write the results as JUnit XML.")
    html: Path | None = typer.Option(
        None, "--html", metavar="FILE", help="Write the results as one HTML page."
    )
    plain: bool = arguments.PLAIN

    def choose(self, switches: Mapping[str, bool]) -> BatchOptions:
        """Return the options of a batch; each of its tasks is given the switches that are on."""
        require_folders(self.junit, self.html)
        known = {**switches, "--no-sandbox": self.no_sandbox, "--network": self.network}
        return BatchOptions(
            jobs=self.jobs,
            cluster=self._choose_cluster(),
            model=locate_model(self.model, Path()),
            budget=Budget(cost=self.max_cost, tokens=self.max_tokens),
            timeout=self.timeout,
            limits=SharedLimits(at_once=self.requests, per_minute=self.rate),
            switches=tuple(name for name, is_on in known.items() if is_on),
            resume=self.resume,
            keep=self.keep,
        )

    def _choose_cluster(self) -> RayCluster | None:
        if self.engine is BatchEngine.RAY:
            return RayCluster(address=self.address, cpus=self.cpus or 1, memory=self.memory)
        if self.address or self.cpus or self.memory:
            raise UsageError("--address, --cpus and --memory apply only to --engine ray")
        return None

    def run(
        self,
        plan: Path,
        tasks: tuple[BatchTask, ...],
        options: BatchOptions,
        printed: set[str] | None = None,
    ) -> BatchOutcome:
        """Run a batch, with its progress on stderr, and write its reports.

        With `printed` also print each result at once as JSON. Raises UsageError or ConfigError.
        """
        out = (self.out or plan.with_suffix(".batch")).absolute()
        if options.cluster is not None:
            _require_possible(options, options.cluster)
        options = options.replace(hidden=(str(plan.absolute().parent),))
        with (
            open_batch(plan, out, tasks, resume=options.resume) as folders,
            _show_progress(folders, plain=self.plain) as show_news,
            _open_engine(options, out) as (fitted, do),
        ):
            tell = show_news if printed is None else partial(_tell_json, show_news, printed)
            outcome = run_batch(folders, fitted, tell, do)
        if outcome.missing:
            more = " and a larger limit" if outcome.exit_code is Exit.LIMIT else ""
            send(f"To continue, run the same command with --resume{more}.\n", sys.stderr)
        if self.junit is not None:
            write_result(self.junit, to_junit(outcome.results, outcome.missing))
        if self.html is not None:
            write_batch_page(self.html, plan, tasks, outcome)
        return outcome


RETRY = typer.Option(
    None, "--retry", help="With --resume: begin tasks anew that ended so. May be given several times."
)
FAIL_FAST = typer.Option(False, "--fail-fast", help="Start no more tasks once one is not verified.")
SHUFFLE = typer.Option(
    None, "--shuffle", metavar="SEED", help="Start the tasks in a random but repeatable order."
)
JSON_LINES = typer.Option(False, "--json", help="Print each result as a line of JSON.")


def batch(
    many: ManyOptions,
    plan: Path = PLAN_FILE,
    retry: list[RetryKind] | None = RETRY,
    fail_fast: bool = FAIL_FAST,
    shuffle: int | None = SHUFFLE,
    yes: bool = arguments.YES,
    no_input: bool = arguments.NO_INPUT,
    json: bool = JSON_LINES,
) -> int:
    """Carry out many tasks, several at once, each in a clone of its own.

    Your repositories are not changed: each task leaves its patch and its record. Exit code 0 means that
    every task is verified.
    """
    arguments.choose_consent(yes=yes, no_input=no_input)
    if retry and not many.resume:
        raise UsageError("--retry is for a batch that ran before: add --resume")
    options = many.choose({"--yes": yes, "--no-input": no_input}).replace(
        seed=shuffle,
        retry=tuple(code for kind in retry or () for code in _RETRIED[kind]),
        fail_fast=fail_fast,
    )
    printed = set[str]()
    is_told_at_once = json and options.cluster is None
    outcome = many.run(plan, read_plan(plan), options, printed if is_told_at_once else None)
    if json:
        for result in outcome.results:
            if result.id not in printed:  # it was there before
                say_json(result)
    else:
        show(_tabulate_outcome(outcome))
    return outcome.exit_code


def _tell_json(tell: TellProgress, printed: set[str], news: TaskBegun | BatchResult) -> None:
    if isinstance(news, BatchResult):
        say_json(news)
        printed.add(news.id)
    tell(news)


def _require_possible(options: BatchOptions, cluster: RayCluster) -> None:
    if options.limits.at_once or options.limits.per_minute:
        hint = "limit the tasks at once with --jobs, or the requests in a gateway"
        raise UsageError("--requests and --rate work on one machine only, not with --engine ray", hint=hint)
    if options.keep:
        raise UsageError(
            "--keep does not work with --engine ray: the clones are removed on the other machines"
        )
    if "--network" in options.switches and (cluster.address or os.environ.get("RAY_ADDRESS")):
        hint = "leave out --network, or leave out --address to use this machine alone"
        raise UsageError("--network would let every task reach the shared cluster itself", hint=hint)
    if not {"--yes", "--no-input"} & {*options.switches}:
        hint = "--no-input denies what would be asked, --yes approves it"
        raise UsageError("a task on a Ray cluster cannot wait for you", hint=hint)
    if not find_spec("ray"):
        hint = "pip install 'agentflow[ray]'"
        raise ConfigError("--engine ray needs Ray, which is not installed", hint=hint)


@contextmanager
def _open_engine(options: BatchOptions, out: Path) -> Iterator[tuple[BatchOptions, DoTask]]:
    if options.cluster is None:
        yield options, do_task
        return
    from agentflow.batch.cluster import open_cluster

    with open_cluster(options.cluster, out / "ray.log") as (do, room):
        yield options.replace(jobs=options.jobs or room), do


@contextmanager
def _show_progress(folders: Sequence[TaskFolder], *, plain: bool) -> Iterator[TellProgress]:
    known = [result for folder in folders if (result := read_result(folder.place)) and result.is_settled]
    done = [*known]
    medium = choose_medium(sys.stderr, os.environ)
    if medium.live and not plain:
        with _draw_bar(len(folders), done, medium) as draw:
            yield draw
        return

    def tell(news: TaskBegun | BatchResult) -> None:
        if isinstance(news, BatchResult):
            done.append(news)
            write_lines((_describe_result(news, f"{len(done)}/{len(folders)}"),), sys.stderr, medium)

    yield tell


@contextmanager
def _draw_bar(total: int, done: list[BatchResult], medium: Medium) -> Iterator[TellProgress]:
    """Yield the function that updates the bar; at the end the bar is erased."""
    full, empty = "#-" if medium.ascii else "█░"
    running: list[str] = []

    def draw() -> None:
        filled = _BAR * len(done) // total
        counts = ", ".join(f"{number} {status}" for status, number in count_statuses(done).items())
        now = "; ".join(filter(None, (counts, f"running {list_some(running, 3)}" if running else "")))
        text = f"{full * filled}{empty * (_BAR - filled)} {len(done)}/{total}  {now}"
        send(f"{_ERASE}{clip(text, (find_width(sys.stderr) or 80) - 1)}", sys.stderr)

    def tell(news: TaskBegun | BatchResult) -> None:
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


def _describe_result(result: BatchResult, count: str = "") -> Line:
    hidden = "" if result.hidden is None else "  resolved" if result.hidden.resolved else "  not resolved"
    return line(
        mark_status(result.status),
        column(result.id, 24),
        column(result.status, 22, style_status(result.status)),
        span(f"{format_duration(result.seconds):>7}  {count}{hidden}  "),
        span(result.reason if result.exit_code else "", Style.DIM),
        hang=4,
    )


def _tabulate_outcome(outcome: BatchOutcome) -> Iterator[Line]:
    yield from map(_describe_result, outcome.results)
    for name in outcome.missing:
        yield line(span(f"○ {name}  not done", Style.DIM))
    counts = ", ".join(f"{number} {status}" for status, number in count_statuses(outcome.results).items())
    left = f", {len(outcome.missing)} not done" if outcome.missing else ""
    tokens = sum(result.usage.tokens for result in outcome.results)
    costs = [result.usage.cost_usd for result in outcome.results if result.usage.cost_usd is not None]
    cost = f", {format_money(sum(costs))}" if costs else ""
    total = format_count(len(outcome.results) + len(outcome.missing), "task")
    yield line(span(f"{total}: {counts or 'none'}{left}; {tokens:,} tokens{cost}", Style.BOLD))


_COMPARE = "compare"
PLAN_OR_RUNS = typer.Argument(
    ..., metavar="FILE | compare A B", help="The tasks, each with a hidden check; or two runs to compare."
)


def evaluate(many: ManyOptions, files: list[str] = PLAN_OR_RUNS, json: bool = arguments.JSON) -> int:
    """Run tasks and measure with hidden checks how many are resolved, or falsely verified.

    FILE is as for `batch`, or contains SWE-bench instances. Exit code 0 means that all tasks were examined;
    for `compare`, that the second run is not worse than the first by more than chance.
    """
    if files[0] == _COMPARE:
        return _compare(files[1:], json=json)
    options = many.choose({"--no-input": True})
    plan, tasks = _read_checked(files)
    outcome = many.run(plan, tasks, options)
    scores = score_groups(outcome.results)
    tell_result(scores, _tabulate(scores), json=json)
    if outcome.missing and outcome.exit_code in (Exit.LIMIT, Exit.INTERRUPTED, Exit.TERMINATED):
        return outcome.exit_code
    return Exit.NOT_VERIFIED if outcome.missing or scores[-1].unbegun else Exit.VERIFIED


def _read_checked(words: list[str]) -> tuple[Path, tuple[BatchTask, ...]]:
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
    if len(words) != 2:
        hint = "agentflow eval compare before.batch after.batch"
        raise UsageError("name the folders of two runs", hint=hint)
    first, second = (read_results(Path(word)) for word in words)
    found = compare_runs(first, second)
    tell_result(found, _contrast(found, words), json=json)
    return Exit.NOT_VERIFIED if found.is_worse else Exit.VERIFIED


_GROUP = 12
"""Columns of a group's name."""
_HEADER = ("group", "resolved", "falsely verified", "refused", "time", "tokens", "cost")


def _tabulate(scores: tuple[Score, ...]) -> Iterator[Line]:
    yield from tabulate(_HEADER, ((clip(one.group, _GROUP), *_format_score(one)) for one in scores))
    last = scores[-1]
    if last.caveats_unresolved:
        yield line(f"{last.caveats_unresolved} verified with a caveat and not resolved")
    if last.unbegun:
        yield line(span(f"{last.unbegun} could not begin: results.jsonl says why", Style.BAD))
    yield line(span("in brackets: 95 % confidence (Wilson); time: the median of a task", Style.DIM))


def _format_score(one: Score) -> tuple[str, ...]:
    return (
        _format_rate(one.resolved),
        _format_rate(one.falsely_verified),
        str(one.refused),
        format_duration(one.seconds) if one.seconds else "-",
        _format_count(one.tokens),
        "-" if one.cost_usd is None else format_money(one.cost_usd),
    )


def _format_rate(rate: Rate) -> str:
    return f"{rate.count}/{rate.of} [{100 * rate.low:.0f}-{rate.high:.0%}]" if rate.of else "-"


def _format_count(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1e6 - 50 else f"{number / 1e6:.1f}M"


def _contrast(found: Comparison, names: list[str]) -> Iterator[Line]:
    yield line(f"first: {names[0]}   second: {names[1]}", hang=4)
    pair = {"first": found.first, "second": found.second}
    yield from tabulate(_HEADER, ((name, *_format_score(score)) for name, score in pair.items()))
    tasks = format_count(found.tasks, "task")
    yield line(f"{tasks}: both resolve {found.both}, neither {found.neither}")
    yield line(f"only the first: {len(found.first_only)}  {list_some(found.first_only)}", hang=4)
    yield line(f"only the second: {len(found.second_only)}  {list_some(found.second_only)}", hang=4)
    gain = found.difference
    yield line(f"resolved, paired difference: {gain.value:+.0%} [{gain.low:+.0%}, {gain.high:+.0%}]")
    words, style = "neither better nor worse", Style.PLAIN
    if found.is_worse or found.is_better:
        words, style = ("worse", Style.BAD) if found.is_worse else ("better", Style.GOOD)
    words = f"{words} by more than chance"
    yield line(span(f"the second is {words}: p = {found.p:.3f} (McNemar, exact, two-sided)", style), hang=4)
    if found.unpaired:
        yield line(span(f"without a pair, and left out: {list_some(found.unpaired)}", Style.WARN), hang=4)
