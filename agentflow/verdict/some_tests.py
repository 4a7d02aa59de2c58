"""Some tests of a repository by its own check command: how the command is narrowed, and what failed."""

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentflow.checks.run import CheckWatch, Shown, execute
from agentflow.checks.runners import ReadFile, find_script, get_form
from agentflow.core.check_command import (
    PYTEST,
    CommandPart,
    find_part,
    format_command,
    join_parts,
    split_command,
)
from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.evidence import RED, Check, CheckName, describe_counts
from agentflow.core.ports import Workspace
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.test_ids import find_id_prefix
from agentflow.core.tool import TestSelection, TestsRun
from agentflow.redact import list_some, strip_colours
from agentflow.sandbox.environment import find_build_cache
from agentflow.sandbox.run import Sandbox, guess_reason
from agentflow.verdict.checking import Checking
from agentflow.verdict.target_tests import UNITTEST

_MOST_ITEMS = 50
_SAID_LINES, _SAID_CHARS = 8, 600
"""Of one failure."""
_PLACEHOLDER = regex(r"\b(?:FILE|FOLDER|LINE|NAME|CLASS|METHOD)\b")
_SPECIAL = regex(r"[.*+?()\[\]{}|^$\\]")
_SEPARATOR = regex(r"&&|\|\||[;|]")
_BLOCK = regex(
    r"(?m)^(?:(?:FAIL|ERROR): \S+ \((?P<dotted>[\w.]+)\).*|---- (?P<cargo>\S.*?) stdout ----"
    r"|(?:=== (?:RUN|NAME|CONT) +| *--- FAIL: )(?P<go>\S+).*|(?P<line>[=-]{70})"
    r"|Ran \d+ tests?.*|failures:| *--- .*|test result: .*|(?:FAIL|PASS|ok)(?:\t.*)?)$\n?"
)
"""Where the output of a runner that writes no report begins to speak of a test, or of something else."""
_PLACE = regex(r"(?P<path>[\w./@+-]+\.\w+)(?:\", line |:|\()(?P<line>\d+)")
_NOISE = regex(r"(?m)^(?:\s+at .*|Traceback .*|\s+File \".*|note: .*|thread .* panicked at .*|\s+\^+)\n?")
_PYTEST_LINE = regex(r"(?m)^[>E]   .*")


class _Item(Record):
    """One thing that is asked for."""

    path: str = ""
    name: str = ""

    @property
    def node(self) -> str:
        """Its id in pytest; a case whose quotes no shell is given stands for all of its function."""
        name = self.name.partition("[")[0] if "'" in self.name else self.name
        return f"{self.path}::{name}" if name else self.path

    def fill(self) -> Mapping[str, str]:
        """Return what stands for the placeholders of a runner's form."""
        place, last = PurePosixPath(self.path), self.name.rpartition("::")[2]
        known = {
            "FILE": self.path,
            "FOLDER": str(place.parent if place.suffix else place) if self.path else "...",
            "CLASS": place.stem or self.name.rpartition("::")[0],
            "NAME": _SPECIAL.sub(r"\\\g<0>", (last if self.path else self.name).replace(" > ", " ")),
            "METHOD": last,
        }
        return {key: value for key, value in known.items() if value}


