"""Failing tests as a brief shows them: their own lines, and the short files that are likely at fault."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agentflow.core.evidence import RED
from agentflow.core.languages import is_source
from agentflow.core.regex import regex
from agentflow.core.task import Excerpt, TaskState
from agentflow.tools.excerpts import DEFINITION, block_of, short_file
from agentflow.verdict.surface import belongs
from agentflow.verdict.target_tests import find_test_files
from agentflow.workflow.crew import Crew
from agentflow.workflow.task_prompt import MAX_FAILING, last_lines

MAX_SHOWN = 3
_NAMED = 3
"""How much more a file counts that a test itself names than one that is only used behind it."""
MAX_SOURCES = 300
"""In a repository of more files nobody looks for what the tests use."""
MAX_BYTES = 200_000
MAX_CHARS = 4_000
"""Of all files that are shown for what they define."""
_NAME = regex(r"[A-Za-z_]\w*")


def show_failing_tests(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[Excerpt]:
    """Yield tests that fail before a task, those of the least code first, and what they test."""
    runs = crew.checking.runs(task.baseline)
    failing = sorted({test for run in runs for test in run.ids(*RED)})[:MAX_FAILING]
    if not failing:
        return
    texts = _sources(crew, task, files)
    blocks = tuple(_blocks(crew, failing, _places(task, failing, files, texts)))
    product = {path: text for path, text in texts.items() if not belongs(task.surface, path)}
    tests = ["\n".join(block.lines) for block in blocks]
    used = find_used_files(product, tests)
    printed = "\n".join(last_lines(run.tail) for run in runs)
    narrow = sorted(zip(blocks, used, strict=True), key=lambda pair: len(pair[1]) or len(product))
    for block, _ in narrow[:MAX_SHOWN]:
        if not all(line.strip() in printed for line in block.lines):
            yield block
    owners = _owners(product)
    likely = find_likely_files(used, [_files_behind(text, owners) for text in tests])
    yield from _show(crew, likely, product, frozenset(_NAME.findall("\n".join(tests))))


def find_used_files(product: Mapping[str, str], tests: Iterable[str]) -> tuple[frozenset[str], ...]:
    """Return for each test the files whose code it uses, by names that only one file defines."""
    owners = _owners(product)
    uses = {path: _files_behind(text, owners) - {path} for path, text in product.items()}
    return tuple(_follow_uses(_files_behind(text, owners), uses) for text in tests)


def find_likely_files(used: Iterable[frozenset[str]], named: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """Return the files that failing tests point at, by what each uses and what of it the test itself names.

    A test that uses little code says the most.
    """
    votes = Counter[str]()
    for paths, direct in zip(used, named, strict=True):
        votes.update({path: (_NAMED if path in direct else 1) / len(paths) for path in sorted(paths)})
    most = max(votes.values(), default=0)
    return tuple(path for path, vote in votes.most_common() if vote >= most / 2)


def _show(
    crew: Crew, paths: Iterable[str], product: Mapping[str, str], names: frozenset[str]
) -> Iterator[Excerpt]:
    """Yield short files whole, and of longer ones the definitions of these names, as far as there is room."""
    left = MAX_CHARS
    for path in paths:
        whole = short_file(crew.workspace, path)
        defined = sorted(names & _definitions(product[path]))
        found = (block_of(crew.workspace, path, name) for name in defined)
        blocks = sorted((block for block in found if block), key=lambda block: block.first)
        for each in (whole,) if whole else blocks:
            left -= sum(map(len, each.lines))
            if left >= 0:
                yield each


def _sources(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Mapping[str, str]:
    """Return the source files of a small repository with their texts."""
    paths = [path for path in files if is_source(path) and "\n" not in path]
    if len(paths) > MAX_SOURCES:
        return {}
    objects = [f"{task.base_tree}:{path}" for path in paths]
    return dict(zip(paths, crew.git.texts(objects, MAX_BYTES), strict=True))


def _places(
    task: TaskState, failing: Iterable[str], files: tuple[str, ...], texts: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the file of each test: the one that its id names, or one of the tests that defines its name."""
    known, found = set(files), find_test_files(files, failing)
    tests = {path: _definitions(text) for path, text in texts.items() if belongs(task.surface, path)}
    by_name = {name: path for path, names in tests.items() for name in names}
    places = ((test, found.get(test, "")) for test in failing)
    named = {test: path if path in known else by_name.get(_name_of(test), "") for test, path in places}
    return {test: path for test, path in named.items() if path}


def _name_of(test: str) -> str:
    """Return what a test is called where it is defined."""
    return re.split(r"::|\.", test.partition("[")[0])[-1]


def _blocks(crew: Crew, failing: Iterable[str], places: Mapping[str, str]) -> Iterator[Excerpt]:
    for path, name in dict.fromkeys((places[test], _name_of(test)) for test in failing if test in places):
        if block := block_of(crew.workspace, path, name):
            yield block


def _owners(product: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names that exactly one file defines at its outermost level, each with the file."""
    found = [(name, path) for path, text in product.items() for name in _definitions(text, deep=False)]
    count = Counter(name for name, _ in found)
    return {name: path for name, path in found if count[name] == 1}


def _files_behind(text: str, owners: Mapping[str, str]) -> frozenset[str]:
    return frozenset(owners[name] for name in owners.keys() & _NAME.findall(text))


def _follow_uses(start: frozenset[str], uses: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return files with all that they use, and what that uses in turn."""
    reached, new = start, start
    while new:
        new = frozenset(path for each in new for path in uses[each]) - reached
        reached |= new
    return reached


def _definitions(text: str, *, deep: bool = True) -> frozenset[str]:
    """Return the names that a text defines, also deeper ones or only those that are not indented."""
    return frozenset(found["name"] for found in DEFINITION.finditer(text) if deep or not found["depth"])
