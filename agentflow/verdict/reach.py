"""Uses between source files: what the product consists of, and what only checks use."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.languages import COMPONENTS, SCRIPTS, is_source, may_be_shell
from agentflow.core.regex import regex
from agentflow.verdict.syntax import find_home_module, get_last_word, list_module_paths, parse_python

_WEB = (*SCRIPTS, *COMPONENTS)
"""Endings of files that import each other, also without the ending."""
_NAMED = regex(
    r"(?:from|import|require|source|include|mod|use|load)\b[\s({\"'<]*([\w./@-]+)|[\"'<]([\w./@-]+)[\"'>]"
)
_STARTED = regex(r"(?m)^[^#\n]*?__name__\s*==\s*[\"']__main__[\"']")
_ASSERTS_ELSEWHERE = regex(
    r"(?:require\(|from )[\"'](?:node:)?(?:assert|chai|expect|vitest|@jest/globals|tap|ava)\b"
    r"|\*testing\.T\b|^[ \t]*\"testing\"$",
    re.MULTILINE,
)
_DEFINED = regex(
    r"\b(?:function|fn|func|def|void|int|bool)\s+(\w+)\s*\(|#define\s+(\w+)\(|^(\w+)\s*\(\)\s*\{"
    r"|\bexports\.(\w+)\s*=|\bconst\s+(\w+)\s*=\s*\(",
    re.MULTILINE,
)
_ENTRY = regex(r"[\"']?[\w.-]+[\"']?\s*=\s*[\"']?([A-Za-z_][\w.]*)\s*:\s*[A-Za-z_]\w*")
_ENTRY_NAMES = frozenset(
    {"__main__.py", "main.py", "app.py", "manage.py", "wsgi.py", "asgi.py", "setup.py", "cli.py", "server.py"}
)
_PACKAGE_FILES = regex(r"\"(?:main|module|types|browser|bin|exports)\"\s*:\s*(\{[^}]*\}|\"[^\"]*\")")
_FILE = regex(r"[\"']((?:[\w.-]+/)*[\w-]+\.\w+)[\"']")
_SHELL_FILE = regex(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+(?:\.\w+)?)(?![\w./-])")
_QUOTED = regex(r"\"([^\"]+)\"")
_TOPS = ("", "src/", "lib/")
_LIBRARIES = ("src/", "lib/", "app/", "cmd/", "internal/", "pkg/")
_ASSERTS = regex(
    r"(?m)^(?:import|from) (?:pytest|unittest)\b|^(?:async )?def (?:assert|check|expect)_\w+\("
    r"|\bAssertionError\b"
)

Graph = Mapping[str, frozenset[str]]


def find_leads(texts: Mapping[str, str]) -> Graph:
    """Return the files that each source file names in its imports, includes and strings."""
    known = frozenset(texts)
    return {path: frozenset(_leads(path, text, known)) - {path} for path, text in texts.items()}


def find_reachable(leads: Graph, roots: Iterable[str]) -> frozenset[str]:
    """Return all files that can be reached from some files, these included."""
    found: set[str] = set()
    todo = [root for root in roots if root in leads]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += leads.get(path, frozenset()) - found
    return frozenset(found)


def find_check_only(
    texts: Mapping[str, str],
    leads: Graph,
    checks: Collection[str],
    new: Collection[str] = (),
    opened: Collection[str] = (),
) -> Mapping[str, str]:
    """Return the source files that only checks use, each with the reason.

    Where a product is told by its manifest, its packages or its entry points, that is all that lies outside
    of them and is used by a check that uses the product, too; else, and among new files, what asserts, holds
    expected values only, or judges results. `opened` was read as the checks ran.
    """
    own = {path for path in leads if path not in checks and is_source(path)}
    inner = {path: leads[path] & own for path in own}
    product = find_reachable(
        inner, {path for path in own if _is_entry(path, texts[path])} | _find_declared(texts, own)
    )
    tests = {path: leads[path] for path in checks if path in leads}
    alone = (find_reachable({**inner, **tests}, tests) & own) - product
    users = _turn_round({**inner, **tests})
    of_product = find_reachable(users, product) & tests.keys()
    is_reached_otherwise = not of_product and not product.isdisjoint(opened)
    found: dict[str, str] = {}
    for path in sorted(alone):
        is_outside = (
            path not in new
            and any(_is_kin(path, other) for other in product)
            and not _is_packaged(path, texts, product)
            and (is_reached_otherwise or not of_product.isdisjoint(find_reachable(users, (path,))))
        )
        if is_outside or _is_aid(path, texts, leads, checks, own):
            by = min((each for each in tests if path in leads[each]), default="")
            found[path] = f"only checks lead to it: {by}" if by else "only checks lead to it"
    is_all = not own - found.keys()
    return {} if is_all else found


def _turn_round(leads: Graph) -> Graph:
    """Return the files that name each source file."""
    found: dict[str, set[str]] = {path: set() for path in leads}
    for path, named in leads.items():
        for each in named:
            found.setdefault(each, set()).add(path)
    return {path: frozenset(users) for path, users in found.items()}


def find_holders(
    texts: Mapping[str, str], leads: Graph, checks: Collection[str], tests: Iterable[str]
) -> Mapping[str, str]:
    """Return the unused source files that alone contain the names of tests which ran."""
    own = {path: text for path, text in texts.items() if path not in checks and is_source(path)}
    used = frozenset[str]().union(*(leads[path] for path in own))
    found: dict[str, str] = {}
    for name in sorted(tests):
        saying = [path for path, text in texts.items() if f'"{name}"' in text or f"'{name}'" in text]
        if len(saying) == 1 and saying[0] in own and saying[0] not in used:
            found[saying[0]] = f"contains the name of a test: {name}"
    return found


def _is_kin(path: str, other: str) -> bool:
    """Return whether two files are written in the same language, by their suffixes."""
    endings = {PurePosixPath(path).suffix, PurePosixPath(other).suffix}
    return len(endings) == 1 or endings <= {*_WEB}


def _leads(path: str, text: str, known: Collection[str]) -> Iterator[str]:
    words = list[str]()
    if path.endswith((".py", ".pyi")):
        if "import" in text:  # every way to import says so, and parsing tens of thousands of files takes long
            yield from _imports(path, parse_python(text), known)
        words = _FILE.findall(text)
    elif may_be_shell(path):
        words = _SHELL_FILE.findall(text)
    elif is_source(path):
        words = [word for pair in _NAMED.findall(text) for word in pair if word.strip("./")]
    yield from (place for word in {*words} for place in _places(path, word) if place in known)


def _imports(path: str, tree: ast.Module, known: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        for module in _modules(path, node):
            for top in dict.fromkeys((*_TOPS, *(f"{place}/" for place in PurePosixPath(path).parents))):
                place = top.removeprefix("./") + module.replace(".", "/")
                yield from (each for each in (f"{place}.py", f"{place}/__init__.py") if each in known)


def _modules(path: str, node: ast.AST) -> Iterator[str]:
    """Yield the modules that a node may import, as dotted paths from the repository's root."""
    if isinstance(node, ast.Import):
        for each in node.names:
            parts = each.name.split(".")
            yield from (".".join(parts[: end + 1]) for end in range(len(parts)))
    elif isinstance(node, ast.ImportFrom):
        base = find_home_module(node, path).strip(".")
        yield from (
            word for word in (base, *(f"{base}.{each.name}".strip(".") for each in node.names)) if word
        )
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        named = node.args[0].value
        if get_last_word(node.func) in ("import_module", "__import__", "importorskip") and isinstance(
            named, str
        ):
            yield named