class SomeTests(Record):
    """Runs some tests of a task on the files as they are now; nothing that they write stays."""

    checking: Checking
    sandbox: Sandbox
    task: TaskState
    workspace: Workspace

    def __call__(self, wanted: TestSelection, sink: Path, cancelled: Callable[[], bool]) -> TestsRun:
        """Run them; their output goes to `sink`. Raises ToolError where they cannot run."""
        sandbox, files = self.sandbox, self.workspace.list_files()
        required = self.checking.require(self.task, files)
        check = next((check for check in required if check.name is CheckName.TESTS), None)
        if check is None or check.missing:
            raise NotAllowed(f"the tests cannot run here: {check.missing if check else 'no tests found'}")
        read = self.checking.read_repository(files).read
        narrowed, whole = select_tests(check, wanted, frozenset(files), read)
        cache = sandbox.build_cache or find_build_cache(sandbox.root, os.environ)
        watch = CheckWatch(cancelled=cancelled)
        shown = execute(narrowed, sandbox.replace(build_cache=cache), sink, watch=watch)
        failures = describe_failures(shown, sink.read_text("utf-8", "replace"), sandbox)
        before = {test for run in self.checking.find_runs(self.task.baseline) for test in run.list_ids(*RED)}
        old = sorted(failures.keys() & before)
        why = guess_reason(sandbox, shown.execution.tail) if shown.execution.exit_code else ""
        counted = describe_counts(shown.counts) if shown.counts else "no count"
        remarks = (
            *(f"cannot be narrowed, so all of it ran: {command}" for command in whole),
            f"failed before the task too: {list_some(old)}" if old else "",
            why,
            *shown.execution.notes,
        )
        return TestsRun(
            execution=shown.execution,
            summary=f"{counted}: {format_command(narrowed.command)}",
            failures=failures,
            remarks=tuple(filter(None, remarks)),
        )


def select_tests(
    check: Check, wanted: TestSelection, files: Collection[str], read: ReadFile
) -> tuple[Check, tuple[str, ...]]:
    """Return a check that runs only some tests, and the parts of it that run whole all the same."""
    items = [_read_id(test, files) for test in wanted.ids]
    items += [_Item(path=path) for path in wanted.paths]
    if any(text.startswith(("-", "@")) for item in items for text in (item.path, item.name)):
        raise InvalidInput("ids and paths begin with no - or @, which a runner takes for an option")
    if wanted.pattern.startswith("-") or "'" in wanted.pattern or (wanted.pattern and wanted.ids):
        raise InvalidInput("pattern: begins with no -, has no ', and stands alone or beside paths")
    if len(items) > _MOST_ITEMS:
        raise InvalidInput(f"at most {_MOST_ITEMS} ids and paths: name a folder, or use pattern")
    if wanted == TestSelection():
        return check, ()
    parts, runs, whole = split_command(check.command), list[CommandPart](), list[str]()
    for part in parts:
        own = [item for item in items if _takes(part, parts, item)]
        if items and not own:
            continue
        found = tuple(_narrow(part, own, wanted.pattern, read))
        runs += found or (part,)
        whole += () if found else (part.text,)
    if not runs:
        raise InvalidInput("no part of the tests runs these")
    return check.replace(command=join_parts(runs)), tuple(whole)


def _read_id(test: str, files: Collection[str]) -> _Item:
    head, _, rest = test.partition("::")
    is_place = head in files or any(file.startswith(f"{head}/") for file in files) or head.endswith(".py")
    return _Item(path=head, name=rest) if is_place else _Item(name=rest or test)


def _takes(part: CommandPart, parts: Collection[CommandPart], item: _Item) -> bool:
    """Return whether a part runs what is asked for: by the innermost folder, and by the language."""
    if not item.path:
        return True
    suffix = PurePosixPath(item.path).suffix
    alike = [each for each in parts if not suffix or _is_python(each) == (suffix == ".py")] or parts
    owner = find_part(alike, item.path)
    return owner is not None and part.folder == owner.folder and part in alike


def _is_python(part: CommandPart) -> bool:
    return bool(PYTEST.fullmatch(part.command) or UNITTEST.fullmatch(part.command))


