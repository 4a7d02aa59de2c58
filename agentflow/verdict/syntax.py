"""Code as several modules read it: Python as syntax trees, other languages as tokens."""

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.core.languages import C_FAMILY, RUST, SCRIPTS, TYPESCRIPT, Lexer, find_lexer
from agentflow.core.record import Record
from agentflow.core.regex import regex

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""The errors that Python raises for a text that is no code, or too deep to look at."""
_MOST_LEVELS = 1_000
_FRAMES = 10_000
"""The depth to which Python may call itself; a level of a tree takes up to six calls to be copied."""
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Definition = AnyFunction | ast.ClassDef


def read_python(text: str) -> ast.Module | None:
    """Return the tree of Python code; None for a text that is none, or too deep to look at."""
    try:
        return _read_levels(text)
    except NO_PYTHON:
        return None


def parse_python(text: str) -> ast.Module:
    """Return the tree of Python code; an empty one for a text that cannot be parsed."""
    return read_python(text) or ast.Module(body=[], type_ignores=[])


def is_too_deep(text: str) -> bool:
    """Tell whether a text may be Python code whose expressions or branches lie too deep to look at."""
    try:
        _read_levels(text)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        pass
    return False


def _read_levels(text: str) -> ast.Module:
    """Return the tree of Python code, if what follows can walk through it."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
    with warnings.catch_warnings(action="ignore"):
        tree = ast.parse(text)
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_LEVELS):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise RecursionError


def has_kind(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Tell whether code has a part of one of these kinds."""
    return any(isinstance(each, kinds) for each in ast.walk(node))


def words_of(tree: ast.AST) -> frozenset[str]:
    """Return all words of code, those of its texts too."""
    return frozenset(re.findall(r"\w+", ast.unparse(tree)))


def last_word(node: ast.AST) -> str:
    """Return the name of a variable or an attribute; empty for any other code."""
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
        case _:
            return ""


def list_variables(node: ast.AST) -> list[str]:
    """Return the names that code uses as variables, each as often as it stands there."""
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def list_strings(*nodes: ast.AST) -> list[str]:
    """Return the strings in code, its docstrings too."""
    found = (each.value for node in nodes for each in ast.walk(node) if isinstance(each, ast.Constant))
    return [value for value in found if isinstance(value, str)]


def parameters_of(node: AnyFunction | ast.Lambda) -> list[ast.arg]:
    """Return the parameters of a function."""
    given = node.args
    found = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [each for each in found if each is not None]


def list_parameters(node: AnyFunction | ast.Lambda) -> list[str]:
    """Return the names of the parameters of a function."""
    return [each.arg for each in parameters_of(node)]


def name_imported(name: ast.alias) -> str:
    """Return the name that a part of an import binds."""
    return (name.asname or name.name).partition(".")[0]


def home_of(node: ast.ImportFrom, path: str) -> str:
    """Return the module that names are imported from, as seen from the top of the repository."""
    if not node.level:
        return node.module or ""
    folders = PurePosixPath(path).parts[: -node.level]
    return ".".join((*folders, *([node.module] if node.module else [])))


def files_of(module: str, tops: Iterable[str] = ("", "src/")) -> Iterator[str]:
    """Yield the paths at which a module may lie."""
    place = module.replace(".", "/")
    yield from (f"{top}{place}{end}" for top in tops for end in (".py", "/__init__.py"))


def is_constant(node: ast.stmt | None) -> bool:
    """Tell whether a statement is nothing but a constant, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def behind_docstring(node: ast.Module | Definition) -> int:
    """Return the place of the first statement behind the docstring."""
    return int(ast.get_docstring(node, clean=False) is not None)


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, with its decorators."""
    marks: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in marks)])


_LOOKS_UP = frozenset({"globals", "vars", "locals", "eval", "exec", "__import__", "dir"})
_LOOKS_UP_IN = frozenset({"__dict__", "import_module", "getmembers", "attrgetter", "methodcaller"})
"""Attributes that look up a name; the words above are often a program's own as attributes."""
_BY_NAME = frozenset(
    {
        *(*_LOOKS_UP, *_LOOKS_UP_IN, "getattr", "setattr", "hasattr", "delattr", "getattr_static"),
        *("compile", "importlib", "__getattr__", "__getattribute__", "__qualname__", "__subclasses__"),
        *("modules", "inspect", "pickle", "cloudpickle", "dill", "shelve", "copyreg", "joblib", "runpy"),
        *("pkgutil", "singledispatch", "co_name", "_getframe", "currentframe", "get_type_hints", "fire"),
        *("pydoc", "rpyc", "xmlrpc", "ctypes"),
    }
)
"""Names whose use may reach other code by its name."""
_RESOURCES = frozenset({"importlib", "resources", "metadata", "files", "as_file", "version", "distribution"})
"""Imports by which code reads files and versions of packages, and no function."""


def looks_up(text: str) -> bool:
    """Tell whether code may look up a function by a computed name; a name that it spells out is a word."""
    tree = read_python(text)
    if tree is None:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]) if not isinstance(
                name, ast.Constant
            ):
                return True
            case ast.Name(id=word) if word in _LOOKS_UP | _LOOKS_UP_IN:
                return True
            case ast.Attribute(attr=word) if word in _LOOKS_UP_IN:
                return True
            case _:
                pass
    return False


