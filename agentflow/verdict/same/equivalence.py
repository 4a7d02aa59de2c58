"""Same behaviour: whether the changed files leave what the code does as it was.

Python is compared by the instructions that its compiler makes, other languages by their syntax trees.
"""

import ast
import builtins
import collections.abc
import re
import sys
import typing
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, MappingProxyType

from agentflow.verdict.same.comments import is_equal_but_comments, list_obeyed
from agentflow.verdict.same.naming import is_equal_but_locals
from agentflow.verdict.surface import is_document
from agentflow.verdict.syntax import (
    NO_PYTHON,
    AnyFunction,
    Definition,
    find_parameters,
    get_last_word,
    list_words,
    name_imported,
    parse_python,
    read_python,
    skip_docstring,
)
from agentflow.workspace.mixed_tree import ChangedTexts

_PLAIN, _EXECUTABLE = "100644", "100755"
_DESCRIBES = frozenset({"description", "authors", "maintainers", "keywords", "classifiers", "urls"})
"""Keys of a manifest that describe a project to people."""
_OWN_DOCSTRING = "own __doc__"
_READ_DOCSTRINGS = frozenset({"__doc__", "getdoc", "get_docstring", "pydoc", "yacc"})
_READ_HINTS = frozenset(
    {
        *("__annotations__", "get_type_hints", "get_annotations", "getfullargspec", "pydoc"),
        *("annotation", "return_annotation", "singledispatch", "singledispatchmethod"),
    }
)
_READ_IN_A_FILE = frozenset(
    {
        *(*_READ_DOCSTRINGS, *_READ_HINTS, _OWN_DOCSTRING, "docopt", "getsource", "signature", "Cmd", "ply"),
        *("attr", "attrs", "beartype", "cattrs", "click", "dataclass_json", "fastapi", "fire", "injector"),
        *("msgspec", "pydantic", "strawberry", "typer"),
    }
)
"""Names whose use makes the docstrings or annotations of a file part of what it does."""
_PLACEHOLDER = re.compile(r"%(?:\(\w*\))?.?")
"""What the help of an option is filled in with."""
_READS_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir", "f_locals", "_getframe", "inspect"})
_PLAIN_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "override", "overload", "final", "abstractmethod"}
)
_HINTS = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.BitOr),
    ast.Load,
)
_FOR_HINTS: Mapping[str, object] = MappingProxyType({"typing": typing, "collections.abc": collections.abc})
_DOING = frozenset({"this", "antigravity", "readline", "rlcompleter", "site"})
"""Modules of the library that are imported for what they do."""


def is_same_behaviour(changes: Iterable[ChangedTexts], own: Collection[str] = ()) -> bool:
    """Return whether every changed file is a document, or code that does the same.

    `own` are the names of the repository's modules and folders.
    """
    found, names = tuple(changes), frozenset(own)
    return bool(found) and all(
        is_document(each) or is_description(each) or is_equal_code(each, names) for each in found
    )


@lru_cache(maxsize=16)
def is_equal_code(change: ChangedTexts, own: frozenset[str] = frozenset()) -> bool:
    """Return whether a file of code differs in nothing that runs."""
    is_plain = change.is_whole and set(change.modes) in ({_PLAIN}, {_EXECUTABLE})
    if not is_plain or change.before == change.after:
        return False
    if not change.path.endswith(".py"):
        return is_equal_but_comments(change.path, change.before, change.after) or is_equal_but_locals(change)
    before, after = (_read_program(change.path, text, own) for text in (change.before, change.after))
    return before is not None and before == after


def is_description(change: ChangedTexts) -> bool:
    """Return whether a project's manifest differs only in how it describes the project."""
    if change.path != "pyproject.toml" or set(change.modes) != {_PLAIN}:
        return False
    from tomllib import loads  # noqa: PLC0415  # only where there is one

    try:
        sides = [loads(text) for text in (change.before, change.after)]
        for project in (side.get("project", {}) for side in sides):
            for key in _DESCRIBES & project.keys():
                del project[key]
    except (ValueError, AttributeError, TypeError):
        return False
    return sides[0] == sides[1]


