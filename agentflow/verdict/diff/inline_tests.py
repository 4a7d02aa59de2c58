"""Checks inside source files: the original tests with the new code, and comments that switch checks off."""

import ast
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.core.evidence import CheckName, Surface
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.verdict import Remark, Tampering
from agentflow.verdict.syntax import parse_python, read_python

_EXAMPLE = ">>> "
_TEST = "test "
_TEST_MODULE = regex(
    r"(?m)^[ \t]*#\[cfg\((?:test|all\(test\b[^\n]*)\)\][^\n]*\n"
    r"(?:[ \t]*#\[[^\n]*\n)*[ \t]*(?:pub )?mod (\w+)\s*\{"
)
_DOC_BLOCK = regex(r"(?m)(?:^[ \t]*//[/!][^\n]*\n)+")
_ITEM = regex(r"\b(?:fn|struct|enum|trait|mod|type|const|static|impl|macro_rules!)\s+(\w+)")
_FENCE = "```"
_QUOTES = regex(r"'(?:\\.|[^\\'\n])'|\"(?:\\.|[^\"\\])*\"|//[^\n]*|/\*.*?\*/|r(#*)\".*?\"\1", re.DOTALL)
_SILENCED: Mapping[CheckName, re.Pattern[str]] = MappingProxyType(
    {
        CheckName.LINT: regex(
            r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b[^#\n]*|#\s*(?:pylint\s*:\s*(?:disable|skip)|nosec\b|fmt\s*:\s*(?:off|skip)"
            r"|isort\s*:\s*(?:skip|off))[^#\n]*|/[/*]\s*(?:eslint|biome|oxlint|tslint|stylelint)[-:\w]*(?:disable|ignore)[^\n]*"
            r"|//\s*nolint\b[^\n]*|#!?\[(?:allow|expect)\([^\]]*\]|#\s*(?:rubocop|shellcheck)\s*:?\s*disable[^\n]*"
        ),
        CheckName.TYPES: regex(
            r"#\s*(?:type\s*:\s*ignore|(?:pyright|mypy|ty|pyre)\s*:\s*(?:ignore|basic)|pyre-(?:ignore|fixme))[^#\n]*"
            r"|/[/*]\s*@ts-(?:ignore|expect-error|nocheck)[^\n]*"
        ),
        CheckName.TESTS: regex(
            r"#\s*pragma\s*:\s*no\s*(?:cover|branch)[^#\n]*|/\*\s*(?:istanbul|c8|v8)\s+ignore[^\n]*"
            r"|#\[ignore\b[^\]]*\]|//\s*(?:coverage:ignore|go:build\s+ignore)[^\n]*|LCOV_EXCL_\w+"
        ),
    }
)


class CheckPart(Record):
    """A piece of a file that is a check, from one character to another."""

    name: str
    """The name by which the part is found in another version of the file."""
    begin: int
    end: int
    text: str
    is_named: bool = True
    """The part contains a check; otherwise it only marks where one could stand."""


def has_parts(surface: Surface, path: str) -> bool:
    """Return whether a source file may contain checks, by its language or by an earlier run."""
    suffix = PurePosixPath(path).suffix
    return suffix == ".rs" or (suffix == ".py" and (surface.has_doctests or path in surface.parted))


def extract_checks(path: str, text: str) -> str:
    """Return the parts of a source file that are checks."""
    return "\n".join(part.text for part in _parts(path, text) if part.is_named)


def mix_parts(path: str, before: str, now: str) -> str:
    """Return the new file with exactly the checks of the old one."""
    if path.endswith(".py") and read_python(now) is None:
        return now
    old = {part.name: part for part in _parts(path, before) if part.is_named}
    pieces, start = [], 0
    parts = _parts(path, now)
    for part in parts:
        if part.name in old or part.is_named:
            pieces += [now[start : part.begin], _lay(old.get(part.name), now, part)]
            start = part.end
    lost = [part for name, part in old.items() if name not in {each.name for each in parts}]
    return "".join((*pieces, now[start:], *(f"\n{text}\n" for part in lost if (text := _alone(path, part)))))


def _lay(old: CheckPart | None, now: str, part: CheckPart) -> str:
    """Return an original check as it stands where a part of the new file is, or where there is none yet."""
    if old is None or part.begin < part.end:
        return old.text if old else ""
    indent = now[now.rfind("\n", 0, part.begin) + 1 : part.begin]
    return f"{old.text}; " if indent.strip() else f"{old.text}\n{indent}"


def _alone(path: str, part: CheckPart) -> str:
    """Return a check whose place no longer exists, in a form that still runs."""
    if path.endswith(".rs"):
        return "" if part.name.startswith(("doc ", "file")) else part.text
    if part.name.startswith(_TEST):
        return part.text
    is_function = part.name.count(".") == 1
    return (
        f"def {part.name[1:]}(*_, **__):\n    {part.text}\n    raise NotImplementedError\n"
        if is_function
        else ""
    )


def find_own_checks(path: str, before: str, after: str) -> Iterator[Remark]:
    """Yield the changed comparisons that a Python file makes when it runs as a program."""
    old, new = _list_started(path, before), _list_started(path, after)
    known = {ast.dump(node) for node in old}
    for node in new if old else ():
        if ast.dump(node) not in known and any(map(_compares, ast.walk(node))):
            said = "the file checks itself here when it runs as a program"
            yield Remark(kind=Tampering.EXPECTATION, path=path, line=node.lineno, text=said, is_sure=False)


def _list_started(path: str, text: str) -> list[ast.If]:
    """Return the blocks of a Python file that run only when it is started as a program."""
    body = parse_python(text).body if path.endswith(".py") else []
    blocks = [node for node in body if isinstance(node, ast.If)]
    return [node for node in blocks if "__name__" in ast.unparse(node.test)]


def _compares(node: ast.AST) -> bool:
    """Return whether a statement may fail by a comparison."""
    is_asked = isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test)
    inner = [each for part in node.body for each in ast.walk(part)] if is_asked else []  # type: ignore[attr-defined]
    return isinstance(node, ast.Assert) or any(isinstance(each, ast.Raise) for each in inner)


