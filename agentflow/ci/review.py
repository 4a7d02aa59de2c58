"""A pull request verified again: what its tasks account for, the exit code, and remarks for reviewers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.api.mutation import DiffMutants
from agentflow.api.verification import VerificationRow, choose_exit, reverify_records, summarize_records
from agentflow.checks.interchange import SarifResult, make_sarif
from agentflow.core.errors import ConfigError, Exit, StateError, UsageError
from agentflow.core.languages import is_document_path
from agentflow.core.record import Record
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import MutantResult, pick_survivors
from agentflow.pages.diff import DiffBlock, FileView, JudgedAs
from agentflow.pages.markdown import escape_markdown, format_comment, format_part, to_code
from agentflow.pages.page import TaskPage, read_task_page
from agentflow.redact import format_count, spell_bytes, to_one_line
from agentflow.report.summary import describe_survivor, make_survivors_part
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.store.bundle import BUNDLE_SUFFIX, export_task, open_task
from agentflow.store.reading import is_task_id
from agentflow.verdict.case import find_hook_files, is_written_by_hooks
from agentflow.view.text import Line, Style, line, span
from agentflow.wording import describe_approvals
from agentflow.workspace.changes import EntryChange
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import write_tree_with_entries

_SUBMODULE = b"160000"
_GONE = b"0"

ModeAndId = tuple[bytes, bytes]
"""Mode and id of a file, zeros where there is none."""
Steps = Mapping[bytes, set[tuple[ModeAndId, ModeAndId]]]
"""The changes of verified tasks to each file, as its entries before and after."""


class JudgedTask(Record):
    """A task whose record was confirmed here."""

    state: TaskState
    start: str
    """The tree of the commit where the branch of the task's commit left the base."""

    @property
    def trees(self) -> tuple[str, str]:
        return self.state.base_tree or "", self.state.tree or ""


class Coverage(Record):
    uncovered: tuple[str, ...] = ()
    """They differ from the base, and not by verified tasks alone."""
    unjudged: tuple[str, ...] = ()
    """They changed after the last time that all files were judged together."""
    merged: tuple[str, ...] = ()
    """They came from the base after that time, and no task changed them."""


def find_start(git: Git, base: str, commit: str) -> str:
    """Return the tree of the commit where the branch of a commit left the base. Raises UsageError."""
    try:
        found = git.call("merge-base", "--end-of-options", base, commit).decode().strip()
        return git.call("rev-parse", f"{found}^{{tree}}").decode().strip()
    except StateError:
        hint = "fetch all of it: a checkout of a few commits does not have it (fetch-depth: 0)"
        raise UsageError(f"this clone has no commit that {base} and {commit} share", hint=hint) from None


def lay_out_tree(git: Git, tree: str) -> str:
    """Return a commit's tree as its files lie on disk: attributes convert files, submodules are folders."""
    if git.head is None:
        return tree
    others = {entry.path for entry in git.compare(tree, git.head)}
    changed = git.compare(git.head, git.write_tree())
    modules = tuple(each.path + b"/" for each in changed if each.modes[0] == _SUBMODULE)
    lines = [
        b"%s %s\t%s" % (each.modes[1] if each.modes[1].strip(b"0") else _GONE, each.blobs[1], each.path)
        for each in changed
        if (each.modes[0].strip(b"0") or each.path.startswith(modules))
        and others.isdisjoint({each.path, *(one[:-1] for one in modules if each.path.startswith(one))})
    ]
    return write_tree_with_entries(git, tree, lines) if lines else tree


def find_coverage(git: Git, start: str, head: str, tasks: Sequence[JudgedTask]) -> Coverage:
    """Return the files whose change is not led by verified tasks that began with covered files alone."""
    able = [task for task in tasks if all(map(git.has_tree, task.trees))]
    steps = defaultdict[bytes, set[tuple[ModeAndId, ModeAndId]]](set)
    for change in (change for task in able for change in git.compare(*task.trees)):
        steps[change.path].add(_get_ends(change))
    spans = ((start, head), *((task.start, task.trees[0]) for task in able))
    uncovered = {each.path for span in spans for each in git.compare(*span) if not _is_led(each, steps)}
    if not able:
        return Coverage(uncovered=_to_names(uncovered))
    own = {each.path for each in git.compare(start, head)}
    later = min((tuple(_list_later(git, task, head)) for task in able), key=len)
    merged = {path for path in later if path not in own and path not in steps}
    documents = {path for path in later if path not in merged and is_document_path(spell_bytes(path))}
    return Coverage(
        uncovered=_to_names(uncovered | documents),
        unjudged=_to_names({*later} - merged - documents),
        merged=_to_names(merged),
    )


