"""The first phase: the intent, the route, the surroundings, and the checks before any change."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from agentflow.checks.python import choose_interpreter
from agentflow.core.evidence import RED
from agentflow.core.languages import find_language, is_source
from agentflow.core.pending import OWN_WORDS, Consent, Pending, PendingKind
from agentflow.core.regex import regex
from agentflow.core.routing import Action, Classification
from agentflow.core.task import ChecksBeside, Excerpt, GateStatus, Intent, Status, TaskState
from agentflow.core.test_ids import find_test_files, get_test_function
from agentflow.library.instructions import load_instructions
from agentflow.memory.place import find_learnings
from agentflow.model.tiers import REPAIR
from agentflow.redact import list_some, to_one_line
from agentflow.routing.clauses import Mood, Table, split_clauses
from agentflow.routing.route import (
    classify_task,
    classify_words,
    skip_roles_before,
)
from agentflow.tools.excerpts import DEFINITION, find_definition, read_short_file
from agentflow.verdict.surface import is_check_file
from agentflow.workflow.crew import Crew
from agentflow.workflow.early_checks import describe_base, drop_slow_repair, examine, try_first, try_repair
from agentflow.workflow.gates import add_assumption, decide_gate, decide_or_suspend, make_pending, suspend_for
from agentflow.workflow.session import announce_instructions
from agentflow.workflow.task_prompt import MAX_FAILING, take_last_lines

MAX_NAMES = 30
MAX_CHANGES = 8
MAX_FILES = 3
WANTED_LINES, WANTED_CHARS = 450, 13_000
"""A source file that the task is about is shown whole up to these: each role would read it first."""
_SPELLED = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z]\w*|\w*[a-z0-9_][A-Z_]\w*|\b\w+(?=\()|(?<=`)\w+(?=`)")
"""A word that is written as a name in code."""
_BRANCH = "ref: refs/heads/"
_WORD = re.compile(r"[\w./-]*\w")
QUESTION_ID = "refine-1"
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|\n+")
_CONSTRAINT = re.compile(
    r"\b(must|mustn't|shall|never|always|only|without|except|unless|do not|don't|may not|cannot|can't|keep|"
    r"at most|at least|no more than|leave \w+ alone|not (?:change|touch|break|edit|rename|add|remove))\b",
    re.IGNORECASE,
)


async def refine(crew: Crew, task: TaskState) -> TaskState:
    """Record what is asked, the route, the surroundings, and how the checks stand before any change."""
    task = _record_start(crew, task)
    if crew.index:
        crew.index.start(crew, task)
    intent = task.intent if task.intent.goal else _find_intent(task.task, crew.table)
    task, classified = classify_task(task.replace(intent=intent), crew.table)
    crew.store.emit(classified)
    task = _clarify(crew, task)
    crew.store.save(task)
    if task.status is Status.SUSPENDED:
        return task
    if task.reads_only:
        task = await _survey(crew, task)
        return decide_gate(task, GateStatus.PASSED, "- changes nothing, so that no check is needed")
    await crew.reach()
    task = crew.checking.add_wellknown(task)
    task = await (crew.base.find_soon if crew.base else examine)(crew, task)
    task = await _survey(crew, task)
    if isinstance(task.beside, ChecksBeside) and not task.beside.is_search:
        return decide_gate(task, GateStatus.PASSED, "- the checks run beside the first role")
    message = describe_base(crew, task)
    if crew.model.name == REPAIR:
        crew.store.save(task)  # where nothing is found, the task ends here
        task = await try_repair(crew, task)
    elif crew.base is None:
        task = await try_first(crew, task)
    task = drop_slow_repair(crew, task)
    if task.is_first_try:
        task, event = skip_roles_before(task)
        crew.store.emit(event)
    return decide_gate(task, GateStatus.PASSED, message)


def _record_start(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with the tree it begins with, which is also its base unless it follows another."""
    key = "base_tree" if task.session.follows is None else "start_tree"
    tree = task.get_values([key])[key] or crew.git.write_tree()
    if task.session.left_tree and crew.git.has_tree(task.session.left_tree):
        task = note_drift(crew, task, task.session.left_tree, tree).replace(left_tree=None)
    return task.replace(**{key: tree}, tree=tree)


