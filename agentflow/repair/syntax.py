"""Edits of a file that is no Python, at the place where the parser stops."""

import ast
import re
from collections.abc import Iterator, Sequence

from agentflow.repair.candidates import Candidate
from agentflow.repair.clues import EditPlace
from agentflow.repair.sources import Mutation, Sources, apply_mutation

_LARGEST = 400_000

_HEAD = re.compile(r"\s*(?:async\s+)?(def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b")

_TEST = re.compile(r"\s*(?:if|elif|while|assert|return)\b")

_MISSPELT = (
    *(("else if", "elif"), ("=!", "!="), ("=>", ">="), ("=<", "<="), ("<>", "!="), ("&&", "and")),
    *(("||", "or"), ("++", " += 1"), ("--", " -= 1"), ("===", "=="), ("!==", "!="), ("!", "not ")),
)

_CLOSERS = (")", "]", "}", "'", '"', "))", "])", '")', "')")

_STRAY = frozenset("()[]{}:,;.=+-*/%<>\"'`\\?$!&|")


def mend_syntax(sources: Sources, places: Sequence[EditPlace]) -> tuple[Candidate, ...]:
    """Return the edits after which a suspicious file that is no Python is some."""
    found = []
    for path in sorted({place.path for place in places}):
        raw = sources.read(path)
        lines = _find_stops(raw)
        if lines:
            lines += [place.line for place in places if place.path == path]
            found += list(_mend(path, raw, sorted(set(lines))))
    return tuple(found)


def _find_stops(raw: bytes) -> list[int]:
    """Return the lines at and before the place where the parser stops; none for what is Python or no text."""
    try:
        if len(raw) <= _LARGEST and raw.decode():
            ast.parse(raw)
    except SyntaxError as error:
        stop = error.lineno or 1
        return [line for line in (stop - 1, stop, stop + 1) if line > 0]
    except ValueError:
        pass  # it is not in UTF-8
    return []


def _mend(path: str, raw: bytes, numbers: Sequence[int]) -> Iterator[Candidate]:
    lines = raw.decode().splitlines(keepends=True)
    seen = set()
    for number in numbers:
        if number > len(lines):
            continue
        start = len("".join(lines[: number - 1]).encode())
        before = lines[number - 1]
        bare = before.rstrip("\r\n")
        for cost, after in enumerate(_rewrite(bare, lines[: number - 1])):
            edit = Mutation(
                start=start,
                end=start + len(bare.encode()),
                text=after,
                line=number,
                kind="syntax",
                weight=1,
                note=f"`{bare.strip()}` to `{' '.join(after.split())}`",
            )
            text = apply_mutation(raw, edit)
            if text not in seen and _is_python(text):
                seen.add(text)
                yield Candidate(path=path, mutation=edit, cost=1 + cost // 8, distance=0)


def _is_python(raw: bytes) -> bool:
    try:
        ast.parse(raw)
    except (SyntaxError, ValueError):
        return False
    return True


def _rewrite(line: str, above: Sequence[str]) -> Iterator[str]:
    """Yield what a line may have been meant to be, the likeliest first."""
    code, blank, comment = _cut_comment(line)
    if _HEAD.match(code):
        yield f"{code}:{blank}{comment}"
    yield from (code.replace(wrong, right) for wrong, right in _MISSPELT if wrong in code)
    if _TEST.match(code):
        yield from (
            f"{code[: each.start()]}=={code[each.end() :]}"
            for each in re.finditer(r"(?<![=<>!])=(?!=)", code)
        )
    yield from (f"{code}{closer}{blank}{comment}" for closer in _CLOSERS)
    yield from (f"{code[:-1]}{closer}:{blank}{comment}" for closer in _CLOSERS if code.endswith(":"))
    yield from _indent(line, above)
    yield from (line[:at] + line[at + 1 :] for at, sign in enumerate(line) if sign in _STRAY)
    yield from (
        f"{line[:at]},{line[at:]}" for at, sign in enumerate(line) if sign == " " and line[:at].strip()
    )
    yield from (f"{line[: each.end()]}({line[each.end() :]}" for each in re.finditer(r"\w+", line))


def _cut_comment(line: str) -> tuple[str, str, str]:
    """Return a line's code, the blanks after it, and its comment."""
    code, sign, comment = line.partition("  #")
    bare = code.rstrip()
    return bare, code[len(bare) :], sign + comment


def _indent(line: str, above: Sequence[str]) -> Iterator[str]:
    """Yield the line as deep as lines above it, or one step deeper, and with something in its block."""
    text = line.lstrip()
    depths = [len(each) - len(each.lstrip()) for each in reversed(above[-12:]) if each.strip()]
    for depth in dict.fromkeys([*depths, *(depth + 4 for depth in depths)]):
        yield f"{' ' * depth}{text}"
    if line.rstrip().endswith(":"):
        yield f"{line}\n{' ' * (len(line) - len(text) + 4)}pass"
