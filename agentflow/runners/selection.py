"""Some tests of a check: its command narrowed to them, as each runner wants it."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

from agentflow.core.check_command import CommandPart, find_part, split_command
from agentflow.core.errors import InvalidInput
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.test_ids import find_id_prefix, get_test_file
from agentflow.core.tool import TestSelection
from agentflow.runners.calls import Call, join_calls, list_calls, list_ways
from agentflow.runners.python import read_python_run
from agentflow.runners.scripts import ReadFile
from agentflow.runners.table import get_form

_OR = " or "
_OPTIONS = ("-", "@")
"""Signs with which an option or a file of options begins."""
_MOST_NAMES = 50
_MOST_CHARS = 20_000
"""A command is one argument of `bash -c`."""
_MOST_ITEMS = 50
_PLACES = ("FILE", "PACKAGE", "TARGET")
_PLACEHOLDER = regex(r"\b(?:FILE|PACKAGE|LINE|NAME|FUNCTION|CLASS|METHOD|TARGET)\b")
_PLACED = regex(r"\{\} [^-\s]")
"""A line that begins with a place."""
_WIDE = regex(r"""\s(?:(['"])[^\s'"]*(?:\*|\.{3})[^\s'"]*\1|(?!-)[^\s'"]*(?:\*|\.{3})[^\s'"]*)(?=\s|$)""")
"""A word of a command that stands for many places."""
_CASE = regex(r"[\[(].*")
_SPECIAL = regex(r"[.*+?()\[\]{}|^$\\]")


def narrow(check: Check, tests: Collection[str], options: str = "") -> Check:
    """Return a check that runs only these tests; a part of an unknown runner runs whole, or not at all.

    `options` are given to pytest.
    """
    parts = check.parts
    if check.name is not CheckName.TESTS or not any(map(read_python_run, parts)):
        return check
    owned = {
        part: {test for test in tests if _owns(part, parts, test)} for part in parts if read_python_run(part)
    }
    others = {*tests}.difference(*owned.values())
    runs = [part for part in parts if owned.get(part, others)]
    is_fit = bool(runs) and not any(test.startswith(_OPTIONS) for test in tests)
    narrowed = (_narrow_part(part, owned[part], options) if part in owned else part for part in runs)
    found = check.run_parts(narrowed) if is_fit else check
    return found if len(found.command) < _MOST_CHARS else check


def narrow_quietly(check: Check, tests: Collection[str]) -> Check:
    """Return the narrowed check without pytest's tracebacks, which take as long as a short test."""
    return narrow(check, tests, " --tb=no")


def find_python_part(check: Check, path: str) -> CommandPart | None:
    """Return the part of a check that runs the Python tests in a file, or None."""
    return find_part(filter(read_python_run, check.parts), path)


def are_python_tests(check: Check, tests: Iterable[str]) -> bool:
    """Return whether a known run of Python tests, a part of a check, has each of some tests."""
    return all(
        any(read_python_run(part) and _owns(part, check.parts, test) for part in check.parts)
        for test in tests
    )


def _owns(part: CommandPart, parts: Iterable[CommandPart], test: str) -> bool:
    """Return whether a part runs a test: by its file, the innermost folder first, or as unittest names it.

    Where other runners run as well, a test of pytest is known by the ending of its file.
    """
    run, path = read_python_run(part), get_test_file(test)
    is_pytest = run is not None and run.is_pytest
    if not path.endswith(".py") and not ("::" in test and all(map(read_python_run, parts))):
        return run is not None and not is_pytest and "::" not in test and "/" not in test
    mine = find_part(filter(read_python_run, parts), path)
    return mine is not None and mine.folder == part.folder and is_pytest


def _narrow_part(part: CommandPart, tests: Collection[str], options: str) -> CommandPart:
    run = read_python_run(part)
    assert run is not None
    if run.is_pytest:
        inside = {test.removeprefix(part.folder) for test in tests}
        return part.replace(command=f"{' '.join(run.start)}{_by_file(inside)}{options}")
    named = sorted({find_id_prefix(test) or test for test in tests})
    chosen = (word for each in named for word in ("-k", shlex.quote(each)))
    return part.replace(command=" ".join((*run.start, *run.search, *chosen)))


def _by_file(tests: Collection[str]) -> str:
    inside = (test.partition("::")[2].partition("[")[0] for test in tests)
    names = sorted({each.rpartition("::")[2] for each in inside})  # one is empty where a whole file is meant
    files = "".join(f" {shlex.quote(file)}" for file in sorted({get_test_file(test) for test in tests}))
    if len(names) > _MOST_NAMES or not all(map(str.isidentifier, names)):
        return files
    return f"{files} -k {shlex.quote(_OR.join(names))}"


def read_tests(command: str) -> frozenset[str]:
    """Return what `narrow` made a command of: its tests, and each part of another runner by its text."""
    return frozenset(test for part in split_command(command) for test in _read_part(part))


def _read_part(part: CommandPart) -> Iterable[str]:
    try:
        words = shlex.split(part.command)
    except ValueError:
        return ()
    chosen = [after for word, after in pairwise(words) if word == "-k"]
    if "unittest" in words or "manage.py" in words:
        return chosen
    if "-q" not in words:
        return (part.text,)
    files = [f"{part.folder}{word}" for word in words[words.index("-q") + 1 :]]
    if not chosen:
        return files
    names = chosen[-1].split(_OR)
    return (f"{file}::{name}" for file in files[: files.index(f"{part.folder}-k")] for name in names)


def describe_one_test(check: Check) -> str:
    """Return the command for one test, with placeholders in capitals; empty for an unknown runner."""
    for part in check.parts:
        run, form = read_python_run(part), get_form(part.command).replace("TARGET ", "").format(part.command)
        if run:
            form = " ".join((*run.start, *(("FILE",) if run.is_pytest else run.search), "-k", "NAME"))
        if form:
            return part.replace(command=form).text
    return ""


class _Item(Record):
    """One thing that is asked for."""

    path: str = ""
    name: str = ""
    owner: str = ""
    """What its runner names before it, where that is no file: a package, a class, a crate."""
    target: str = ""
    """The option by which cargo builds no more than what holds it."""

    @property
    def node(self) -> str:
        """Its id in pytest; a case whose quotes no shell is given stands for all of its function."""
        name = self.name.partition("[")[0] if "'" in self.name else self.name
        return f"{self.path}::{name}" if name else self.path

    def fill(self) -> Mapping[str, str]:
        """Return what stands for the placeholders of a runner's form."""
        place, last = PurePosixPath(self.path), self.name.rpartition("::")[2]
        folder = f"./{place.parent if place.suffix else place}" if self.path else ""
        name = _SPECIAL.sub(r"\\\g<0>", (last if self.path else self.name).replace(" > ", " "))
        known = {
            "FILE": self.path,
            "PACKAGE": folder or self.owner or "./...",
            "CLASS": place.stem or self.owner or self.name.rpartition("::")[0],
            "NAME": name,
            "FUNCTION": name.partition("/")[0],
            "METHOD": _CASE.sub("", last),
            "TARGET": self.target,
        }
        return {key: value for key, value in known.items() if value}


def select_tests(
    check: Check, wanted: TestSelection, files: Collection[str], read: ReadFile
) -> tuple[Check, tuple[str, ...]]:
    """Return a check that runs only some tests, and the parts of it that run whole all the same."""
    items = [_read_id(test, files) for test in wanted.ids]
    items += [_Item(path=path) for path in wanted.paths]
    if any(text.startswith(_OPTIONS) for item in items for text in (item.path, item.name)):
        raise InvalidInput("ids and paths begin with no - or @, which a runner takes for an option")
    if wanted.pattern.startswith("-") or "'" in wanted.pattern or (wanted.pattern and wanted.ids):
        raise InvalidInput("pattern: begins with no -, has no ', and stands alone or beside paths")
    if len(items) > _MOST_ITEMS:
        raise InvalidInput(f"at most {_MOST_ITEMS} ids and paths: name a folder, or use pattern")
    if wanted == TestSelection():
        return check, ()
    parts, runs, whole = check.parts, list[CommandPart](), list[str]()
    for part in parts:
        own = [item for item in items if _takes(part, parts, item)]
        if items and not own:
            continue
        found = tuple(_select(part, own, wanted.pattern, read))
        runs += found or (part,)
        whole += () if found else (part.text,)
    if not runs:
        raise InvalidInput("no part of the tests runs these")
    return check.run_parts(runs), tuple(whole)


def _read_id(test: str, files: Collection[str]) -> _Item:
    head, _, rest = test.partition("::")
    is_place = head in files or any(file.startswith(f"{head}/") for file in files) or head.endswith(".py")
    if is_place or not rest:
        return _Item(path=head, name=rest) if is_place else _Item(name=test)
    own = any(f"/{file}".endswith(f"/tests/{head}.rs") for file in files)
    target = "--lib --bins" if "src/lib.rs" in files and " - " not in rest else ""
    return _Item(name=rest, owner=head, target=f"--test={head}" if own else target)


def _takes(part: CommandPart, parts: Collection[CommandPart], item: _Item) -> bool:
    """Return whether a part runs what is asked for: by the innermost folder, and by the language."""
    if not item.path:
        return True
    suffix = PurePosixPath(item.path).suffix
    alike = [
        each for each in parts if not suffix or bool(read_python_run(each)) == (suffix == ".py")
    ] or parts
    owner = find_part(alike, item.path)
    return owner is not None and part.folder == owner.folder and part in alike


def _select(part: CommandPart, items: list[_Item], pattern: str, read: ReadFile) -> Iterator[CommandPart]:
    """Yield what runs in place of a part; nothing where its runner takes no such selection."""
    inside = [
        item.replace(path=item.path.removeprefix(part.folder) or ".") if item.path else item for item in items
    ]
    run = read_python_run(part)
    if run and run.is_pytest:
        places = [_quote(item.node) for item in inside if item.path]
        names = [item.name.rpartition("::")[2] for item in inside if not item.path]
        chosen = ["-k", _quote(pattern or _OR.join(names))] if pattern or names else []
        yield part.replace(command=" ".join((*run.start, *places, *chosen)))
    elif run:
        names = [
            find_id_prefix(item.name) or item.name or f"*{PurePosixPath(item.path).stem}.*" for item in inside
        ]
        chosen = [word for name in ([pattern] if pattern else names) for word in ("-k", _quote(name))]
        yield part.replace(command=" ".join((*run.start, *run.search, *chosen)))
    else:
        calls = list_calls(part.command, read, part.folder)
        at = next((at for at, each in enumerate(calls) if each.runner), None)
        told = calls[at] if at is not None else Call(command=part.command)
        is_given = told.is_script and told.options is not None
        before = calls[:at] if at else ()
        for line in _fill_lines(told, inside, pattern):
            whole = f"{part.command}{told.options}" if is_given else told.command
            step = told.replace(command=_apply(line, whole))
            shown = step.command if is_given else join_calls((*before, step), part.folder)
            yield part.replace(command=shown)


def list_shorter(
    check: Check, tests: Collection[str], files: Collection[str], read: ReadFile
) -> tuple[Check, ...]:
    """Return checks that run some tests, or all, by their runners alone, then with more steps before them.

    What a script runs before the tests may be a linter or what they need; only a run shows it.
    """
    items = [_read_id(test, files) for test in sorted(tests)]
    parts, ways = check.parts, list[tuple[CommandPart, tuple[str, ...]]]()
    for part in parts:
        own = [item for item in items if _takes(part, parts, item)]
        if own or not items:
            found = list_ways(part.command, read, part.folder, partial(_narrow_call, own, part.folder))
            ways.append((part, found or (part.command,)))
    most = max((len(found) for _, found in ways), default=0)
    levels = ([part.replace(command=found[: at + 1][-1]) for part, found in ways] for at in range(most))
    shorter = dict.fromkeys(check.run_parts(level) for level in levels)
    return tuple(each for each in shorter if each != check and len(each.command) < _MOST_CHARS)


def _narrow_call(items: Collection[_Item], folder: str, call: Call) -> str:
    inside = [item.replace(path=item.path.removeprefix(folder)) for item in items]
    lines = _fill_lines(call, inside, "") if inside else []
    return _apply(lines[0], call.bare) if len(lines) == 1 else call.bare


def _fill_lines(call: Call, items: Collection[_Item], pattern: str) -> list[str]:
    """Return the form of a runner with what is asked for: one line, or one for each if it takes but one."""
    form = call.form or get_form(call.command)
    filter_ = dict.fromkeys(("NAME", "FUNCTION"), pattern) if pattern else {}
    known = [{**item.fill(), **filter_} for item in items] or [{**_Item().fill(), **filter_}]
    several = call.runner.several if call.runner else ""
    groups = [known] if several else [[each] for each in known]
    return [line for line in dict.fromkeys(_fill(form, each, several) for each in groups) if line]


def _apply(line: str, command: str) -> str:
    """Return a filled form with its command, which gives no other places, nor ends its options itself."""
    wide = _WIDE.sub("", command) if _PLACED.match(line) else command
    start, dashes, rest = wide.partition(" -- ") if " -- " in line else (wide, "", "")
    return line.format(start) + (f" {rest}" if dashes else "")


def _quote(text: str) -> str:
    """Return a word in single quotes, of which it has none itself: later edits of the command rely on it."""
    return shlex.quote(text.replace("'", "."))


def _fill(form: str, items: Collection[Mapping[str, str]], several: str = "") -> str:
    """Return a form with what is known of each; words that need more are cut, or go with their option."""
    words, is_filled = list[str](), False
    for word in form.split():
        if not _PLACEHOLDER.search(word):
            words.append(word)
            continue
        texts = dict.fromkeys(text for each in items if (text := _fill_word(word, each)))
        option = words[-1] if words and words[-1].startswith("-") and words[-1] != "--" else ""
        is_place = word in _PLACES
        if not texts or (len(texts) > _MOST_NAMES and not is_place):
            words[len(words) - bool(option) :] = []
            continue
        is_filled = True
        start = word[: word.find("=") + 1]
        if several.strip() and not is_place:
            joined = several.join(text.removeprefix(start) for text in texts)
            texts = {f"{start}{joined}": None}
        quoted = (_quote(text) if word != "TARGET" else text for text in texts)
        for at, text in enumerate(each.replace("{", "{{").replace("}", "}}") for each in quoted):
            words += [option, text] if option and at else [text]
    return " ".join(words) if is_filled else ""


def _fill_word(word: str, known: Mapping[str, str]) -> str:
    lacking = next((name for name in _PLACEHOLDER.findall(word) if name not in known), None)
    kept = word.partition(lacking)[0].rstrip(":#.") if lacking else word
    return _PLACEHOLDER.sub(lambda found: known[found[0]], kept) if _PLACEHOLDER.search(kept) else ""