def _get_ends(change: EntryChange) -> tuple[ModeAndId, ModeAndId]:
    before, after = zip(change.modes, change.blobs, strict=True)
    return before, after


def _is_led(change: EntryChange, steps: Steps) -> bool:
    """Return whether steps lead from the entry before a change to the one after it."""
    first, last = _get_ends(change)
    known, found = set[ModeAndId](), {first}
    while not found <= known:
        known |= found
        found = {after for before, after in steps.get(change.path, ()) if before in known}
    return last in known


def _list_later(git: Git, task: JudgedTask, head: str) -> Iterator[bytes]:
    """Yield the files that changed after a task, except logs and caches that only its hooks wrote."""
    apart = find_hook_files(task.state)
    for each in git.compare(task.trees[1], head):
        path = spell_bytes(each.path)
        if path not in apart or not is_written_by_hooks(path):
            yield each.path


def _to_names(paths: set[bytes]) -> tuple[str, ...]:
    return tuple(map(spell_bytes, sorted(paths)))


_REFS = "refs/agentflow"
_FILE = f"task{BUNDLE_SUFFIX}"
_TRAILER = re.compile(r"^Agentflow-Task: *(\S+) *$", re.MULTILINE)
_NOBODY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "agentflow"), ("EMAIL", "agentflow@localhost"), ("DATE", "@0 +0000"))
}
"""Equal records give equal commits, whoever keeps them."""
_TOLD = {
    JudgedAs.UNPROVED: ("unproved", "no test fails without these lines"),
    JudgedAs.CHECK: ("changed_check", "this changes a check; a person approved it, or it decides nothing"),
}
_DIFFERS = "not_verified"
_UNCOVERED = "uncovered"
_MERGED = "judged_before_merge"
_UNCONFIRMED = "unconfirmed"
_SURVIVED = "mutant_survived"
_RULES = {
    **dict(_TOLD.values()),
    _DIFFERS: "what the record says does not hold here",
    _UNCOVERED: "no verified task accounts for this change",
    _MERGED: "the base changed this file, and it was merged after the task was judged",
    _SURVIVED: "no test notices if this line is otherwise",
    _UNCONFIRMED: "only the record says so; look at it yourself",
}
_LATER = "this changed after the task was judged, so nothing ran on it"
_TREE = "tree"
"""The row that compares the files here with those of a single task."""
_MOST = 20
_HOLDS = "Run again here without a model: every result is as recorded."
_REFUTED = "**The record does not hold here.** What follows is what the record says."
_PARTLY = "**Only a part of this pull request is verified.** Let a person look at the rest:"
_ADVICE = "Let a person look at that, or do it as a task of its own."
Show = Callable[[Sequence[Line]], None]


class NamedTask(Record):
    """A task that a commit, or the text of a pull request, says it rests on."""

    task_id: str
    said_by: str
    """A commit's short id, or `the description`."""
    commit: str = "HEAD"


def keep_record(git: Git, task: Path) -> str:
    with make_scratch_folder() as scratch:
        written = export_task(git, task, scratch / _FILE)
        blob = git.call("hash-object", "-w", "--stdin", stdin=Path(written.path).read_bytes())
    entry = b"100644 blob " + blob.strip() + b"\t" + _FILE.encode() + b"\n"
    tree = git.call("mktree", stdin=entry).decode().strip()
    commit = git.call("commit-tree", tree, "-m", f"The record of task {task.name}", env=_NOBODY)
    ref = f"{_REFS}/{task.name}"
    git.call("update-ref", ref, commit.decode().strip())
    return ref


