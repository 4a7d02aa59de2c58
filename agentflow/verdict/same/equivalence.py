"""Same behaviour: whether the changed files leave what the code does as it was."""

import ast
import builtins
import collections.abc
import re
import symtable
import typing
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, MappingProxyType

from agentflow.core.regex import regex
from agentflow.verdict.same.comments import is_equal_but_comments
from agentflow.verdict.same.naming import is_equal_but_locals
from agentflow.verdict.same.own_texts import reads_own_texts
from agentflow.verdict.same.unused import sort_imports, take_out_unused
from agentflow.verdict.surface import is_document
from agentflow.verdict.syntax import (
    NO_PYTHON,
    AnyFunction,
    Definition,
    find_parameters,
    list_words,
    name_imported,
    skip_docstring,
)
from agentflow.workspace.mixed_tree import ChangedTexts

_DESCRIBES = frozenset({"description", "authors", "maintainers", "keywords", "classifiers", "urls"})
"""Keys of a manifest that describe a project to people."""
_OBEYED = regex(
    r"#.*(?:\b(?:noqa|pragma|pylint|ruff|flake8|mypy|pyright|pyre|ty|type|nosec|nosemgrep|fmt|isort|yapf|doctest)\b"
    r"|ignore|disable|skip|coding[:=]|/// )"
)
"""Comments that tools act on."""
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "override", "abstractmethod"})
_ARITY: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("list", "set", "frozenset", "type", "List", "Set", "Type", "Optional"), 1),
        **dict.fromkeys(("Sequence", "Iterable", "Iterator", "Collection"), 1),
        **dict.fromkeys(("dict", "Dict", "Mapping", "MutableMapping"), 2),
    }
)
"""The number of parameters of each generic class that a hint may name."""
_MAKES_HELP = frozenset({"SUPPRESS", "_actions", "format_help", "format_usage", "Action"})
"""Names whose use does more with the help of an option than show it."""
_SHOWN = {"add_argument": ("help",), "add_parser": ("help",), "ArgumentParser": ("description", "epilog")}
"""Arguments of argparse that are only shown to people."""
_PLAIN, _EXECUTABLE = "100644", "100755"


def is_same_behaviour(changes: Iterable[ChangedTexts], own: Collection[str] = ()) -> bool:
    """Return whether every changed file is a document, or code that does the same.

    Comments may differ in any language that is known; in Python docstrings, formatting and annotations too,
    where nothing in the file reads them, and the order of imports from the standard library. `own` are the
    names of the repository's modules and folders.
    """
    found, own = tuple(changes), frozenset(own)
    return bool(found) and all(
        is_document(each)
        or is_description(each)
        or (is_equal_but_examples(each, own) and _examples(each.before) == _examples(each.after))
        or _is_equal_but_comments(each)
        for each in found
    )


def _is_equal_but_comments(change: ChangedTexts) -> bool:
    is_plain = change.is_whole and set(change.modes) in ({_PLAIN}, {_EXECUTABLE})
    if not is_plain or change.path.endswith(".py"):  # whose docstrings and annotations may run
        return False
    return is_equal_but_comments(change.path, change.before, change.after) or is_equal_but_locals(change)


@lru_cache(maxsize=16)
def is_equal_but_examples(change: ChangedTexts, own: frozenset[str] = frozenset()) -> bool:
    """Return whether Python code does the same, without comparing the examples in its docstrings."""
    before, after = change.before, change.after
    is_code = change.path.endswith(".py") and change.is_whole and before != after
    if not is_code or set(change.modes) not in ({_PLAIN}, {_EXECUTABLE}) or _marks(before) != _marks(after):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(after, change.path, "exec", dont_inherit=True)  # a tree alone may still be no program
            old, new = ast.parse(before), ast.parse(after)
        reads_texts = any(map(reads_own_texts, (old, new)))
        if not reads_texts:
            was, now = _Bare(old), _Bare(new)
            take_out_unused(old, new, own)
            _take_out_imports(new, before)
            old, new = was.visit(old), now.visit(new)
        sort_imports(old, own)
        sort_imports(new, own)
        for side in (old, new):
            _blank_help(side)
        return _is_alike(old, new)
    except NO_PYTHON:  # no Python, or too deep to compare
        return False


def _is_alike(old: ast.Module, new: ast.Module) -> bool:
    """Return whether two programs are the same but for names of local variables."""
    bare = [_without_local_names(ast.parse(text), text) for text in map(ast.unparse, (old, new))]
    return len({ast.dump(each) for each in bare}) == 1 or len(set(map(_compile, bare))) == 1