def _places(path: str, word: str) -> Iterator[str]:
    """Yield the paths that a word in a file may mean."""
    folder = PurePosixPath(path).parent
    word = word.replace("::", "/")
    for start in (folder, PurePosixPath()):
        place = _normal(start, word)
        yield place
        if PurePosixPath(path).suffix in _WEB:
            yield from (f"{place}{end}" for end in _WEB)
            yield from (f"{place}/index{end}" for end in _WEB)
        else:
            suffix = PurePosixPath(path).suffix
            yield from (f"{place}{suffix}", f"{place}/mod{suffix}")


def _normal(start: PurePosixPath, word: str) -> str:
    parts: list[str] = list(start.parts)
    for part in PurePosixPath(word).parts:
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", "/"):
            parts.append(part)
    return "/".join(parts)


def _is_entry(path: str, text: str) -> bool:
    name = path.rpartition("/")[2]
    return name in _ENTRY_NAMES or bool(
        path.endswith(".py") and _STARTED.search(text) and not _ASSERTS.search(text)
    )


def _find_declared(texts: Mapping[str, str], own: Collection[str]) -> set[str]:
    """Return the source files that a manifest declares as an entry point or as the package."""
    found: set[str] = set()
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        modules = _ENTRY.findall(texts.get(name, ""))
        found |= {place for each in modules for place in list_module_paths(each, _TOPS) if place in own}
    listed = _PACKAGE_FILES.findall(texts.get("package.json", ""))
    words = [word for part in listed for word in _QUOTED.findall(part)]
    found |= {place for word in words for place in _places("package.js", word) if place in own}
    return found | {path for path in own if _is_public(path, texts)}


