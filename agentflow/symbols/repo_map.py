"""What a role is shown of the code before it looks: what the task names, and a map of what matters for it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nlargest

from agentflow.core.languages import is_test_path
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.symbols.index import FoundSymbol, SymbolIndex, UseGraph
from agentflow.symbols.rank import spread_from
from agentflow.symbols.read import SymbolDefinition, SymbolKind, find_occurrences

ReadText = Callable[[str], str | None]
"""Returns the text of a file that may be shown, or None."""
_MOST_CHARS = 3_200
"""Of names and map together: about 900 tokens."""
_MAP_SHARE = 0.4
"""At least so much is left for the map."""
_MOST_NAMES, _MOST_PLAIN = 6, 3
"""Names of the task that are looked up; those that are also words of plain English count apart."""
_MOST_PLAIN_FILES = 12
"""A word of plain English that more files use is a common one."""
_MOST_PLACES, _MOST_USERS, _MOST_LINES = 3, 5, 4
"""Definitions of a name, files that use it, and lines of such a file."""
_MOST_DEFINITIONS = 8
"""Of a file in the map."""
_MOST_SIGNATURE = 110
_LEAST_WORD = 3
_LEAST_PART = 4
"""A shorter word may begin another one by chance."""
_MOST_FILES = 50
"""That are looked at for the map."""
_FAR = 0.2
"""What the rank in the whole repository counts beside nearness to the task."""
_TEST_SHARE = 0.5
_NAMES = "## Code that the task names\nPlaces as path:line; `used in` lists callers by line."
_MAP = "## Map of the repository\nThe most relevant files with the lines of their main definitions, not all."
_SPELLED = regex(r"(`?)([A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*)*)(\(|`?)")
_JOINED = regex(r"\.|::|#")
_LIKE_CODE = regex(r".[A-Z_$\d]|_")
_PART = regex(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")


class _Name(Record):
    """A name that a task's text has, with the name before it if it is qualified."""

    text: str
    owner: str
    is_code: bool
    """It is written as only code is."""


_Named = tuple[_Name, list[FoundSymbol]]


def write_repo_map(index: SymbolIndex, read: ReadText, task: str, shown: Iterable[str]) -> str:
    """Return what the task names, and the map unless lines of files are shown anyhow; empty for neither."""
    graph = index.load_graph()
    if graph is None:
        return ""
    named = _find_named(index, task)
    ranks = dict(zip(graph.paths, graph.ranks, strict=True))
    parts = [_NAMES, *_take(_describe_names(index, read, named, ranks), _MOST_CHARS * (1 - _MAP_SHARE))]
    names = "\n".join(parts) if len(parts) > 1 else ""
    order = [] if any(shown) else _order_files(graph, task, named)
    known = {each.text for each, _ in named}
    blocks = (_describe_file(index, read, path, known) for path in order)
    found = [*_take(filter(None, blocks), _MOST_CHARS - len(names))]
    return "\n\n".join(filter(None, (names, "\n".join((_MAP, *found)) if found else "")))


def format_symbol(path: str, lines: list[str], one: SymbolDefinition) -> str:
    """Return where a definition stands, its signature, and what it is a member of."""
    owner = f" ({one.owner})" if one.owner else ""
    return f"{path}:{one.first}: {_format_signature(lines, one).strip()}{owner}"


def _format_signature(lines: list[str], one: SymbolDefinition) -> str:
    """Return a definition's signature in one line, as deep as it stands."""
    first = lines[one.first - 1] if one.first <= len(lines) else one.name
    text = " ".join(" ".join(lines[one.first - 1 : one.head]).split()).removesuffix("{").rstrip()
    text = text.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    cut = text if len(text) <= _MOST_SIGNATURE else f"{text[:_MOST_SIGNATURE]}…"
    return f"{'  ' if first[:1].isspace() else ''}{cut}"


def _take(texts: Iterable[str], most: float) -> Iterator[str]:
    """Yield texts as long as they fit."""
    for text in texts:
        most -= len(text) + 1
        if most < 0:
            return
        yield text


def _list_names(task: str) -> Iterator[_Name]:
    for mark, spelled, after in _SPELLED.findall(task):
        words = _JOINED.split(spelled)
        for place, word in enumerate(words):
            is_last = place == len(words) - 1
            is_called = is_last and (len(words) > 1 or after == "(")  # what stands before may be a variable
            is_type = len(words) > 1 and word[0].isupper()
            is_code = bool(mark or is_called or is_type or _LIKE_CODE.search(word))
            owner = words[place - 1] if place else ""
            yield _Name(text=word, owner=owner, is_code=is_code)