def _compile(tree: ast.Module) -> tuple[object, ...]:
    """Return the instructions of a program, with its assertions and without; lines do not count."""
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            place = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}
            vars(node).update(place)
    return tuple(_list_parts(compile(tree, "", "exec", dont_inherit=True, optimize=each)) for each in (0, 1))


def _list_parts(code: CodeType) -> tuple[object, ...]:
    """Return all that running a code object depends on."""
    constants = (_list_parts(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, code.co_exceptiontable, *counts, *names, *constants)


def _blank_help(side: ast.Module) -> None:
    """Remove the help texts of argparse, but keep their placeholders."""
    words = list_words(side)
    if "argparse" not in words or not _MAKES_HELP.isdisjoint(words):
        return
    for node in ast.walk(side):
        match node:
            case ast.Call(func=ast.Attribute(attr=word)) if word in _SHOWN:
                for each in node.keywords:
                    if each.arg in _SHOWN[word]:
                        each.value = _blank(each.value)
            case _:
                pass


def _blank(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value.strip():
        return node
    return ast.Constant(value=" ".join(["told", *re.findall(r"%(?:\(\w*\))?.?", node.value)]))


def is_description(change: ChangedTexts) -> bool:
    """Return whether a project's manifest differs only in how it describes the project."""
    if change.path != "pyproject.toml" or set(change.modes) != {_PLAIN}:
        return False
    from tomllib import loads  # noqa: PLC0415  # only where there is one

    try:
        sides = [loads(text) for text in (change.before, change.after)]
        for told in (side.get("project", {}) for side in sides):
            for key in _DESCRIBES & told.keys():
                del told[key]
    except (ValueError, AttributeError, TypeError):
        return False
    return sides[0] == sides[1]


def _examples(text: str) -> list[object]:
    """Return the examples in docstrings; of code that cannot be parsed, the text."""
    from doctest import DocTestParser  # noqa: PLC0415  # it loads a debugger and a test runner

    try:
        texts = [
            ast.get_docstring(node) or ""
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Module | Definition)
        ]
        found = (each for docstring in texts for each in DocTestParser().get_examples(docstring))
        return [(each.source, each.want, sorted(each.options.items())) for each in found]
    except NO_PYTHON:
        return [text]


def _marks(text: str) -> list[str]:
    """Return what tools act on beside the code: a script's first line, comments, ends of lines."""
    first = text.split("\n", 1)[0] if text.startswith("#!") else ""
    told = re.findall(r"(?m)^#.*", text) if "# /// " in text else []  # a script says there what it needs
    return [first, str(text.count("\r")), *told, *(found[0] for found in _OBEYED.finditer(text))]


class _Bare(ast.NodeTransformer):
    """Takes out docstrings, and annotations that raise nothing when they are evaluated."""

    def __init__(self, tree: ast.Module) -> None:
        imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
        names = ((node.module, each.name) for node in imports for each in node.names)
        self._is_lazy = ("__future__", "annotations") in names
        nodes = tuple(ast.walk(tree))
        self._rebound = {
            each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        self._rebound |= {each.name for each in nodes if isinstance(each, Definition)}
        self._known = {name: line for line, name in reversed(list(_names_bound(tree)))}

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = node.body[skip_docstring(node) :]
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if not node.decorator_list:
            node.body = node.body[skip_docstring(node) :] or [ast.Pass()]
        node.body = [
            self.visit(each) if isinstance(each, Definition) else each for each in node.body
        ]  # annotated names of a class may be fields
        return node

    def visit_FunctionDef(self, node: AnyFunction) -> AnyFunction:
        if _is_plain(node):
            node.body = node.body[skip_docstring(node) :] or [ast.Pass()]
            self._strip_annotations(node)
        self.generic_visit(node)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        is_plain = node.value is not None and isinstance(node.target, ast.Name)
        if node.value is None or not is_plain or not self._is_harmless(node.annotation):
            return node
        return ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno)

    def _strip_annotations(self, node: AnyFunction) -> None:
        for each in find_parameters(node):
            if each.annotation is not None and self._is_harmless(each.annotation):
                each.annotation = None
        if node.returns is not None and self._is_harmless(node.returns):
            node.returns = None

    def _is_harmless(self, node: ast.expr) -> bool:
        """Return whether evaluating an annotation cannot raise."""
        if self._is_lazy or (isinstance(node, ast.Constant) and isinstance(node.value, str | None)):
            return True
        match node:
            case ast.Name():
                return self._is_builtin(node.id) or self._known.get(node.id, 1 << 60) < node.lineno
            case ast.Subscript(value=ast.Name(id=name) as generic, slice=inner) if name in _ARITY:
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                is_right = self._is_harmless(generic) and len(parts) == _ARITY[name]
                return is_right and all(self._is_harmless(each) for each in parts)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return self._is_joinable(left) and self._is_joinable(right)
            case _:
                return False

    def _is_joinable(self, node: ast.expr) -> bool:
        """Return whether an annotation can stand beside `|`."""
        match node:
            case ast.Constant(value=None):
                return True
            case ast.Name(id=name):
                return self._is_builtin(name)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._is_builtin(name) and self._is_harmless(node)
            case ast.BinOp():
                return self._is_harmless(node)
            case _:
                return False

    def _is_builtin(self, name: str) -> bool:
        is_class = isinstance(getattr(builtins, name, None), type)
        return is_class and name not in self._rebound and name not in self._known


def _is_plain(node: Definition) -> bool:
    return all(isinstance(each, ast.Name) and each.id in _PLAIN_DECORATORS for each in node.decorator_list)


def _names_bound(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that imports and classes bind at the top of a module, with their lines."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, name_imported(each)) for each in node.names)
        elif isinstance(node, ast.ClassDef):
            yield node.end_lineno or node.lineno, node.name


def _take_out_imports(tree: ast.Module, before: str) -> None:
    """Take out names that are imported for annotations, stood nowhere before and can be imported."""
    known, seen = set(re.findall(r"\w+", before)), set[str]()
    may_be_lazy = not _keeps_annotations(tree)
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        for each in tuple(node.names):
            is_new = each.asname is None and each.name not in known | seen
            if is_new and _can_import(node.module or "", each.name, may_be_lazy=may_be_lazy):
                seen.add(each.name)
                node.names.remove(each)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and not node.names)]


