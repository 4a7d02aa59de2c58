"""Python code as syntax trees: how it is read, and what its parts name."""

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""The errors that Python raises for a text that is no code, or too deep to look at."""
_MOST_LEVELS = 1_000
_FRAMES = 10_000
"""The depth to which Python may call itself; a level of a tree takes up to six calls to be copied."""
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Definition = AnyFunction | ast.ClassDef


def read_python(text: str) -> ast.Module | None:
    """Return the tree of Python code; None for a text that is none, or too deep to look at."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.removeprefix("\ufeff"))
    except NO_PYTHON:
        return None
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    return None


def parse_python(text: str) -> ast.Module:
    """Return the tree of Python code; an empty one for a text that cannot be parsed."""
    return read_python(text) or ast.Module(body=[], type_ignores=[])


def list_words(tree: ast.AST) -> frozenset[str]:
    """Return all words of code, those of its texts too."""
    return frozenset(re.findall(r"\w+", ast.unparse(tree)))


def get_last_word(node: ast.AST) -> str:
    """Return the name of a variable or an attribute; empty for any other code."""
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
        case _:
            return ""


def list_variables(node: ast.AST) -> list[str]:
    """Return the names that code uses as variables, each as often as it stands there."""
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def find_parameters(node: AnyFunction | ast.Lambda) -> list[ast.arg]:
    given = node.args
    found = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [each for each in found if each is not None]


def name_imported(name: ast.alias) -> str:
    """Return the name that a part of an import binds."""
    return (name.asname or name.name).partition(".")[0]


def find_home_module(node: ast.ImportFrom, path: str) -> str:
    """Return the module that names are imported from, as seen from the top of the repository."""
    if not node.level:
        return node.module or ""
    folders = PurePosixPath(path).parts[: -node.level]
    return ".".join((*folders, *([node.module] if node.module else [])))


def list_module_paths(module: str, tops: Iterable[str] = ("", "src/")) -> Iterator[str]:
    """Yield the paths at which a module may lie."""
    place = module.replace(".", "/")
    yield from (f"{top}{place}{end}" for top in tops for end in (".py", "/__init__.py"))


def is_literal(node: ast.expr) -> bool:
    """Return whether an expression is made of constants, and so has no effect."""
    try:
        ast.literal_eval(node)
    except (*NO_PYTHON, TypeError):
        return False
    return True


def is_constant(node: ast.stmt | None) -> bool:
    """Return whether a statement is nothing but a constant, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def skip_docstring(node: ast.Module | Definition) -> int:
    """Return the place of the first statement behind the docstring."""
    return int(ast.get_docstring(node, clean=False) is not None)


def find_first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, with its decorators."""
    marks: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in marks)])


_BY_NAME = frozenset(
    {
        *("globals", "vars", "locals", "eval", "exec", "__import__", "dir", "__dict__", "import_module"),
        *("getmembers", "attrgetter", "methodcaller", "getattr", "setattr", "hasattr", "delattr"),
        *("getattr_static", "compile", "importlib", "__getattr__", "__getattribute__", "__qualname__"),
        "__subclasses__",
        *("modules", "inspect", "pickle", "cloudpickle", "dill", "shelve", "copyreg", "joblib", "runpy"),
        *("pkgutil", "singledispatch", "co_name", "_getframe", "currentframe", "get_type_hints", "fire"),
        *("pydoc", "rpyc", "xmlrpc", "ctypes"),
    }
)
"""Names whose use may reach other code by its name."""
_RESOURCES = frozenset({"importlib", "resources", "metadata", "files", "as_file", "version", "distribution"})
"""Imports by which code reads files and versions of packages, and no function."""


def may_reach_by_name(tree: ast.Module) -> bool:
    """Return whether code may look up a function by any name, or expose its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) if word in _BY_NAME:
                return True
            case ast.Attribute(value=ast.Name(id="re"), attr="compile"):
                pass
            case ast.Attribute(attr=word) if word in _BY_NAME or word == "__name__":
                return True
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                home = getattr(node, "module", None) or ""
                told = {part for each in names for part in (*each.name.split("."), *home.split("."))}
                if home.startswith("importlib") and told <= _RESOURCES:
                    continue
                if "*" in told or not _BY_NAME.isdisjoint(told):
                    return True
            case _:
                pass
    return False