def find_named_tasks(git: Git, base: str, text: str) -> tuple[NamedTask, ...]:
    """Return the tasks that commits since `base` name, newest first, else the text. Raises UsageError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    try:
        since = f"{git.call(*words).decode().strip()}..HEAD"
    except StateError:
        hint = "fetch it first: a checkout of a single commit does not have it (fetch-depth: 0)"
        raise UsageError(f"this clone has no commit {base}", hint=hint) from None
    logged = git.call("log", "--topo-order", "--format=%h%x00%B%x00%x00", since).decode("utf-8", "replace")
    found: dict[str, NamedTask] = {}
    for entry in logged.split("\0\0"):
        commit, _, message = entry.strip().partition("\0")
        if task_id := _find_last(message):
            found.setdefault(task_id, NamedTask(task_id=task_id, said_by=commit, commit=commit))
    if not found and (task_id := _find_last(text)):
        return (NamedTask(task_id=task_id, said_by="the description"),)
    return tuple(found.values())


def has_record(git: Git, task: NamedTask) -> bool:
    return git.has_tree(f"{_REFS}/{task.task_id}")


def _find_last(text: str) -> str:
    named = [task_id for task_id in _TRAILER.findall(text.replace("\r", "")) if is_task_id(task_id)]
    return named[-1] if named else ""


@contextmanager
def open_record(git: Git, named: NamedTask) -> Iterator[Path]:
    """Yield the record of a task as a file, out of the ref that keeps it. Raises UsageError."""
    place = f"{_REFS}/{named.task_id}:{_FILE}"
    try:
        content = git.call("cat-file", "blob", place)
    except StateError:
        raise UsageError(
            f"{named.said_by} names the task {named.task_id}, but this clone has no record of it",
            hint=f"where the task ran: agentflow export {named.task_id} --ref && git push origin "
            f"{_REFS}/{named.task_id}; here: git fetch origin '+{_REFS}/*:{_REFS}/*'",
        ) from None
    with make_scratch_folder() as scratch:
        path = scratch / f"{named.task_id}{BUNDLE_SUFFIX}"
        path.write_bytes(content)
        yield path


class RemarkLevel(StrEnum):
    """How grave a remark is, in the words of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def list_remarks(files: Sequence[FileView], rows: Sequence[VerificationRow]) -> Iterator[SarifResult]:
    for row in rows:
        if not row.holds:
            what = to_one_line(f"{row.name}: {row.values.get('said', '')}", 500)
            yield SarifResult(rule=_DIFFERS, message=what, level=RemarkLevel.ERROR)
    for file in files:
        for block in (block for hunk in file.hunks for block in hunk.blocks):
            yield from _list_lines(file.path, block)


def list_survivors(mutants: Iterable[MutantResult]) -> Iterator[SarifResult]:
    for each in pick_survivors(mutants):
        said = to_one_line(describe_survivor(each), 500)
        level = RemarkLevel.WARNING if each.is_strong else RemarkLevel.NOTE
        yield SarifResult(rule=_SURVIVED, message=said, path=each.path, line=each.line, level=level)


def list_gaps(coverage: Coverage) -> Iterator[SarifResult]:
    for path in coverage.unjudged:
        yield SarifResult(rule=_DIFFERS, message=_LATER, path=path, level=RemarkLevel.ERROR)
    for rule, paths in ((_UNCOVERED, coverage.uncovered), (_MERGED, coverage.merged)):
        for path in (path for path in paths if path not in coverage.unjudged):
            yield SarifResult(rule=rule, message=_RULES[rule], path=path, level=RemarkLevel.WARNING)


def list_unconfirmed(task: TaskState) -> Iterator[SarifResult]:
    """Yield the approvals that only the record claims; a forger could have written them."""
    for approval in describe_approvals(task.verdict) if task.verdict else ():
        told = to_one_line(f"approved by the record's own word: {approval}", 500)
        yield SarifResult(rule=_UNCONFIRMED, message=told, level=RemarkLevel.WARNING)