def note_drift(crew: Crew, task: TaskState, before: str, after: str) -> TaskState:
    """Return the task with what somebody else changed between two trees, as a conversation is told it."""
    paths = list_some(to_one_line(each.path) for each in crew.git.list_changes(before, after))
    told = f"- changed by somebody else, so Read them again: {paths}" if paths else ""
    return task.replace(since="\n".join(filter(None, (task.session.since, told))))


def _clarify(crew: Crew, task: TaskState) -> TaskState:
    if QUESTION_ID in task.waiting.answers or task.options.focus is not None:
        return _assume_answer(task)
    found = classify_words(task, crew.table)
    gap = _find_gap(task, found, crew.table)
    if gap is None:
        return task
    if crew.attended and found.action is not Action.ASSUME:
        return suspend_for(task, gap)
    return _assume_answer(decide_or_suspend(crew, task, gap, Consent.NO))


def _find_intent(text: str, table: Table) -> Intent:
    """Return a text sorted into actions, constraints and descriptions; the goal is the whole text."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    moods = {each: {clause.mood for clause in split_clauses(each, table)} for each in sentences}
    actions = [each for each in sentences if moods[each] - {Mood.STATEMENT, Mood.LIMIT}]
    limits = [each for each in sentences if _CONSTRAINT.search(each) or moods[each] == {Mood.LIMIT}]
    rest = [each for each in sentences if each not in actions]
    if limits == sentences:
        limits = []  # the goal says them already
    return Intent(
        goal=text, description="\n".join(rest), actions=_to_list(actions), constraints=_to_list(limits)
    )


def _to_list(sentences: list[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _find_gap(task: TaskState, found: Classification, table: Table) -> Pending | None:
    """Return the one question that an ambiguous text raises, its default first; None for a clear text."""
    if found.action is Action.PROCEED:
        return None
    signs = found.ambiguities
    heaviest = max(signs, key=lambda sign: table.weights[sign])
    options = (*table.readings[heaviest], f"something else, {OWN_WORDS}")
    asked = {
        "question": f"The task is not clear ({', '.join(signs)}). What is meant?",
        "options": [{"label": option, "description": ""} for option in options],
    }
    advice = {"advice": table.split_advice} if found.action is Action.SPLIT else {}
    given = {"task": task.task, **advice, "questions": [asked]}
    return make_pending(QUESTION_ID, PendingKind.QUESTION, given, options)


def _assume_answer(task: TaskState) -> TaskState:
    answer = task.waiting.answers.get(QUESTION_ID)
    if answer is None or f"- {answer.text}" in task.intent.assumptions.split("\n"):
        return task
    return add_assumption(task, answer.text)


async def _survey(crew: Crew, task: TaskState) -> TaskState:
    if task.known.surroundings or task.tree is None:
        return task
    files = crew.git.list_paths(task.tree)
    excerpts = tuple(_choose_excerpts(crew, task, files))
    shown = tuple(each.path for each in excerpts if each.lines)
    learnings = find_learnings(crew.workspace.root) if task.options.remembers else ()
    task = task.replace(
        surroundings=tuple(_describe_surroundings(crew, task, files)),
        repo_map=await crew.index.draw(crew, task, shown) if crew.index else "",
        instructions=load_instructions(crew.workspace, files, learnings),
        excerpts=excerpts,
    )
    await announce_instructions(crew, task)
    return task


def _describe_surroundings(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[str]:
    system = os.uname()
    day, machine = task.started_at[:10], f"{system.sysname} {system.machine}"
    yield f"repository: {crew.git.root}, {_describe_branch(crew.git.folders)}, {day}, {machine}"
    top = sorted({f"{head}/" if rest else head for head, _, rest in (path.partition("/") for path in files)})
    yield f"top level: {list_some(map(to_one_line, top), MAX_NAMES, ' ') or 'empty'}"
    yield f"not committed: {_describe_uncommitted(crew, task)}"
    if found := find_languages(files):
        python = choose_interpreter(crew.checking.read_repository(files)).command if "Python" in found else ""
        yield f"languages: {', '.join(found)}" + (f"; interpreter: `{python}`" if python else "")


def _describe_branch(folders: tuple[Path, ...]) -> str:
    head = ""
    with suppress(OSError, IndexError):
        head = (folders[0] / "HEAD").read_text("utf-8", "replace").strip()
    return f"branch {head.removeprefix(_BRANCH)}" if head.startswith(_BRANCH) else f"at commit {head[:12]}"


def _describe_uncommitted(crew: Crew, task: TaskState) -> str:
    if crew.git.head is None:
        return "everything, there is no commit yet"
    assert task.tree is not None
    changes = crew.git.list_changes(crew.git.head, task.tree)
    return list_some((to_one_line(f"{each.kind} {each.path}") for each in changes), MAX_CHANGES) or "nothing"


def _choose_excerpts(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[Excerpt]:
    text = f"{task.task}\n{task.intent.goal}"
    named = tuple(islice(_find_named(text, files), MAX_FILES))
    if not any(map(is_source, named)) and task.session.follows is None:
        named += tuple(islice(_find_defining(crew, task, text, files), 1))
    left = WANTED_CHARS
    for path in named:
        limits = (WANTED_LINES, left) if is_source(path) else ()
        whole = read_short_file(crew.workspace, path, *limits)
        left -= sum(map(len, whole.lines)) if whole else 0
        yield whole or Excerpt(path=path, first=1, lines=())
    if task.session.follows is None:  # what failed before the first task of a session may pass by now
        yield from (each for each in show_failing_tests(crew, task, files) if each.path not in named)


def _find_defining(crew: Crew, task: TaskState, text: str, files: tuple[str, ...]) -> Iterator[str]:
    """Yield the product files that define most names of the task, where no map tells them."""
    from agentflow.symbols.read import is_worth_indexing  # noqa: PLC0415

    names = " ".join(_SPELLED.findall(text))
    if not names or task.tree is None or is_worth_indexing(files):
        return
    sources = [path for path in files if is_source(path) and not is_check_file(task.surface, path)]
    product = crew.git.read_files(task.tree, sources, SHORT_FILE_BYTES)
    owners = _map_definitions(product)
    found = Counter(owners[name] for name in owners.keys() & _NAME.findall(names))
    yield from (path for path, _ in found.most_common())


def _find_named(text: str, files: tuple[str, ...]) -> Iterator[str]:
    words = dict.fromkeys(word.removeprefix("./") for word in _WORD.findall(text))
    by_name: dict[str, list[str]] = {}
    for path in files:
        if (name := path.rpartition("/")[2]) in words:
            by_name.setdefault(name, []).append(path)
    known = frozenset(files).intersection(words)
    for path in words:
        alike = by_name.get(path, [])
        if path in known:
            yield path
        elif len(alike) == 1 and "." in path:
            yield alike[0]


def find_languages(files: Iterable[str]) -> tuple[str, ...]:
    found = Counter(language.name for language in map(find_language, files) if language)
    return tuple(name for name, _ in found.most_common())


MAX_SHOWN = 3
_DIRECT_WEIGHT = 3
"""The weight of a file that a test itself names; one that is used indirectly has 1."""
MAX_SOURCES = 300
"""A repository with more source files is not searched for what its tests use."""
SHORT_FILE_BYTES = 200_000
SHORT_FILE_CHARS = 4_000
"""Of all quoted files together."""
_NAME = regex(r"[A-Za-z_]\w*")


def show_failing_tests(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[Excerpt]:
    """Yield tests that fail before a task, with the code they test; tests that use the least code first."""
    runs = crew.checking.find_runs(task.baseline)
    failing = sorted({test for run in runs for test in run.list_ids(*RED)})[:MAX_FAILING]
    if not failing:
        return
    sources = [path for path in files if is_source(path)]
    assert task.base_tree is not None
    is_small = len(sources) <= MAX_SOURCES
    texts = crew.git.read_files(task.base_tree, sources, SHORT_FILE_BYTES) if is_small else {}
    blocks = tuple(_quote_tests(crew, failing, _locate_tests(task, failing, files, texts)))
    product = {path: text for path, text in texts.items() if not is_check_file(task.surface, path)}
    tests = ["\n".join(block.lines) for block in blocks]
    used = find_used_files(product, tests)
    printed = "\n".join(take_last_lines(run.tail) for run in runs)
    narrow = sorted(zip(blocks, used, strict=True), key=lambda pair: len(pair[1]) or len(product))
    for block, _ in narrow[:MAX_SHOWN]:
        if not all(line.strip() in printed for line in block.lines):
            yield block
    owners = _map_definitions(product)
    likely = find_likely_files(used, [_find_defining_files(text, owners) for text in tests])
    yield from _quote_files(crew, likely, product, frozenset(_NAME.findall("\n".join(tests))))


def find_used_files(product: Mapping[str, str], tests: Iterable[str]) -> tuple[frozenset[str], ...]:
    """Return the files that each test uses, found by names that only one file defines."""
    owners = _map_definitions(product)
    uses = {path: _find_defining_files(text, owners) - {path} for path, text in product.items()}
    return tuple(_follow_uses(_find_defining_files(text, owners), uses) for text in tests)


def find_likely_files(used: Iterable[frozenset[str]], named: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """Return the files most likely at fault; a test that uses little code counts most."""
    votes = Counter[str]()
    for paths, direct in zip(used, named, strict=True):
        votes.update({path: (_DIRECT_WEIGHT if path in direct else 1) / len(paths) for path in sorted(paths)})
    most = max(votes.values(), default=0)
    return tuple(path for path, vote in votes.most_common() if vote >= most / 2)


def _quote_files(
    crew: Crew, paths: Iterable[str], product: Mapping[str, str], names: frozenset[str]
) -> Iterator[Excerpt]:
    left = SHORT_FILE_CHARS
    for path in paths:
        whole = read_short_file(crew.workspace, path)
        defined = sorted(names & _find_definitions(product[path]))
        found = (find_definition(crew.workspace, path, name) for name in defined)
        blocks = sorted((block for block in found if block), key=lambda block: block.first)
        for each in (whole,) if whole else blocks:
            left -= sum(map(len, each.lines))
            if left >= 0:
                yield each


def _locate_tests(
    task: TaskState, failing: Iterable[str], files: tuple[str, ...], texts: Mapping[str, str]
) -> Mapping[str, str]:
    known, found = set(files), find_test_files(files, failing)
    tests = {
        path: _find_definitions(text) for path, text in texts.items() if is_check_file(task.surface, path)
    }
    by_name = {name: path for path, names in tests.items() for name in names}
    places = ((test, found.get(test, "")) for test in failing)
    named = {
        test: path if path in known else by_name.get(get_test_function(test), "") for test, path in places
    }
    return {test: path for test, path in named.items() if path}


def _quote_tests(crew: Crew, failing: Iterable[str], places: Mapping[str, str]) -> Iterator[Excerpt]:
    for path, name in dict.fromkeys(
        (places[test], get_test_function(test)) for test in failing if test in places
    ):
        if block := find_definition(crew.workspace, path, name):
            yield block


def _map_definitions(product: Mapping[str, str]) -> Mapping[str, str]:
    found = [(name, path) for path, text in product.items() for name in _find_definitions(text, deep=False)]
    count = Counter(name for name, _ in found)
    return {name: path for name, path in found if count[name] == 1}


def _find_defining_files(text: str, owners: Mapping[str, str]) -> frozenset[str]:
    return frozenset(owners[name] for name in owners.keys() & _NAME.findall(text))


def _follow_uses(start: frozenset[str], uses: Mapping[str, frozenset[str]]) -> frozenset[str]:
    reached, new = start, start
    while new:
        new = frozenset(path for each in new for path in uses[each]) - reached
        reached |= new
    return reached


def _find_definitions(text: str, *, deep: bool = True) -> frozenset[str]:
    """Return the names that a text defines; unless `deep`, only those at its outermost level."""
    return frozenset(found["name"] for found in DEFINITION.finditer(text) if deep or not found["depth"])
