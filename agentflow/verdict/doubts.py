"""What the program cannot be sure of by itself, so that judges are asked about a change."""

from collections.abc import Iterator

from agentflow.core.evidence import RED, CheckName
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.verdict import ProofKind, Verdict, count_mutants, explain_caveat
from agentflow.redact import format_count, list_some
from agentflow.routing.classify import count_wishes, find_named_files, list_product
from agentflow.routing.clauses import Table
from agentflow.routing.wanted import asks_for_documents
from agentflow.symbols.read import SymbolKind, read_symbols
from agentflow.verdict.case import Case
from agentflow.workspace.git import Git

_FILE_BYTES = 1_000_000
_CONSTANT = regex(
    r"return[ \t]+"
    r"(?P<value>\"[^\"]*\"|'[^']*'|-?\d[\w.]*|[Tt]rue|[Ff]alse|None|nil|null|undefined|\[\]|\{\});?"
)


def find_doubts(
    git: Git, table: Table, task: TaskState, case: Case, verdict: Verdict | None = None
) -> tuple[str, ...]:
    """Return why judges are asked about a change; nothing where the program's own proof is enough.

    Without a verdict these are the reasons that hold whatever proves the change.
    """
    files = _list_files(git, task, case)
    return *_list_known(table, task, case, files), *_list_found(git, task, case, verdict, files)


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


def _list_found(
    git: Git, task: TaskState, case: Case, verdict: Verdict | None, files: tuple[str, ...]
) -> Iterator[str]:
    if verdict is None:
        return
    if verdict.to_approve:
        yield "the checks changed"
    for caveat in verdict.caveats:
        yield explain_caveat(caveat) or caveat
    proving = {test for each in verdict.proof if each.kind is ProofKind.FAIL_TO_PASS for test in each.tests}
    stood = {test for run in case.before for test in run.list_ids(*RED)} | {*CheckName}
    if not proving or not proving.isdisjoint(stood):
        return
    if names := _list_new_names(git, task, files):
        yield f"only tests of this change say what {list_some(names, 3)} should do"
    if places := _list_constants(git, task, case):
        yield f"only tests of this change expect the constant returned at {list_some(places, 3)}"


def _list_files(git: Git, task: TaskState, case: Case) -> tuple[str, ...]:
    """Return the files of the product that changed, in a follow-up since it began."""
    paths = dict.fromkeys(hunk.path for hunk in case.changed)
    if task.session.start_tree is None:
        return tuple(paths)
    since = {change.path for change in git.list_changes(task.session.start_tree, case.tree)}
    return tuple(path for path in paths if path in since)


def _list_constants(git: Git, task: TaskState, case: Case) -> list[str]:
    """Return where the change answers with a constant that the task does not name.

    A crash that was "fixed" by `return ""`, with a test that expects `""`, had exit code 0.
    """
    texts = git.read_files(task.trees[1], {hunk.path for hunk in case.changed}, _FILE_BYTES)
    return [
        f"{hunk.path}:{number}"
        for hunk in case.changed
        for number, line in enumerate(texts.get(hunk.path, "").split("\n"), 1)
        if hunk.line <= number <= hunk.end
        and (found := _CONSTANT.fullmatch(line.strip()))
        and found["value"] not in task.task
    ]


def _list_new_names(git: Git, task: TaskState, files: tuple[str, ...]) -> list[str]:
    """Return the public functions and classes that are new in these files."""
    sides = (
        {
            definition.name
            for path, text in git.read_files(tree, files, _FILE_BYTES).items()
            for definition in read_symbols(path, text.encode()).definitions
            if definition.kind is not SymbolKind.VALUE and not definition.is_local
        }
        for tree in (task.session.start_tree or task.trees[0], task.trees[1])
    )
    before, after = sides
    return sorted(name for name in after - before if not name.startswith("_"))


def describe_proof(git: Git, task: TaskState, case: Case, verdict: Verdict) -> tuple[str, ...]:
    """Return the facts that made the program sure of a change."""
    told, files = count_mutants(case.mutants), len(_list_files(git, task, case))
    kinds = dict.fromkeys(proof.kind.words for proof in verdict.proof)
    shown = (f"{told['killed']} of {told['tried']} mutants noticed",) if told["tried"] else tuple(kinds)
    return (*shown, format_count(files, "product file") if files else "no product file")