def _parts(path: str, text: str) -> list[CheckPart]:
    """Return the checks in a file and the places where others could stand, in order."""
    found = [*_modules(text), *_doc_blocks(text)] if path.endswith(".rs") else list(_docstrings(text))
    inner = [part for part in found if any(each.begin < part.begin < each.end for each in found)]
    return sorted((part for part in found if part not in inner), key=lambda part: (part.begin, part.end))


def _modules(text: str) -> Iterator[CheckPart]:
    bare = _QUOTES.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in _TEST_MODULE.finditer(bare):
        end = _find_end(bare, found.end())
        yield CheckPart(name=f"mod {found[1]}", begin=found.start(), end=end, text=text[found.start() : end])


def _find_end(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def _doc_blocks(text: str) -> Iterator[CheckPart]:
    """Yield the comments of Rust whose examples are tests."""
    for found in _DOC_BLOCK.finditer(text):
        item = _ITEM.search(text, found.end())
        name = "file" if found[0].lstrip().startswith("//!") else f"doc {item[1] if item else ''}"
        is_named = _FENCE in found[0]
        yield CheckPart(name=name, begin=found.start(), end=found.end(), text=found[0], is_named=is_named)


def _docstrings(text: str) -> Iterator[CheckPart]:
    """Yield each docstring; what has none is the place for one."""
    tree = read_python(text)
    if tree is None:
        return
    starts = [0]
    for line in io.StringIO(text, newline=""):  # a form feed ends no line of Python
        starts.append(starts[-1] + len(line))
    yield from _tests(text, starts, tree)
    owners = list(_owners("", tree))
    told = {name for name, node in owners if ast.get_docstring(node, clean=False) is not None}
    for name, node in owners:
        said = ast.get_docstring(node, clean=False)
        if said is not None:
            begin, end = _place(text, starts, node.body[0])
            yield CheckPart(name=name, begin=begin, end=end, text=text[begin:end], is_named=_EXAMPLE in said)
        elif name not in told and node.body:
            begin = _begin(text, starts, node.body[0])
            yield CheckPart(name=name, begin=begin, end=begin, text="", is_named=False)


def _tests(text: str, starts: list[int], tree: ast.Module) -> Iterator[CheckPart]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.name.lower().startswith("test"):
                continue
            begin, end = _begin(text, starts, node), _place(text, starts, node)[1]
            yield CheckPart(name=f"{_TEST}{node.name}", begin=begin, end=end, text=text[begin:end])


def _begin(text: str, starts: list[int], node: ast.stmt) -> int:
    """Return where a statement begins, with its decorators."""
    marks = [_place(text, starts, mark)[0] for mark in getattr(node, "decorator_list", ())]
    return min((text.rindex("@", 0, place) for place in marks), default=_place(text, starts, node)[0])


def _place(text: str, starts: list[int], node: ast.stmt | ast.expr) -> tuple[int, int]:
    """Return where a node stands, in characters."""
    lines = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    begin, end = (
        starts[line - 1]
        + len(text[starts[line - 1] : starts[line]].encode()[:column].decode("utf-8", "ignore"))
        for line, column in lines
    )
    return begin, end


_Owner = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _owners(prefix: str, node: _Owner) -> Iterator[tuple[str, _Owner]]:
    yield prefix, node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _owners(f"{prefix}.{child.name}", child)


def describe_suppressions(
    path: str, before: str, after: str, checks: Collection[CheckName]
) -> tuple[str, ...]:
    """Return a line for each comment that keeps a required check from looking; what only moved is no news."""
    lines = list[str]()
    for check, silenced in _SILENCED.items():
        is_checked = check in checks or (check is CheckName.LINT and CheckName.FORMAT in checks)
        known = Counter(_bare(found[0]) for found in silenced.finditer(before))
        for number, line in enumerate(after.splitlines(), 1) if is_checked else ():
            for said in (_bare(found[0]) for found in silenced.finditer(line)):
                known[said] -= 1
                if known[said] < 0:
                    lines.append(f"{path}:{number}: {said} keeps {check} from looking")
    return tuple(lines)


def _bare(said: str) -> str:
    return " ".join(said.split()).removesuffix("*/").strip()