def reaches_by_name(tree: ast.Module) -> bool:
    """Tell whether code may look up a function by any name, or expose its name."""
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


# other languages than Python

_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""
OPENS: Mapping[str, str] = MappingProxyType({"(": ")", "[": "]", "{": "}"})
CLOSES = frozenset(OPENS.values())


def split_program(path: str, text: str) -> list[tuple[str, str]] | None:
    """Return a program as its comments, strings and code, each by its kind; None where that is unsure."""
    language = find_lexer(path)
    if language is None or _CONTROL.search(text) or re.search(language.odd, text):
        return None
    parts = list(_split(language, text))
    return parts if "".join(part for _, part in parts) == text else None


def _split(language: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a file up to the first that no rule matches."""
    pattern, place = _pattern(language), 0
    while found := pattern.match(text, place):
        yield found.lastgroup or "", found[0]
        place = found.end()


@cache
def _pattern(language: Lexer) -> re.Pattern[str]:
    strings = "|".join(language.strings)
    return re.compile(
        rf"(?P<comment>{language.comment})|(?P<string>{strings})|(?P<code>{language.code})", re.DOTALL
    )


def blank_out(path: str, text: str, string: str = " ") -> str | None:
    """Return a program with blanks for its comments and a sign for each of its strings' characters.

    Its lines are kept. None where it cannot be read.
    """
    parts = split_program(path, text)
    if parts is None:
        return None
    signs = {"comment": " ", "string": string}
    return "".join(re.sub(r"[^\n]", signs[kind], part) if kind in signs else part for kind, part in parts)


class Tokens(Record):
    """A program as tokens, with what brackets enclose each."""

    path: str
    text: str
    bare: str
    """The text with signs for comments and strings, of which the tokens are pieces."""
    words: tuple[str, ...]
    places: tuple[int, ...]
    """The offset of each token in the text."""
    partners: Mapping[int, int]
    """The matching bracket of each bracket."""
    around: tuple[int, ...]
    """The innermost bracket in which each token stands; -1 for none."""

    @property
    def is_c(self) -> bool:
        return self.path.endswith(C_FAMILY)

    @property
    def is_rust(self) -> bool:
        return self.path.endswith(RUST)

    @property
    def is_script(self) -> bool:
        return self.path.endswith(SCRIPTS)

    @property
    def has_types(self) -> bool:
        return self.path.endswith(TYPESCRIPT)

    def word(self, place: int) -> str:
        """Return a token; empty where there is none."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def end(self, place: int) -> int:
        """Return the offset in the text at which a token ends."""
        return self.places[place] + len(self.words[place])

    def places_of(self, name: str) -> list[int]:
        return [place for place, word in enumerate(self.words) if word == name]


def to_tokens(path: str, text: str, bare: str, token: re.Pattern[str]) -> Tokens | None:
    """Return a program as the tokens of its bare text; None where its brackets do not match."""
    found = list(token.finditer(bare))
    words = tuple(each[0] for each in found)
    partners, around, opened = dict[int, int](), list[int](), list[int]()
    for place, word in enumerate(words):
        if word in CLOSES:
            if not opened or OPENS[words[opened[-1]]] != word:
                return None
            begin = opened.pop()
            partners |= {begin: place, place: begin}
        around.append(opened[-1] if opened else -1)
        if word in OPENS:
            opened.append(place)
    if opened:
        return None
    places = tuple(each.start() for each in found)
    return Tokens(
        path=path, text=text, bare=bare, words=words, places=places, partners=partners, around=tuple(around)
    )