def _list_lines(path: str, block: DiffBlock) -> Iterator[SarifResult]:
    is_told = any(each.is_strong for row in block.rows for each in row.survivors) and not block.note
    if block.mark not in _TOLD or is_told:  # where edits are told, each at its line, they say more
        return
    rule, message = _TOLD[block.mark]
    told = to_one_line(f"{message}; {block.note}" if block.note else message, 500)
    # the first line in the new file, or the place where old lines were taken out
    lines = (side.number for row in block.rows for side in (row.new, row.old) if side is not None)
    yield SarifResult(rule=rule, message=told, path=path, line=next(lines, 1), level=RemarkLevel.WARNING)


def to_annotation(remark: SarifResult) -> str:
    """Return a remark as a workflow command of GitHub (docs.github.com, "Workflow commands")."""
    place = f"file={_escape(remark.path, ':,')},line={max(1, remark.line)}," if remark.path else ""
    rated = "notice" if remark.level is RemarkLevel.NOTE else remark.level
    return f"::{rated} {place}title=agentflow {remark.rule}::{_escape(remark.message)}"


def _escape(text: str, more: str = "") -> str:
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def to_sarif(remarks: Sequence[SarifResult]) -> dict[str, Any]:
    return make_sarif(_RULES, (each.replace(line=max(1, each.line)) for each in remarks))


class CheckedRecord(Record):
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
    exit_code: Exit
    remarks: tuple[SarifResult, ...]
    text: str


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
    survived = (each for one in checked if one.state for each in list_survivors(one.state.mutants))
    return PullRequestReview(
        exit_code=code, remarks=(*told, *survived, *open_ends), text=_write(code, checked, open_ends)
    )


def require_killed(review: PullRequestReview, found: DiffMutants) -> PullRequestReview:
    """Return a review with the mutants of the whole pull request; it fails if a strong one survives."""
    others = (each for each in review.remarks if each.rule != _SURVIVED)
    is_worse = found.is_open and review.exit_code in (Exit.VERIFIED, Exit.CAVEAT)
    return PullRequestReview(
        exit_code=Exit.NOT_VERIFIED if is_worse else review.exit_code,
        remarks=(*others, *list_survivors(found.mutants)),
        text="\n\n".join(filter(None, (format_part(make_survivors_part(found.mutants)), review.text))),
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
    checked: Sequence[CheckedRecord], coverage: Coverage, open_ends: Sequence[SarifResult]
) -> Exit:
    if coverage.unjudged or any(choose_exit(one.rows) is not Exit.VERIFIED for one in checked):
        return Exit.NOT_VERIFIED
    recorded = {one.recorded for one in checked}
    if others := recorded - {Exit.VERIFIED, Exit.CAVEAT}:
        return min(others)
    return Exit.CAVEAT if open_ends or Exit.CAVEAT in recorded else Exit.VERIFIED


def _describe(checked: Sequence[CheckedRecord], open_ends: Sequence[SarifResult]) -> Iterator[Line]:
    yield summarize_records([row for one in checked for row in one.rows])
    for one in checked:
        if one.recorded is not Exit.VERIFIED and one.state and one.state.ending:
            reason = to_one_line(one.state.ending.reason, 500)
            said = f"{one.state.task_id} ended with {one.recorded:d}: {reason}"
            yield line(span("! ", Style.WARN), said, hang=2)
    for each in open_ends:
        style = Style.BAD if each.level is RemarkLevel.ERROR else Style.WARN
        yield line(span("! ", style), f"{each.path}: {each.message}" if each.path else each.message, hang=2)
    if open_ends:
        yield line(span(f"{format_count(len(open_ends), 'thing')} not verified. {_ADVICE}", Style.WARN))


def _write(code: Exit, checked: Sequence[CheckedRecord], open_ends: Sequence[SarifResult]) -> str:
    head = _REFUTED if code is Exit.NOT_VERIFIED else _PARTLY if open_ends else _HOLDS
    rows = []
    for each in open_ends[:_MOST]:
        place = f"{to_code(each.path)}: " if each.path else ""
        rows.append(f"- {place}{escape_markdown(each.message)}")
    if len(open_ends) > _MOST:
        rows.append(f"- and {len(open_ends) - _MOST} more")
    parts = [head, "\n".join(rows), *(format_comment(one.page) for one in checked)]
    return "\n\n".join(filter(None, parts))