def _can_import(module: str, name: str, *, may_be_lazy: bool) -> bool:
    if module == "__future__":
        return name == "annotations" and may_be_lazy
    homes = {"typing": typing, "collections.abc": collections.abc}
    return module in homes and hasattr(homes[module], name)


def _keeps_annotations(tree: ast.Module) -> bool:
    """Return whether a decorator may read annotations: of fields, or of a function that it changes."""
    nodes = [each for each in ast.walk(tree) if isinstance(each, Definition)]
    fields = (part for each in nodes if isinstance(each, ast.ClassDef) for part in each.body)
    return any(isinstance(part, ast.AnnAssign) for part in fields) or not all(map(_is_plain, nodes))


_READS_NAMES = frozenset(
    {
        *("locals", "vars", "eval", "exec", "dir", "f_locals"),
        *("_getframe", "currentframe", "inspect", "stack", "trace"),
    }
)
"""Names whose use may read the names of local variables."""
_BINDING: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"),
        ast.Name: "id",
        ast.MatchMapping: "rest",
    }
)
"""The field in which a node names a variable."""
_Functions = dict[tuple[str, int], frozenset[str]]


def _without_local_names(tree: ast.Module, text: str) -> ast.Module:
    """Return code in which local variables are numbered; parameters keep theirs."""
    words = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree)}
    if not _READS_NAMES.isdisjoint(words):
        return tree
    functions = _Functions()
    _collect(symtable.symtable(text, "code", "exec"), functions)
    for node in ast.walk(tree):
        if isinstance(node, AnyFunction):
            _number(node, functions.get((node.name, node.lineno), frozenset()))
    return tree


def _collect(table: symtable.SymbolTable, functions: _Functions) -> None:
    """Collect the names that only one function knows."""
    if isinstance(table, symtable.Function) and not table.get_children():
        names = (each for each in table.get_symbols() if each.is_local() and not each.is_parameter())
        functions[table.get_name(), table.get_lineno()] = frozenset(
            each.get_name() for each in names if not each.is_imported() and not each.is_global()
        )
    for child in table.get_children():
        _collect(child, functions)


def _number(function: AnyFunction, names: frozenset[str]) -> None:
    """Give the local variables of a function numbers in the order in which they stand."""
    numbers = dict[str, str]()
    for node in ast.walk(function):
        field = _BINDING.get(type(node), "")
        if (name := getattr(node, field, None)) in names:
            setattr(node, field, numbers.setdefault(name, f"{len(numbers)}"))
