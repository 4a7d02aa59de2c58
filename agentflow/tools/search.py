"""Glob and Grep: files by name and lines by expression, with three engines that give the same answer.

The language of patterns is that of Python's `re`, whichever engine runs: ripgrep and git only find the lines
faster, are asked only what they read the same way, and what they find is matched once more.
"""

import bisect
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from shutil import which
from typing import Annotated, Literal

from msgspec import Meta, field

from agentflow.core.errors import InvalidInput
from agentflow.core.ports import Workspace
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob, regex
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.process import capture
from agentflow.redact import redact_text
from agentflow.tools.files import SNIFFED
from agentflow.workspace.path_guard import compose, is_hidden, offer_near

MAX_PATHS = 200
MAX_RESULTS = 100
MAX_TEXT = 500
"""A longer line is cut when shown."""

Pattern = Annotated[str, Meta(min_length=1)]
Where = Annotated[str, Meta(min_length=1)]
_SUBJECTS = {"pattern": Subject.TEXT, "path": Subject.PATH}
_RIPGREP = (
    *("rg", "--no-config", "--no-heading", "--color=never", "--with-filename", "--line-number", "--null"),
    *("--text", "--crlf", "--encoding=none"),
)
_GIT = ("git", "--literal-pathspecs", "-c", "core.fsmonitor=false")
_UNTRACKED = ("--untracked", "--exclude-standard")
_GREP = (
    *("grep", "--no-color", "--no-column", "--no-heading", "--no-break", "--no-full-name", "--no-textconv"),
    *("--no-recurse-submodules", "--text", "--line-number", "--null", "--perl-regexp"),
)
_GIT_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
_UNICODE_AND_CRLF = "(*UCP)(*ANYCRLF)"
_UNSHARED = regex(
    r"\(\?(?!:|P<|i\))"  # looking around, flags, references by name, conditions
    r"|\\[AZnr1-9<>]|\{,|[\n\r\0]"  # ends of the text, references, what engines read differently
    r"|\[[^\]]*(?:\[|&&|--|~~)"  # operators on sets, which only Rust has
)
_POSIX_CLASS = regex(r"\[:\w+:\]")
_FOUND = regex(rb"([^\0]+)\0(\d+)[:\0]([^\n]*)\n?")
_LINE_END = regex(r"\r+(?=\n|\Z)")
BATCH_BYTES = 500_000
"""Names handed to one process; systems take at least twice that."""
FoundPlace = tuple[str, int]
"""A path and the number of a line."""


class GlobInput(Record):
    pattern: Pattern
    path: Where = "."


class Query(Record):
    """A search: the pattern, and the places to look in."""

    workspace: Workspace
    regex: re.Pattern[str]
    paths: re.Pattern[str] = re.compile(".*", re.DOTALL)
    below: str = "."
    multiline: bool = False

    @property
    def is_shared(self) -> bool:
        """Return whether all engines read the pattern the same way."""
        return not self.multiline and not _UNSHARED.search(self.regex.pattern)

    @property
    def is_one_file(self) -> bool:
        return os.path.isfile(_full(self, self.below))  # noqa: PTH113  # as elsewhere here: strings, for speed

    def list_files(self) -> Iterable[str]:
        """Return the files to search; one that is named is searched even if git ignores it."""
        if self.is_one_file:
            return (self.below,)
        named = (
            path for path in self.workspace.list_files(self.below) if self.paths.fullmatch(compose(path))
        )
        # what a link leads to is searched itself, or is no text of this repository: a device, another folder
        return (path for path in named if not os.path.islink(_full(self, path)))  # noqa: PTH114


class FoundLine(Record):
    path: str
    number: int
    text: str


Engine = Callable[[Query], tuple[FoundLine, ...] | None]
"""Returns the lines that match, by path and number, or None when it cannot tell."""


class GrepInput(Record):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Where = "."
    glob: str | None = None
    output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches"
    ignore_case: bool = field(default=False, name="-i")
    line_numbers: Annotated[bool, Meta(extra_json_schema={"deprecated": True})] = field(
        default=True, name="-n"
    )
    """A public key that nobody needs to be told of: lines are numbered anyway."""
    head_limit: Annotated[int, Meta(ge=1)] = MAX_RESULTS
    multiline: bool = False