def _read_program(path: str, text: str, own: Collection[str]) -> tuple[object, ...] | None:
    """Return all that running Python code depends on, and the comments that tools obey."""
    obeyed, tree = list_obeyed(path, text), read_python(text)
    if obeyed is None or tree is None:
        return None
    try:
        examples = [line for each in _list_docstrings(tree) for line in _list_examples(each or "")]
        with warnings.catch_warnings(action="ignore"):
            compile(text, path, "exec", dont_inherit=True)  # a tree alone may still be no program
        if _READ_IN_A_FILE.isdisjoint(_list_names(tree)):
            tree = _Bare(tree).visit(tree)
            _drop_unused(tree, own)
        tree.body = [*_sort_imports(tree.body, own)]
        for node in ast.walk(ast.fix_missing_locations(tree)):
            if hasattr(node, "lineno"):  # a line of its own may take an instruction
                vars(node).update(lineno=1, end_lineno=1, col_offset=0, end_col_offset=0)
        is_free = _READS_LOCALS.isdisjoint(list_words(tree))
        programs = (compile(tree, "", "exec", dont_inherit=True, optimize=each) for each in (0, 1))
        return (obeyed, *examples, *(_list_parts(each, with_locals=not is_free) for each in programs))
    except NO_PYTHON:
        return None


def _list_examples(docstring: str) -> Iterator[object]:
    """Yield the examples of a docstring, which a test may run."""
    if ">>>" in docstring:
        from doctest import DocTestParser  # noqa: PLC0415  # it loads a debugger and a test runner

        for each in DocTestParser().get_examples(docstring):
            yield each.source, each.want, sorted(each.options.items())


def _list_parts(code: CodeType, *, with_locals: bool) -> tuple[object, ...]:
    """Return the instructions of code and what they name; local variables only have numbers in them."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    constants = (
        _list_parts(each, with_locals=with_locals) if isinstance(each, CodeType) else repr(each)
        for each in code.co_consts
    )
    parameters = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames if with_locals else code.co_varnames[:parameters]
    bound = (code.co_name, code.co_names, code.co_nlocals, names, code.co_freevars, code.co_cellvars)
    return (code.co_code, code.co_exceptiontable, *counts, *bound, *constants)


class _Bare(ast.NodeTransformer):
    """Takes out docstrings, annotations that raise nothing when they are evaluated, and the words of help."""

    def __init__(self, tree: ast.Module) -> None:
        self._is_lazy = any(map(_is_lazy_import, tree.body))
        self._lines = {name: 0 for name, value in vars(builtins).items() if isinstance(value, type)}
        """Where each class or imported name is bound."""
        for node in reversed(tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._lines |= {name_imported(each): node.lineno for each in node.names}
            elif isinstance(node, ast.ClassDef):
                self._lines[node.name] = node.end_lineno or node.lineno
        for each in ast.walk(tree):
            is_bound = isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
            if is_bound or isinstance(each, AnyFunction):
                self._lines.pop(getattr(each, "id", getattr(each, "name", "")), None)

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
            for each in find_parameters(node):
                each.annotation = None if self._is_harmless(each.annotation) else each.annotation
            node.returns = None if self._is_harmless(node.returns) else node.returns
        self.generic_visit(node)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        bare = ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno)
        return bare if self._is_harmless(node.annotation) else node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        if node.arg in ("help", "epilog") and isinstance(node.value, ast.Constant) and node.value.value:
            node.value = ast.Constant(" ".join(["said", *_PLACEHOLDER.findall(str(node.value.value))]))
        return node

    def _is_harmless(self, annotation: ast.expr | None) -> bool:
        """Return whether evaluating an annotation does nothing: all its names are classes bound above."""
        if annotation is None or self._is_lazy:
            return True
        nodes = [*ast.walk(annotation)]
        joined = [each for node in nodes if isinstance(node, ast.BinOp) for each in (node.left, node.right)]
        return (
            all(isinstance(each, _HINTS) for each in nodes)
            and all(
                self._lines.get(each.id, sys.maxsize) < annotation.lineno
                for each in nodes
                if isinstance(each, ast.Name)
            )
            and not any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in joined)
        )


def _is_plain(node: Definition) -> bool:
    return all(get_last_word(each) in _PLAIN_DECORATORS for each in node.decorator_list)


def _is_lazy_import(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and [each.name for each in node.names] == ["annotations"]
    )


def _drop_unused(tree: ast.Module, own: Collection[str]) -> None:
    """Drop imports of the library and private functions that nothing in a module names."""
    nodes = [each for each in ast.walk(tree) if isinstance(each, Definition)]
    fields = (part for each in nodes if isinstance(each, ast.ClassDef) for part in each.body)
    if all(map(_is_plain, nodes)) and not any(isinstance(part, ast.AnnAssign) for part in fields):
        tree.body = [each for each in tree.body if not _is_lazy_import(each)]
    body = [part for each in tree.body for part in _split_import(each, own)]
    words = {id(each): list_words(each) for each in body}
    said = Counter(word for each in words.values() for word in each)
    while unused := [each for each in body if (name := _name_droppable(each, own)) and said[name] == 1]:
        body = [each for each in body if each not in unused]
        said.subtract(word for each in unused for word in words[id(each)])
    tree.body = body


def _name_droppable(node: ast.stmt, own: Collection[str]) -> str:
    """Return what a statement binds if it does nothing else; empty for any other."""
    match node:
        case ast.Import(names=[name]) if _is_of_library(node, own):
            return "" if "." in name.name else name_imported(name)
        case ast.ImportFrom(module=str() as module, names=[name]) if _is_of_library(node, own):
            return name_imported(name) if hasattr(_FOR_HINTS.get(module), name.name) else ""
        case ast.FunctionDef(name=name, decorator_list=[]) if own and name[:1] == "_" != name[1:2]:
            head = (node.args, *filter(None, [node.returns]))
            is_doing = any(isinstance(each, ast.Call) for part in head for each in ast.walk(part))
            return "" if is_doing else name
        case _:
            return ""


def _is_of_library(node: ast.stmt, own: Collection[str]) -> bool:
    """Return whether a statement imports from the standard library alone."""
    modules = list[str]()
    if isinstance(node, ast.Import):
        modules = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
        modules = [node.module or ""]
    tops = {module.partition(".")[0] for module in modules}
    known = sys.stdlib_module_names - {*own, *_DOING} if own else {"typing", "collections"}
    return bool(tops) and tops <= known


def _split_import(node: ast.stmt, own: Collection[str]) -> Iterator[ast.stmt]:
    """Yield an import of the library name by name, and any other statement as it is."""
    if not isinstance(node, ast.Import | ast.ImportFrom) or not _is_of_library(node, own):
        yield node
    elif isinstance(node, ast.Import):
        yield from (ast.Import(names=[each]) for each in node.names)
    else:
        yield from (ast.ImportFrom(node.module, [each], node.level) for each in node.names)


def _sort_imports(body: Iterable[ast.stmt], own: Collection[str]) -> Iterator[ast.stmt]:
    """Yield statements with the library's imports that follow each other in one order."""
    run = list[ast.stmt]()
    for node in body:
        if _is_of_library(node, own):
            run += _split_import(node, own)
        else:
            yield from (*_in_order(run), node)
            run = []
    yield from _in_order(run)


