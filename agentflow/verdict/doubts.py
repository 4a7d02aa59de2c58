"""What the program cannot be sure of by itself, so that judges are asked about a change."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from agentflow.core.evidence import RED
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.verdict import ProofKind, Verdict, count_mutants, explain_caveat
from agentflow.mutants.operators import Operator
from agentflow.redact import format_count, list_some
from agentflow.routing.classify import count_wishes, find_named_files, list_product
from agentflow.routing.clauses import Table
from agentflow.routing.wanted import asks_for_documents
from agentflow.verdict.case import Case
from agentflow.verdict.surface import is_check_file
from agentflow.workspace.git import Git

_FILE_BYTES = 1_000_000
_MOST = 3
_NAMED = regex(r"(?<![\w'])(['\"])(?P<quoted>[^'\"\n]+)\1(?!\w)|(?<![\w./#-])(?P<number>-?\d(?:[\w.,:]*\w)?)")
"""What a task calls by its value: in quotes, or as a number."""


def find_doubts(
    git: Git, table: Table, task: TaskState, case: Case, verdict: Verdict | None = None
) -> tuple[str, ...]:
    """Return why judges are asked about a change; nothing where the program's own proof is enough.

    Without a verdict these are the reasons that hold whatever proves the change.
    """
    files = _list_files(git, task, case)
    found = _list_found(git, task, case, verdict) if verdict else ()
    return *_list_known(table, task, case, files), *found


def _list_known(table: Table, task: TaskState, case: Case, files: tuple[str, ...]) -> Iterator[str]:
    if task.options.always_judged:
        yield "you want judges for each change"
    if task.options.wants_review:
        yield "you want a review"
    if task.routing.forced:
        yield "high risk"
    elif task.routing.review_required:
        yield f"a task of class {task.task_complexity} needs a review"
    if task.plan is not None and task.plan.acceptance:
        yield "the plan says what must hold"
    named = list_product(find_named_files(task.task, table))
    if (count := max(len(files), len(named))) > 1:
        yield f"{count} product files"
    if case.same_behaviour:
        yield "no check reads what changed: documents, comments, or the form of code"
    elif asks_for_documents(task.task):
        yield "no check reads the documents that the task asks for"
    if (wishes := count_wishes(task.task, table)) > 1:
        yield f"the task has {wishes} wishes"


def _list_found(git: Git, task: TaskState, case: Case, verdict: Verdict) -> Iterator[str]:
    if verdict.to_approve:
        yield "the checks changed"
    for caveat in verdict.caveats:
        yield explain_caveat(caveat) or caveat
    proving = {test for each in verdict.proof if each.kind is ProofKind.FAIL_TO_PASS for test in each.tests}
    red = [run for run in case.before if not run.green]
    stood = {str(run.check.name) for run in red}.union(*(run.list_ids(*RED) for run in red))
    if proving and proving.isdisjoint(stood):
        yield "only tests of this change show that it is right"
        yield from _list_unsaid(git, task)
        yield from _list_alikes(case)


def _list_unsaid(git: Git, task: TaskState) -> Iterator[str]:
    """Yield what the task names and no test says."""
    paths = git.list_paths(task.trees[1])
    tests = [path for path in paths if is_check_file(task.surface, path)]
    said = "\n".join(git.read_files(task.trees[1], tests, _FILE_BYTES).values())
    named = [found["quoted"] or found["number"] for found in _NAMED.finditer(task.task)]
    files = {part for path in paths for part in (path, PurePosixPath(path).name)}
    if unsaid := [each for each in dict.fromkeys(named) if each not in said and each not in files]:
        yield f"no test says {list_some(unsaid, _MOST)}, which the task names"


def _list_alikes(case: Case) -> Iterator[str]:
    """Yield the code that no test tells from other code which gives mostly the same."""
    found = [each for each in case.mutants if each.operator == Operator.OTHER_ALIKE and each.is_unnoticed]
    for each in found[:_MOST]:
        yield f"{each.path}:{each.line}: no test tells {each.edit.replace(' → ', ' from ', 1)}"


def _list_files(git: Git, task: TaskState, case: Case) -> tuple[str, ...]:
    """Return the files of the product that changed, in a follow-up since it began."""
    paths = dict.fromkeys(hunk.path for hunk in case.changed)
    if task.session.start_tree is None:
        return tuple(paths)
    since = {change.path for change in git.list_changes(task.session.start_tree, case.tree)}
    return tuple(path for path in paths if path in since)


def describe_proof(git: Git, task: TaskState, case: Case, verdict: Verdict) -> tuple[str, ...]:
    """Return the facts that made the program sure of a change."""
    told, files = count_mutants(case.mutants), len(_list_files(git, task, case))
    kinds = dict.fromkeys(proof.kind.words for proof in verdict.proof)
    shown = (f"{told['killed']} of {told['tried']} mutants noticed",) if told["tried"] else tuple(kinds)
    return (*shown, format_count(files, "product file") if files else "no product file")
