"""A pull request verified again: the records of its tasks, what they leave out, and the exit code."""

from collections.abc import Callable, Iterator, Sequence

from agentflow.api.verification import VerificationRow, choose_exit, reverify_records, summarize_records
from agentflow.ci.coverage import Coverage, JudgedTask, find_coverage, find_start, lay_out_tree
from agentflow.ci.records import NamedTask, has_record, open_record
from agentflow.ci.remarks import ReviewRemark, list_gaps, list_remarks, list_unconfirmed
from agentflow.core.errors import ConfigError, Exit
from agentflow.core.record import Record
from agentflow.core.task import Status, TaskState
from agentflow.pages.markdown import escape_markdown, format_comment, to_code
from agentflow.pages.page import TaskPage, read_task_page
from agentflow.redact import one_line
from agentflow.sandbox.run import Sandbox
from agentflow.store.bundle import open_task
from agentflow.view.text import Line, Style, line, span
from agentflow.view.words import plural
from agentflow.workspace.git import Git

_TREE = "tree"
"""The row that compares the files here with those of a single task."""
_MOST = 20
_HOLDS = "Run again here without a model: every result is as recorded."
_DIFFERS = "**The record does not hold here.** What follows is what the record says."
_PARTLY = "**Only a part of this pull request is verified.** Let a person look at the rest:"
_ADVICE = "Let a person look at that, or do it as a task of its own."

Show = Callable[[Sequence[Line]], None]


class CheckedRecord(Record):
    """The record of a task, run again."""

    rows: tuple[VerificationRow, ...]
    page: TaskPage

    @property
    def state(self) -> TaskState | None:
        return self.page.snapshot.state if self.page.snapshot else None

    @property
    def recorded(self) -> Exit:
        """The exit code of the record; 0 and 4 only with the verdict that was judged anew here."""
        state = self.state
        if state is not None and state.status in (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT):
            return Exit.VERIFIED if state.status is Status.VERIFIED else Exit.CAVEAT
        code = Exit(state.ending.exit_code) if state and state.ending else Exit.NOT_VERIFIED
        return Exit.NOT_VERIFIED if code in (Exit.VERIFIED, Exit.CAVEAT) else code


class PullRequestReview(Record):
    """The result of verifying a pull request again."""

    exit_code: Exit
    remarks: tuple[ReviewRemark, ...]
    text: str
    """In Markdown."""


def review_pull_request(
    sandbox: Sandbox, git: Git, base: str, named: Sequence[NamedTask], show: Show
) -> PullRequestReview:
    """Run the records of all named tasks again and compare what they account for with the pull request.

    The newest task needs its record; any other counts only if it has one. Raises UsageError or ConfigError.
    """
    start = lay_out_tree(git, find_start(git, base, "HEAD"))
    checked, judged = [], []
    for task in named:
        if task is not named[0] and not has_record(git, task):
            show([line(f"{task.said_by} names the task {task.task_id}, but this clone has no record of it")])
            continue
        checked.append(found := _check_record(sandbox, git, task, show))
        if found.state is not None and all(row.holds for row in found.rows):
            left = lay_out_tree(git, find_start(git, base, task.commit))
            judged.append(JudgedTask(state=found.state, start=left))
    coverage = find_coverage(git, start, lay_out_tree(git, git.head or ""), judged)
    open_ends = (*list_gaps(coverage), *(each for one in judged for each in list_unconfirmed(one.state)))
    code = _choose_code(checked, coverage, open_ends)
    show(tuple(_describe(checked, open_ends)))
    told = (each for one in checked for each in list_remarks(one.page.files, one.rows))
    return PullRequestReview(
        exit_code=code, remarks=(*told, *open_ends), text=_write(code, checked, open_ends)
    )


def _check_record(sandbox: Sandbox, git: Git, task: NamedTask, show: Show) -> CheckedRecord:
    show([line(f"{task.said_by} names the task {task.task_id}")])
    with open_record(git, task) as record, open_task(git.root, str(record)) as found:
        if found.name != task.task_id:
            raise ConfigError(f"the record of {task.task_id} is of another task, {found.name}")
        rows = []
        for row in reverify_records(sandbox, str(record)):
            if row.name != _TREE:
                rows.append(row)
                show(row.lines)
        page = read_task_page(found, git, at_work=False)
    return CheckedRecord(rows=tuple(rows), page=page)


def _choose_code(
    checked: Sequence[CheckedRecord], coverage: Coverage, open_ends: Sequence[ReviewRemark]
) -> Exit:
    if coverage.unjudged or any(choose_exit(one.rows) is not Exit.VERIFIED for one in checked):
        return Exit.NOT_VERIFIED
    recorded = {one.recorded for one in checked}
    if others := recorded - {Exit.VERIFIED, Exit.CAVEAT}:
        return min(others)
    return Exit.CAVEAT if open_ends or Exit.CAVEAT in recorded else Exit.VERIFIED


def _describe(checked: Sequence[CheckedRecord], open_ends: Sequence[ReviewRemark]) -> Iterator[Line]:
    yield summarize_records([row for one in checked for row in one.rows])
    for one in checked:
        if one.recorded is not Exit.VERIFIED and one.state and one.state.ending:
            said = (
                f"{one.state.task_id} ended with {one.recorded:d}: {one_line(one.state.ending.reason, 500)}"
            )
            yield line(span("! ", Style.WARN), said, hang=2)
    for each in open_ends:
        style = Style.BAD if each.is_error else Style.WARN
        yield line(span("! ", style), f"{each.path}: {each.message}" if each.path else each.message, hang=2)
    if open_ends:
        yield line(span(f"{plural(len(open_ends), 'thing')} not verified. {_ADVICE}", Style.WARN))


def _write(code: Exit, checked: Sequence[CheckedRecord], open_ends: Sequence[ReviewRemark]) -> str:
    """Return the review in Markdown: what is not verified, then each task."""
    head = _DIFFERS if code is Exit.NOT_VERIFIED else _PARTLY if open_ends else _HOLDS
    places = (
        (f"{to_code(each.path)}: " if each.path else "") + escape_markdown(each.message) for each in open_ends
    )
    rows = [f"- {place}" for place in places]
    more = [f"- and {len(rows) - _MOST} more"] if len(rows) > _MOST else []
    parts = [head, "\n".join((*rows[:_MOST], *more)), *(format_comment(one.page) for one in checked)]
    return "\n\n".join(filter(None, parts))
