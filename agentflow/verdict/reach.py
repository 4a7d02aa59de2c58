"""Uses between source files: what the product consists of, and what only checks use."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath

from agentflow.core.languages import COMPONENTS, GO, SCRIPTS, is_source, may_be_shell
from agentflow.core.regex import regex
from agentflow.core.test_ids import find_test_files
from agentflow.verdict.syntax import (
    AnyFunction,
    find_home_module,
    find_parameters,
    get_last_word,
    is_constant,
    list_module_paths,
    list_variables,
    parse_python,
)

_WEB = (*SCRIPTS, *COMPONENTS)
"""Endings of files that import each other, also without the ending."""
_NAMED = regex(
    r"(?:from|import|require|source|include|mod|use|load)\b[\s({\"'<]*([\w./@-]+)|[\"'<]([\w./@-]+)[\"'>]"
)
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
_PACKAGE_FILES = regex(r"\"(?:main|module|types|browser|bin|exports)\"\s*:\s*(\{[^}]*\}|\"[^\"]*\")")
_FILE = regex(r"[\"']((?:[\w.-]+/)*[\w-]+\.\w+)[\"']")
_SHELL_FILE = regex(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+(?:\.\w+)?)(?![\w./-])")
_QUOTED = regex(r"\"([^\"]+)\"")
_TOPS = ("", "src/", "lib/")
_LIBRARIES = ("src/", "lib/", "app/", "cmd/", "internal/", "pkg/")
_FRAMEWORK = regex(r"(?m)^(?:import|from) (?:pytest|unittest)\b|\braise AssertionError\b")
_ASSERTING = ("assert_", "check_", "expect_")
_RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_GO_NAME = regex(r"(?m)^(?:func|type|var|const)[ \t]+(\w+)")
_WORD = regex(r"[A-Za-z_]\w*")

Graph = Mapping[str, frozenset[str]]


def find_leads(texts: Mapping[str, str]) -> Graph:
    """Return the files that each source file names in its imports, includes and strings."""
    known = frozenset(texts)
    packages = _find_packages({path: text for path, text in texts.items() if path.endswith(GO)})
    leads = {path: packages.get(path) or {*_leads(path, text, known)} for path, text in texts.items()}
    return {path: frozenset(named) - {path} for path, named in leads.items()}


def _find_packages(texts: Mapping[str, str]) -> Mapping[str, set[str]]:
    folders: dict[str, set[str]] = {}
    for path in texts:
        folders.setdefault(path.rpartition("/")[0], set()).add(path)
    defined = {path: frozenset(_GO_NAME.findall(text)) for path, text in texts.items()}
    found: dict[str, set[str]] = {}
    for path, text in texts.items():
        words = frozenset(_WORD.findall(text))
        found[path] = {each for each in folders[path.rpartition("/")[0]] if defined[each] & words}
        for name in _QUOTED.findall(text):
            ends = accumulate(reversed(name.split("/")[1:]), lambda end, part: f"{part}/{end}")
            found[path] |= folders.get(
                max((end for end in ends if end in folders), key=len, default=name), set()
            )
    return found


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
    texts: Mapping[str, str], leads: Graph, checks: Collection[str], new: Collection[str] = ()
) -> Mapping[str, str]:
    """Return the source files that only checks use, and that judge or feed them, each with the reason.

    A file is one if it asserts, if the results of other code meet it in a test, or if it lies outside of a
    package without which no test uses it. What a test tries by itself is product.
    """
    own = {path for path in leads if path not in checks and is_source(path)}
    inner = {path: leads[path] & own for path in own}
    tests = {path: leads[path] for path in checks if path in leads}
    product = find_reachable(inner, find_declared(texts, own))
    users = _turn_round({**inner, **tests})
    left = (find_reachable({**inner, **tests}, tests) & own) - product
    outside = frozenset(left - {*new}) & _find_outside(texts, tests, users, product)
    found: dict[str, str] = {}
    while more := {
        path
        for path in left - found.keys()
        if users[path] <= tests.keys() | found.keys()
        and (
            path in outside
            or _is_aid(path, texts, {by: leads[by] & own for by in users[path] & tests.keys()})
        )
    }:
        for path in more:
            by = min((each for each in tests if path in leads[each]), default="")
            found[path] = f"only checks lead to it: {by}" if by else "only checks lead to it"
    is_all = not own - found.keys()
    return {} if is_all else found


def _find_outside(
    texts: Mapping[str, str], tests: Graph, users: Graph, product: Collection[str]
) -> frozenset[str]:
    used = frozenset[str]().union(*tests.values())
    first = {
        path for path in tests if path not in used and is_source(path) and not path.endswith("conftest.py")
    }
    with_product = find_reachable(users, product) & first
    apart = (path for path in users if path not in product and not _is_packaged(path, texts, product))
    return frozenset(
        path
        for path in apart
        if with_product
        and any(_is_kin(path, other) for other in product)
        and find_reachable(users, (path,)) & first <= with_product
    )


def _turn_round(leads: Graph) -> Graph:
    found: dict[str, set[str]] = {path: set() for path in leads}
    for path, named in leads.items():
        for each in named:
            found.setdefault(each, set()).add(path)
    return {path: frozenset(users) for path, users in found.items()}


def find_holders(
    texts: Mapping[str, str], leads: Graph, checks: Collection[str], tests: Collection[str]
) -> Mapping[str, str]:
    """Return the sources that no other code uses and that hold tests which ran, each with the reason.

    A source holds them by their ids where it uses other code, too, or alone contains the name of one.
    """
    own = {path: text for path, text in texts.items() if path not in checks and is_source(path)}
    used = find_declared(texts, own).union(*(leads[path] for path in own))
    apart = own.keys() - used
    found: dict[str, str] = {}
    for test, path in sorted(find_test_files(own, filter(_is_in_code, tests)).items()):
        if path in apart and not leads[path].isdisjoint(own):
            found[path] = f"holds a test: {test}"
    for name in sorted(test for test in tests if "::" not in test):
        saying = [path for path, text in texts.items() if f'"{name}"' in text or f"'{name}'" in text]
        if len(saying) == 1 and saying[0] in apart:
            found[saying[0]] = f"contains the name of a test: {name}"
    return found


def _is_in_code(test: str) -> bool:
    """Return whether a test is code, by its id, and not an example in a docstring."""
    file, _, inside = test.partition("[")[0].partition("::")
    return "." not in inside if inside else file.rpartition(".")[2].startswith("test")


def _is_kin(path: str, other: str) -> bool:
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


def find_declared(texts: Mapping[str, str], own: Collection[str]) -> set[str]:
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
    folder = PurePosixPath(path).parent
    if path.endswith("__init__.py"):
        return f"{folder.parent}/__init__.py".removeprefix("./") not in texts
    is_library = not path.endswith(".py") and not may_be_shell(path) and path.startswith(_LIBRARIES)
    return is_library and not _asserts(path, texts[path])


def _is_packaged(path: str, texts: Mapping[str, str], product: Collection[str]) -> bool:
    folder = PurePosixPath(path).parent
    if path.endswith(".py") and f"{folder}/__init__.py".removeprefix("./") not in texts:
        return path.startswith("src/")
    return any(PurePosixPath(other).parent == folder for other in product)


def _is_aid(path: str, texts: Mapping[str, str], users: Graph) -> bool:
    """Return whether a module asserts, or the results of other code meet it in the tests that use it."""
    if _asserts(path, texts[path]):
        return True
    others = frozenset[str]().union(*users.values()) - {path}
    if not path.endswith(".py"):
        return bool(others) and any(_compares(path, texts[path], texts[by]) for by in users)
    trees = [parse_python(texts[by]) for by in users if by.endswith(".py")]
    if not trees or not others:
        return any(_inherits(tree, _names_from(tree, {path})) for tree in trees)
    named = [(tree, _names_from(tree, {path}), _names_from(tree, others)) for tree in trees]
    if _holds_values(texts[path]):
        return any(_is_expected(tree, *names) for tree, *names in named)
    said = [_find_answers(tree, *names) for tree, *names in named]
    is_believed = all(len(answers) == 1 and None not in answers for answers in said)
    return any(_inherits(tree, own) for tree, own, _ in named) or (
        is_believed and len(set().union(*said)) == 1
    )


def _asserts(path: str, text: str) -> bool:
    if not path.endswith(".py"):
        return bool(_ASSERTS_ELSEWHERE.search(text))
    functions = (node for node in parse_python(text).body if isinstance(node, AnyFunction))
    return bool(_FRAMEWORK.search(text)) or any(
        node.name.startswith(_ASSERTING) and any(isinstance(each, ast.Assert) for each in ast.walk(node))
        for node in functions
    )


def _compares(path: str, text: str, test: str) -> bool:
    names = {PurePosixPath(path).stem, *(name for found in _DEFINED.findall(text) for name in found if name)}
    called = rf"(?m)(?:^|=>|[;{{!(])[ \t]*(?:{'|'.join(map(re.escape, names))})"
    return bool(re.search(rf"{called}(?:\([ \t]*(?:await )?[\w.:]+\(|[ \t][^\n]*(?:\$\(|`))", test))


def _holds_values(text: str) -> bool:
    nodes = [
        node
        for node in parse_python(text).body
        if not (isinstance(node, ast.Import | ast.ImportFrom) or is_constant(node))
    ]
    return bool(nodes) and all(isinstance(node, ast.Assign | ast.AnnAssign) for node in nodes)


def _inherits(tree: ast.Module, own: Collection[str]) -> bool:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return any(
        any(isinstance(each, AnyFunction) and each.name.startswith("test") for each in node.body)
        and any(_mentions(base, own) for base in node.bases)
        for node in classes
    )


def _is_expected(tree: ast.Module, own: set[str], foreign: set[str]) -> bool:
    own, foreign = _spread(tree, own), _spread(tree, foreign)
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=rest):
                sides = [left, *rest]
            case ast.Expr(value=ast.Call(args=args)):
                sides = args
            case _:
                continue
        theirs = [_mentions(side, foreign) for side in sides]
        mine = [_mentions(side, own) for side in sides]
        if any(theirs) and any(
            is_own and not is_other for is_own, is_other in zip(mine, theirs, strict=True)
        ):
            return True
    return False


def _find_answers(tree: ast.Module, own: set[str], foreign: set[str]) -> set[bool | None]:
    """Return which answers a test demands of the module about results of other code; None for other uses."""
    foreign = _spread(tree, foreign)
    demands: dict[int, bool] = {}
    for node in ast.walk(tree):  # what encloses others comes first
        for call, answer in _list_demands(node):
            demands.setdefault(id(call), answer)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _first(node.func) in own)
    return {demands.get(id(call)) if _mentions(call, foreign) else None for call in calls}


def _list_demands(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the expressions whose truth a statement demands, or which may fail by themselves, as it does."""
    match node:
        case ast.Assert(test=test):
            yield _settle(test, answer=True)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="assertTrue" | "assertFalse" as word), args=[test, *_])
        ):
            yield _settle(test, answer=word == "assertTrue")
        case ast.Expr(value=value):
            yield value, True
        case ast.With(items=items, body=body) if any(
            get_last_word(each.context_expr.func) in _RAISING
            for each in items
            if isinstance(each.context_expr, ast.Call)
        ):
            yield from ((each.value, False) for each in body if isinstance(each, ast.Expr))


def _settle(test: ast.expr, *, answer: bool) -> tuple[ast.expr, bool]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _settle(inner, answer=not answer)
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=bool() as value)]
        ):
            return _settle(left, answer=answer is value)
        case _:
            return test, answer


def _names_from(tree: ast.Module, paths: Collection[str]) -> set[str]:
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


def _spread(tree: ast.Module, names: Collection[str]) -> set[str]:
    """Return names, and the variables and parameters of a test whose values come from them."""
    found = {*names}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value) if _mentions(value, found):
                found |= {word for each in targets for word in list_variables(each)}
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if (
                _mentions(value, found)
            ):
                found |= {*list_variables(target)}
            case ast.FunctionDef() if any(_mentions(mark, found) for mark in node.decorator_list):
                found |= {each.arg for each in find_parameters(node)}
    return found


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(name in names for name in list_variables(node))


def _first(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
