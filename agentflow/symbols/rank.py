"""How much each file matters: PageRank over who uses whose names, and nearness to what a task speaks of."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from posixpath import dirname, join, normpath
from typing import NamedTuple

from agentflow.core.languages import is_test_path
from agentflow.core.regex import regex
from agentflow.symbols.index import SymbolIndex, UseGraph
from agentflow.symbols.read import SymbolKind

_DAMPING = 0.85
_ROUNDS = 8
_MOST_OWNERS = 4
"""A name that more files define says little about which of them is meant."""
_MOST_COMPARED = 30
"""Files of one name that are compared with an import, or with the place of its use."""
_VALUE_WEIGHT = 0.1
_SPREAD = 0.5
_STEPS = 2
_MOST_NAMES = 15
"""Of the outline of a file."""
_FOLDERS_OWN = frozenset({"__init__", "index", "mod", "lib", "main"})
"""Files that are imported by the name of their folder."""
_WORD = regex(r"\w+")


class _Names(NamedTuple):
    """Who defines each name, and which file is imported under which, by number."""

    paths: list[str]
    owners: dict[str, list[int]]
    values: set[str]
    """Names that are nowhere a function or a class: fields, mostly, which are called like variables."""
    modules: dict[str, list[int]]
    """By the last word of the path without its ending."""
    tests: set[int]
    test_owners: dict[str, list[int]]
    """As `owners`, of tests: no product uses these."""
    folders: list[int]
    """The folder of each, by number."""


def save_ranks(index: SymbolIndex) -> None:
    """Work out who uses whom in a folder, and keep it."""
    names = _read_names(index)
    users = Counter[tuple[int, str]]()
    starts, targets, weights = array("I", [0]), array("I"), array("d")
    for number, (path, uses, imports) in enumerate(index.list_used()):
        imported = _find_imported(path, imports, names)
        found = dict.fromkeys(imported - {number}, 1.0)
        for name, places in _find_used(number, uses, imported, names):
            weight = (_VALUE_WEIGHT if name in names.values else 1) / len(places)
            for place in places:
                found[place] = found.get(place, 0) + weight
                users[place, name] += 1
        targets.extend(found)
        weights.extend(found.values())
        starts.append(len(targets))
    outlines: dict[str, list[str]] = {}
    for (place, name), _ in users.most_common():
        if len(outline := outlines.setdefault(names.paths[place], [])) < _MOST_NAMES:
            outline.append(name)
    ranks = _rank(starts, targets, weights)
    graph = UseGraph(paths=tuple(names.paths), starts=starts, targets=targets, ranks=ranks)
    index.save_graph(graph, {path: "\n".join(outline) for path, outline in outlines.items()})


def spread_from(graph: UseGraph, seeds: Mapping[int, float]) -> dict[int, float]:
    """Return how near files are to some of them: each passes a part of its share on to what it uses."""
    near, wave = dict(seeds), dict(seeds)
    for _ in range(_STEPS):
        after: dict[int, float] = {}
        for number, share in wave.items():
            below = graph.targets[graph.starts[number] : graph.starts[number + 1]]
            for target in below:
                after[target] = after.get(target, 0) + _SPREAD * share / len(below)
        for number, share in after.items():
            near[number] = near.get(number, 0) + share
        wave = after
    return near


def _read_names(index: SymbolIndex) -> _Names:
    names, others, folders = _Names([], {}, set(), {}, set(), {}, []), set[str](), dict[str, int]()
    for number, (path, defined) in enumerate(index.list_defined()):
        names.paths.append(path)
        names.folders.append(folders.setdefault(dirname(path), len(folders)))
        owners = names.owners
        if is_test_path(path):
            names.tests.add(number)
            owners = names.test_owners
        names.modules.setdefault(_name_module(path).rpartition("/")[2], []).append(number)
        for name, kind in defined:
            (names.values if kind == SymbolKind.VALUE else others).add(name)
            if len(places := owners.setdefault(name, [])) < _MOST_COMPARED:
                places.append(number)
    names.values.difference_update(others)
    return names


def _name_module(path: str) -> str:
    """Return the path under which a file is imported: without its ending, or that of its folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder if stem in _FOLDERS_OWN else f"{folder}/{stem}".removeprefix("/")


def _find_imported(path: str, imports: Iterable[str], names: _Names) -> set[int]:
    """Return the files that an import may mean: by its place if it says one, else by its last words."""
    found = set[int]()
    for text in filter(None, imports):
        is_place = text.startswith(("./", "../")) or text in {".", ".."}
        place = normpath(join(dirname(path), text)).removeprefix(".") if is_place else ""
        wanted = _name_module(place) if is_place else "/".join(_WORD.findall(text))
        for number in names.modules.get(wanted.rpartition("/")[2], ())[:_MOST_COMPARED]:
            module = _name_module(names.paths[number])
            if module == wanted or (not is_place and f"/{module}".endswith(f"/{wanted}")):
                found.add(number)
    return found


def _find_used(
    number: int, uses: Iterable[str], imported: set[int], names: _Names
) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of other files, with the files they may come from: imported or near ones before all."""
    folder, is_test = names.folders[number], number in names.tests
    for name in uses:
        places = names.owners.get(name, [])
        if is_test and name in names.test_owners:
            places = [*places, *names.test_owners[name]]
        if number in places:
            continue
        if len(places) > 1:
            near = [each for each in places if each in imported or names.folders[each] == folder]
            places = near or places
        if 0 < len(places) <= _MOST_OWNERS:
            yield name, places


def _rank(starts: "array[int]", targets: "array[int]", weights: "array[float]") -> "array[float]":
    count = len(starts) - 1
    ranks = array("d", [1.0]) * count
    totals = [sum(weights[starts[number] : starts[number + 1]]) for number in range(count)]
    for _ in range(_ROUNDS):
        lost = sum(rank for rank, total in zip(ranks, totals, strict=True) if not total)
        following = array("d", [1 - _DAMPING + _DAMPING * lost / max(count, 1)]) * count
        for number in range(count):
            if totals[number]:
                share = _DAMPING * ranks[number] / totals[number]
                for place in range(starts[number], starts[number + 1]):
                    following[targets[place]] += share * weights[place]
        ranks = following
    return ranks