def _find_named(index: SymbolIndex, task: str) -> list[_Named]:
    """Return the names of a task that are defined, those written as code before words that may be names."""
    listed = sorted(_list_names(task), key=lambda each: (each.is_code, bool(each.owner)))
    last = {each.text: each for each in listed if len(each.text) >= _LEAST_WORD or each.is_code}
    names = dict(sorted(last.items(), key=lambda item: task.index(item[0])))
    places: dict[str, list[FoundSymbol]] = {}
    for each in index.find_definitions(names) if names else ():
        if not each.definition.is_local:
            places.setdefault(each.definition.name, []).append(each)
    sure, plain = list[_Named](), list[_Named]()
    for text, name in names.items():
        found = sorted(places.get(text, ()), key=lambda each: is_test_path(each.path))
        owned = [each for each in found if name.owner and each.definition.owner == name.owner] or found
        product = [each for each in owned if each.definition.kind is not SymbolKind.VALUE]
        if owned and name.is_code:
            sure.append((name, owned))
        elif (
            0 < len(product) <= _MOST_PLACES
            and not is_test_path(product[0].path)
            and len(index.find_files_with(text)) <= _MOST_PLAIN_FILES
        ):
            plain.append((name, product))
    return [*sure, *plain[:_MOST_PLAIN]][:_MOST_NAMES]


def _describe_names(
    index: SymbolIndex, read: ReadText, named: Iterable[_Named], ranks: Mapping[str, float]
) -> Iterator[str]:
    """Yield each name with its definitions, and the files that use it with the lines, tests last."""
    users = {
        name.text: sorted(found, key=lambda path: (is_test_path(path), -ranks.get(path, 0), path))
        for name, _ in named
        if (found := index.find_files_with(name.text))
    }
    texts = {path: read(path) or "" for files in users.values() for path in files[:_MOST_USERS]}
    lines: dict[tuple[str, str], dict[str, None]] = {}
    for path, text in texts.items():
        for each in find_occurrences(path, text, *users):
            if not each.is_definition:
                lines.setdefault((each.name, path), {})[str(each.line)] = None
    for name, places in named:
        defined = [
            f"- {format_symbol(path, whole.split(chr(10)), one)}"
            for path, one in places[:_MOST_PLACES]
            if (whole := read(path)) is not None
        ]
        if (left := len(places) - _MOST_PLACES) > 0:
            defined.append(f"  {left} more definitions")
        files = users.get(name.text, [])
        used = [
            f"{path}: {', '.join(at[:_MOST_LINES])}{', …' if len(at) > _MOST_LINES else ''}"
            for path in files[:_MOST_USERS]
            if (at := [*lines.get((name.text, path), ())])
        ]
        if (left := len(files) - _MOST_USERS) > 0:
            used.append(f"and {left} more files")
        yield "\n".join((*defined, *((f"  used in {'; '.join(used)}",) if used else ())))


def _order_files(graph: UseGraph, task: str, named: Iterable[_Named]) -> list[str]:
    """Return the files that matter for a task, the nearest and most used first."""
    numbers = {path: number for number, path in enumerate(graph.paths)}
    seeds = dict[int, float]()
    for name, places in named:
        for place in places:
            if (number := numbers.get(place.path)) is not None:
                seeds[number] = seeds.get(number, 0) + (2 if name.is_code else 0.5) / len(places)
    words = {part.lower() for part in _PART.findall(task)}
    likely = _compile_words(words)
    for path, number in numbers.items():
        if not likely.search(path):
            continue
        parts = [part.lower() for part in _PART.findall(path.rpartition("/")[2].partition(".")[0])]
        alike = sum(any(_is_alike(part, word) for word in words) for part in parts)
        if share := 3 if path in task else alike / max(len(parts), 1):
            seeds[number] = seeds.get(number, 0) + share
    near = spread_from(graph, seeds)
    most, top = max(near.values(), default=0) or 1, max(graph.ranks, default=0) or 1

    def weigh(number: int) -> float:
        score = near.get(number, 0) / most + _FAR * graph.ranks[number] / top
        return score * (_TEST_SHARE if is_test_path(graph.paths[number]) else 1)

    known = nlargest(_MOST_FILES, range(len(graph.paths)), key=graph.ranks.__getitem__)
    return [graph.paths[number] for number in nlargest(_MOST_FILES, {*near, *known}, key=weigh)]


def _compile_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return what finds a name of a file that may have one of some words, or the beginning of one."""
    starts = sorted({re.escape(word[: _LEAST_PART + 1]) for word in words})
    return re.compile("|".join(starts) or "(?!)", re.IGNORECASE)


def _is_alike(part: str, word: str) -> bool:
    return part == word or (len(part) > _LEAST_PART and word.startswith(part)) or part == f"{word}s"


def _describe_file(index: SymbolIndex, read: ReadText, path: str, known: Iterable[str]) -> str:
    outline = index.read_outline(path)
    text = read(path) if outline else None
    if text is None:
        return ""
    lines, wanted = text.split("\n"), {*known}
    chosen = sorted(outline, key=lambda each: each.name not in wanted)[:_MOST_DEFINITIONS]
    chosen.sort(key=lambda each: each.first)
    left = len(outline) - len(chosen)
    rows = [f"{each.first:6} {_format_signature(lines, each)}" for each in chosen]
    return "\n".join((f"{path}{f' ({left} more)' if left > 0 else ''}", *rows))