def glob(wanted: GlobInput, context: ToolContext) -> Output:
    """List files by name; a pattern without a slash matches at any depth."""
    below = _require_existing(wanted.path, context)
    prefix = "" if below == "." else f"{below}/"
    pattern = compile_glob(compose(wanted.pattern.removeprefix(f"{context.workspace.root}/")))
    files = context.workspace.list_files(below)
    found = [path for path in files if pattern.fullmatch(compose(path.removeprefix(prefix)))]
    return _to_output(found, MAX_PATHS, "no files match")


def grep(wanted: GrepInput, context: ToolContext) -> Output:
    """Search lines by a regular expression; not in ignored files."""
    query = Query(
        workspace=context.workspace,
        regex=compile_regex(wanted.pattern, ignore_case=wanted.ignore_case, multiline=wanted.multiline),
        paths=compile_glob(compose(wanted.glob or "**")),
        below=_require_existing(wanted.path, context),
        multiline=wanted.multiline,
    )
    return _to_output(_in_mode(wanted, find_lines(query)), wanted.head_limit, "no matches")


GLOB = Tool(
    name="Glob", category=Category.FS, effect=Effect.READ, input=GlobInput, call=glob, subjects=_SUBJECTS
)


GREP = Tool(
    name="Grep", category=Category.FS, effect=Effect.READ, input=GrepInput, call=grep, subjects=_SUBJECTS
)


def _require_existing(path: str, context: ToolContext) -> str:
    below = context.workspace.to_relative(path)
    place = context.workspace.root / below
    if not place.exists():
        raise InvalidInput(f"{path}: no such file or folder{offer_near(context.workspace, below)}")
    if not place.is_dir():
        with context.workspace.open(below):
            pass  # whoever names a file that may not be opened is told why
    return below


def _in_mode(wanted: GrepInput, found: tuple[FoundLine, ...]) -> list[str]:
    counts = Counter(line.path for line in found)
    match wanted.output_mode:
        case "files_with_matches":
            return list(counts)
        case "count":
            return [f"{path}:{count}" for path, count in counts.items()]
        case "content":
            return [_line(line, numbered=wanted.line_numbers) for line in found]


def _line(line: FoundLine, *, numbered: bool) -> str:
    text = line.text if len(line.text) <= MAX_TEXT else f"{line.text[:MAX_TEXT]}…"
    return f"{line.path}:{line.number}:{text}" if numbered else f"{line.path}:{text}"


def _to_output(results: Sequence[str], limit: int, nothing: str) -> Output:
    if not results:
        return Output(content=nothing)
    rest = len(results) - limit
    more = (f"[{rest} more left out; narrow the search]",) if rest > 0 else ()
    return Output(content="\n".join((*results[:limit], *more)))


def compile_regex(pattern: str, *, ignore_case: bool = False, multiline: bool = False) -> re.Pattern[str]:
    """Return a pattern ready to use. Raises InvalidInput."""
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    if multiline:
        flags |= re.MULTILINE | re.DOTALL
    if found := _POSIX_CLASS.search(pattern):
        raise InvalidInput(
            f"pattern: {found.group()} is not known here; use \\w, \\d, \\s or a set such as [a-z]"
        )
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(f"pattern is not a regular expression: {error}") from None


def run_ripgrep(query: Query) -> tuple[FoundLine, ...] | None:
    if not query.is_shared or which("rg") is None:
        return None
    case = ("--ignore-case",) if query.regex.flags & re.IGNORECASE else ()
    found: list[FoundPlace] = []
    for names in split_batches(query.list_files()):
        said = capture((*_RIPGREP, *case, "-e", query.regex.pattern, "--", *names), cwd=query.workspace.root)
        if said.returncode not in {0, 1}:
            return None
        found.extend(_parse_output(said.stdout))
    return _confirm(query, found)


