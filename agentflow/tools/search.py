"""Glob and Grep."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, field

from agentflow.core.errors import InvalidInput
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.tools.engines import Line, Query, compiled, lines
from agentflow.workspace.globs import compile_glob

MAX_PATHS = 200
MAX_RESULTS = 100
MAX_TEXT = 500
"""A longer line is cut when shown."""

Pattern = Annotated[str, Meta(min_length=1, description="Such as `src/**/*.py`.")]
Where = Annotated[str, Meta(min_length=1)]


class GlobInput(Record):
    pattern: Pattern
    path: Where = "."


class GrepInput(Record):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Where = "."
    glob: Annotated[str | None, Meta(description="Only these files.")] = None
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
    below = _existing(wanted.path, context)
    prefix = "" if below == "." else f"{below}/"
    pattern = compile_glob(wanted.pattern.removeprefix(f"{context.workspace.root}/"))
    found = [path for path in context.workspace.files(below) if pattern.fullmatch(path.removeprefix(prefix))]
    return _shown(found, MAX_PATHS, "no files match")


def grep(wanted: GrepInput, context: ToolContext) -> Output:
    """Search lines by a regular expression; ignored and binary files are left out."""
    query = Query(
        workspace=context.workspace,
        regex=compiled(wanted.pattern, ignore_case=wanted.ignore_case, multiline=wanted.multiline),
        paths=compile_glob(wanted.glob or "**"),
        below=_existing(wanted.path, context),
        multiline=wanted.multiline,
    )
    return _shown(_in_mode(wanted, lines(query)), wanted.head_limit, "no matches")


_SUBJECTS = {"pattern": Subject.TEXT, "path": Subject.PATH}
GLOB = Tool(
    name="Glob", category=Category.FS, effect=Effect.READ, input=GlobInput, call=glob, subjects=_SUBJECTS
)
GREP = Tool(
    name="Grep", category=Category.FS, effect=Effect.READ, input=GrepInput, call=grep, subjects=_SUBJECTS
)


def _existing(path: str, context: ToolContext) -> str:
    below = context.workspace.relative(path)
    place = context.workspace.root / below
    if not place.exists():
        raise InvalidInput(f"{path}: no such file or folder")
    if not place.is_dir():
        with context.workspace.open(below):
            pass  # whoever names a file that may not be opened is told why
    return below


def _in_mode(wanted: GrepInput, found: tuple[Line, ...]) -> list[str]:
    counts = Counter(line.path for line in found)
    match wanted.output_mode:
        case "files_with_matches":
            return list(counts)
        case "count":
            return [f"{path}:{count}" for path, count in counts.items()]
        case "content":
            return [_line(line, numbered=wanted.line_numbers) for line in found]


def _line(line: Line, *, numbered: bool) -> str:
    text = line.text if len(line.text) <= MAX_TEXT else f"{line.text[:MAX_TEXT]}…"
    return f"{line.path}:{line.number}:{text}" if numbered else f"{line.path}:{text}"


def _shown(results: Sequence[str], limit: int, nothing: str) -> Output:
    if not results:
        return Output(content=nothing)
    rest = len(results) - limit
    more = (f"[{rest} more left out; narrow the search]",) if rest > 0 else ()
    return Output(content="\n".join((*results[:limit], *more)))