def _is_public(path: str, texts: Mapping[str, str]) -> bool:
    """Return whether a file is the first module of a package, or lies where libraries usually lie."""
    folder = PurePosixPath(path).parent
    if path.endswith("__init__.py"):
        return f"{folder.parent}/__init__.py".removeprefix("./") not in texts
    is_library = not path.endswith(".py") and not may_be_shell(path) and path.startswith(_LIBRARIES)
    return is_library and not _asserts(path, texts[path])


def _is_packaged(path: str, texts: Mapping[str, str], product: Collection[str]) -> bool:
    """Return whether a module lies in a package or folder together with product code."""
    folder = PurePosixPath(path).parent
    if path.endswith(".py") and f"{folder}/__init__.py".removeprefix("./") not in texts:
        return path.startswith("src/")
    return any(PurePosixPath(other).parent == folder for other in product)


def _is_aid(
    path: str, texts: Mapping[str, str], leads: Graph, checks: Collection[str], own: Collection[str]
) -> bool:
    """Return whether a module only helps tests: it asserts, holds expected values, or judges results."""
    if _asserts(path, texts[path]):
        return True
    users = [by for by in checks if path in leads.get(by, ())]
    others = {other for by in users for other in leads[by] if other in own and other != path}
    if not path.endswith(".py"):
        return bool(others) and any(_compares(path, texts[path], texts[by]) for by in users)
    users = [by for by in users if by.endswith(".py")]
    is_used = bool(users) and bool(others)
    return is_used and (_holds_values(texts[path]) or all(_judges(path, texts[by], others) for by in users))


def _asserts(path: str, text: str) -> bool:
    return bool((_ASSERTS if path.endswith(".py") else _ASSERTS_ELSEWHERE).search(text))


def _compares(path: str, text: str, test: str) -> bool:
    """Return whether a test in another language passes the result of a call to a function of a file."""
    names = {PurePosixPath(path).stem, *(name for found in _DEFINED.findall(text) for name in found if name)}
    called = rf"(?m)(?:^|=>|[;{{!(])[ \t]*(?:{'|'.join(map(re.escape, names))})"
    return bool(re.search(rf"{called}(?:\([ \t]*(?:await )?[\w.:]+\(|[ \t][^\n]*(?:\$\(|`))", test))


def _holds_values(text: str) -> bool:
    """Return whether a module consists of named values only."""
    body = [node for node in parse_python(text).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    nodes = [
        node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return bool(nodes) and all(isinstance(node, ast.Assign | ast.AnnAssign) for node in nodes)


def _judges(path: str, text: str, others: Collection[str]) -> bool:
    """Return whether a test passes results of other code to a module and relies on its answer."""
    tree = parse_python(text)
    own, foreign = _names_from(tree, {path}), _names_from(tree, others)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _first(node.func) in own]
    words = {id(each) for node in ast.walk(tree) for each in _find_trusted(node)}
    foreign |= {name for node in ast.walk(tree) for name in _find_given(node, foreign)}
    judging = [call for call in calls if id(call) in words and _mentions(call, foreign)]
    return bool(calls) and len(judging) == len(calls)


def _names_from(tree: ast.Module, paths: Collection[str]) -> set[str]:
    """Return the names that a file imports from some modules."""
    stems = {
        (place.parent if place.stem == "__init__" else place).stem for place in map(PurePosixPath, paths)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            is_whole = (node.module or "").rpartition(".")[2] in stems
            found |= {each.asname or each.name for each in node.names if is_whole or each.name in stems}
        elif isinstance(node, ast.Import):
            named = [each for each in node.names if each.name.rpartition(".")[2] in stems]
            found |= {each.asname or each.name.partition(".")[0] for each in named}
    return found


def _find_given(node: ast.AST, foreign: Collection[str]) -> Iterator[str]:
    """Yield the variables whose value comes from other code."""
    if isinstance(node, ast.Assign) and _mentions(node.value, foreign):
        yield from (
            each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)
        )


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _find_trusted(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assert):
        yield node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    elif isinstance(node, ast.Expr):
        yield node.value


def _first(function: ast.expr) -> str:
    """Return the first name of an expression such as `a.b.c`."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