def _narrow(part: CommandPart, items: list[_Item], pattern: str, read: ReadFile) -> Iterator[CommandPart]:
    """Yield what runs in place of a part; nothing where its runner takes no such selection."""
    inside = [
        item.replace(path=item.path.removeprefix(part.folder) or ".") if item.path else item for item in items
    ]
    if found := PYTEST.fullmatch(part.command):
        places = [_quote(item.node) for item in inside if item.path]
        names = [item.name.rpartition("::")[2] for item in inside if not item.path]
        chosen = f" -k {_quote(pattern or ' or '.join(names))}" if pattern or names else ""
        yield part.replace(command=f"{' '.join([found['start'].strip(), *places])}{chosen}")
    elif found := UNITTEST.fullmatch(part.command):
        names = [
            find_id_prefix(item.name) or item.name or f"*{PurePosixPath(item.path).stem}.*" for item in inside
        ]
        chosen = "".join(f" -k {_quote(name)}" for name in ([pattern] if pattern else names))
        yield part.replace(command=f"{found['start']} {found['search'].rstrip()}{chosen}")
    else:
        body, separator = find_script(part.command, read, part.folder) or (part.command, "")
        form = get_form(_SEPARATOR.split(body)[-1]) or get_form(part.command)
        is_script = body != part.command and "{} --" not in form
        command = part.command + (separator if is_script else "")
        filter_ = {"NAME": pattern} if pattern else {}
        known = [{**item.fill(), **filter_} for item in inside] or [{**_Item().fill(), **filter_}]
        lines = (_fill(form, each) for each in known)
        yield from (part.replace(command=line.format(command)) for line in dict.fromkeys(lines) if line)


def _quote(text: str) -> str:
    """Return a word in single quotes, of which it has none itself: later edits of the command rely on it."""
    return shlex.quote(text.replace("'", "."))


def _fill(form: str, known: Mapping[str, str]) -> str:
    """Return a form with what is known; words that need more are cut there, or left out with their option."""
    words, is_filled = list[str](), False
    for word in form.split():
        names = _PLACEHOLDER.findall(word)
        lacking = next((name for name in names if name not in known), None)
        kept = word.partition(lacking)[0].rstrip(":#.") if lacking else word
        if names and not _PLACEHOLDER.search(kept):
            if words and words[-1].startswith("-") and words[-1] != "--":
                words.pop()
            continue
        is_filled = is_filled or bool(names)
        text = _PLACEHOLDER.sub(lambda found: known[found[0]], kept)
        words.append(_quote(text).replace("{", "{{").replace("}", "}}") if names else word)
    return " ".join(words) if is_filled else ""


def describe_failures(shown: Shown, output: str, sandbox: Sandbox) -> dict[str, str]:
    """Return place and assertion of each test that failed, by its id."""
    red, printed = sorted(shown.list_ids(*RED)), _list_printed(output)
    found = dict[str, str]()
    for test in red:
        said = shown.failures.get(test) or next(
            (text for name, text in printed.items() if test == name or test.endswith(f"::{name}")), ""
        )
        said = said.replace(f"{sandbox.place}/", "").replace(f"{sandbox.root}/", "")
        found[test] = _describe(test, strip_colours(said), sandbox.folders)
    return found


def _list_printed(output: str) -> dict[str, str]:
    blocks = list(_BLOCK.finditer(output))
    found, name = dict[str, str](), ""
    ends = [each.start() for each in blocks[1:]] + [len(output)]
    for block, end in zip(blocks, ends, strict=False):
        name = name if block["line"] else block["dotted"] or block["cargo"] or block["go"] or ""
        if name:
            found[name] = found.get(name, "") + output[block.end() : end]
    return found


def _describe(test: str, said: str, folders: Iterable[Path]) -> str:
    found = (
        place for place in _PLACE.finditer(said) if any((each / place["path"]).is_file() for each in folders)
    )
    places = [f"{place['path']}:{place['line']}" for place in found]
    is_python = ".py" in test or 'File "' in said  # which tells the most recent call last
    lines = _PYTEST_LINE.findall(said) or _NOISE.sub("", said).splitlines()
    kept = [" ".join(line.split()) for line in lines if line.strip()][:_SAID_LINES]
    return "\n".join((*places[-1 if is_python else 0 :][:1], *kept))[:_SAID_CHARS]