def _in_order(imports: list[ast.stmt]) -> list[ast.stmt]:
    """Return imports of one name each in one order, unless the last of two that bind a name counts."""
    sources = dict[str, str]()
    for node in imports:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        is_top = isinstance(node, ast.Import) and not node.names[0].asname
        source = "" if is_top else ast.dump(node)
        name = name_imported(node.names[0])
        if name == "*" or sources.setdefault(name, source) != source:
            return imports
    return sorted(imports, key=ast.dump)


def find_dropped_names(before: str, after: str) -> frozenset[str]:
    """Return the names that Python code bound at its top by imports and functions, and binds no more."""
    return frozenset(_list_bound(before) - _list_bound(after))


def _list_bound(text: str) -> set[str]:
    found = set[str]()
    for node in parse_python(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(map(name_imported, node.names))
        elif isinstance(node, AnyFunction):
            found.add(node.name)
    return found


def reads_texts_of_others(text: str, words: Collection[str]) -> bool:
    """Return whether code uses one of some words for more than its own module's docstring."""
    tree = read_python(text)
    return tree is None or not _list_names(tree).isdisjoint(words)


def find_reading_words(before: str, after: str) -> frozenset[str]:
    """Return the names by which other code may read the docstrings or annotations that differ."""
    sides = [read_python(text) for text in (before, after)]
    kinds = ((_READ_DOCSTRINGS, _list_docstrings), (_READ_HINTS, _list_hints))
    return frozenset[str]().union(
        *(
            words
            for words, list_texts in kinds
            if len({tuple(list_texts(side)) if side else None for side in sides}) > 1
        )
    )


def _list_docstrings(tree: ast.Module) -> Iterator[str | None]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Module | Definition))
    return (ast.get_docstring(node, clean=False) for node in nodes)


def _list_hints(tree: ast.Module) -> Iterator[str | None]:
    """Yield the annotation of each place, and the imports that decide whether they are kept as text."""
    for node in ast.walk(tree):
        hints = (getattr(node, field) for field in ("annotation", "returns") if hasattr(node, field))
        yield from (each and ast.dump(each) for each in hints)
    yield from (ast.dump(each) for each in tree.body if _is_lazy_import(each))


def _list_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that code uses, and those that it spells out in its strings."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="__doc__"):
                found.add(_OWN_DOCSTRING)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.alias(name=name) | ast.ImportFrom(module=str() as name):
                found.update(name.split("."))
            case ast.Constant(value=str() as text) if id(node) not in prose:
                found.update((text, *re.findall(r"__\w+__", text)))
            case _:
                pass
    return frozenset(found)