def run_git_grep(query: Query) -> tuple[FoundLine, ...] | None:
    if not query.is_shared or query.is_one_file:
        return None
    # a search that includes untracked files leaves out those that are ignored and tracked all the same
    forced = _git(query, "ls-files", "-ci", "--exclude-standard", "-z", "--", query.below) or b""
    names = (os.fsdecode(name) for name in forced.split(b"\0") if name)
    searches = ((*_UNTRACKED, "--", query.below), *(("--", *batch) for batch in split_batches(names)))
    case = ("--ignore-case",) if query.regex.flags & re.IGNORECASE else ()
    pattern = _UNICODE_AND_CRLF + query.regex.pattern
    found: list[FoundPlace] = []
    for search in searches:
        said = _git(query, *_GREP, *case, "-e", pattern, *search)
        if said is None:
            return None
        found.extend(place for place in _parse_output(said) if not is_hidden(place[0]))
    return _confirm(query, (place for place in found if query.paths.fullmatch(compose(place[0]))))


def _git(query: Query, *arguments: str) -> bytes | None:
    said = capture((*_GIT, *arguments), cwd=query.workspace.root, env=_GIT_ENVIRONMENT)
    return said.stdout if said.returncode in {0, 1} else None


def run_python_re(query: Query) -> tuple[FoundLine, ...]:
    quick = re.compile(query.regex.pattern, query.regex.flags | re.MULTILINE) if query.is_shared else None
    found: list[FoundLine] = []
    for path in query.list_files():
        text = _text(query, path)
        if text is None or (quick is not None and not quick.search(text)):
            continue
        texts = _texts(text)
        single = (index for index, line in enumerate(texts) if query.regex.search(line))
        hits = _find_spanned_lines(query, texts, text) if query.multiline else single
        found.extend(FoundLine(path=path, number=hit + 1, text=texts[hit]) for hit in hits)
    return tuple(sorted(found, key=lambda line: (line.path, line.number)))


ENGINES: tuple[Engine, ...] = (run_ripgrep, run_git_grep, run_python_re)


def find_lines(query: Query) -> tuple[FoundLine, ...]:
    """Return the lines that match, from the fastest engine that can tell."""
    answers = (engine(query) for engine in ENGINES)
    return next(answer for answer in answers if answer is not None)


def split_batches(names: Iterable[str], limit: int = BATCH_BYTES) -> Iterator[list[str]]:
    """Yield the names in lists short enough for one command line; none can be read as an option."""
    batch: list[str] = []
    size = 0
    for name in names:
        batch.append(f"./{name}")
        size += len(os.fsencode(name)) + 16
        if size >= limit:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_output(output: bytes) -> Iterator[FoundPlace]:
    for name, number, _ in _FOUND.findall(output):
        yield os.fsdecode(name).removeprefix("./"), int(number)


def _confirm(query: Query, found: Iterable[FoundPlace]) -> tuple[FoundLine, ...]:
    """Return the lines that Python's `re` matches too, read again from the files.

    The output of an engine is not used, as it may have followed a link that was swapped in.
    """
    places: dict[str, set[int]] = {}
    for path, number in found:
        places.setdefault(path, set()).add(number)
    agreed: list[FoundLine] = []
    for path in sorted(places):
        texts = dict(enumerate(_texts(_text(query, path) or ""), 1))
        known = (number for number in sorted(places[path]) if number in texts)
        found_too = (number for number in known if query.regex.search(texts[number]))
        agreed.extend(FoundLine(path=path, number=number, text=texts[number]) for number in found_too)
    return tuple(agreed)


def _full(query: Query, path: str) -> str:
    return f"{query.workspace.root}/{path}"


def _text(query: Query, path: str) -> str | None:
    content = query.workspace.peek(path)
    if content is None or b"\0" in content[:SNIFFED]:
        return None
    text = redact_text(content.decode("utf-8", "replace"))
    return _LINE_END.sub("", text) if "\r" in text else text


def _texts(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _find_spanned_lines(query: Query, texts: list[str], text: str) -> list[int]:
    starts = list(accumulate((len(line) + 1 for line in texts[:-1]), initial=0))
    touched: set[int] = set()
    for found in query.regex.finditer(text) if texts else ():
        first = bisect.bisect_right(starts, found.start()) - 1
        last = bisect.bisect_right(starts, max(found.start(), found.end() - 1)) - 1
        touched.update(range(first, last + 1))
    return sorted(touched)
