"""Moved code: whether a change only moves Python functions and classes, or gives a module another name."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.verdict.same.unused import is_taken
from agentflow.verdict.surface import is_document_path
from agentflow.verdict.syntax import (
    NO_PYTHON,
    Definition,
    find_home_module,
    is_constant,
    list_strings,
    list_variables,
    list_words,
    may_reach_by_name,
    name_imported,
    read_python,
)

_Texts = Mapping[str, str]
"""Texts by path."""
_TELLS_HOME = frozenset({"__module__", "__qualname__", "__file__", "__globals__", "__code__"})
_STARTED = regex(r"__|test|conftest|setup|main|app|wsgi|asgi|manage|settings|(?:site|user)customize")
"""Names of modules that programs look for."""
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_LISTS_PACKAGES = regex(r"\b(?:packages|py_modules|py-modules)\b")
_CALLED = regex(r"__|pytest_|test|Test|set_?[uU]p|tear_?[dD]own|load_tests")
"""Names of functions and classes that programs look for in a module."""
_SIMPLE = Definition | ast.Assign | ast.AnnAssign
"""Top-level statements that do not affect the other definitions of a module."""


def find_moved(before: _Texts, after: _Texts) -> tuple[str, ...]:
    """Return the functions and classes that stand in another module, if only imports of them differ beside.

    The texts are those of all Python files by path. Every name in what moved means the same where it stands.
    """
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    try:
        sides = [
            (_Module.of(path, before.get(path, "")), _Module.of(path, after.get(path, "")))
            for path in changed
        ]
        move = _find_move(sides, after)
        if move is None or not all(move.is_kept(was, now) for was, now in sides):
            return ()
        trees = [ast.parse(text) for text in before.values()]
        is_clear = all(_is_free(path, before, trees) for path in after.keys() - before.keys())
        is_same = is_clear and all(map(move.means_the_same, move.homes))
        is_same = is_same and not any(_tells_home(tree) or move.is_reached_from(tree) for tree in trees)
        return tuple(move.homes) if is_same else ()
    except NO_PYTHON:
        return ()


def _is_free(path: str, known: _Texts, trees: Iterable[ast.Module]) -> bool:
    """Return whether a new module hides no other and nothing looks it up by its name."""
    stem = PurePosixPath(path).stem
    if _STARTED.match(stem) or stem in sys.stdlib_module_names:
        return False
    said = {part for tree in trees for _, target in _imports(tree, path) for part in re.split("[.:]", target)}
    return stem not in said and not any(each.startswith(path.removesuffix(".py") + "/") for each in known)


class _Module(Record):
    """A module before or after the change, by its top-level names."""

    path: str
    body: tuple[ast.stmt, ...]
    defined: Mapping[str, Definition]
    imported: Mapping[str, str]
    """The place that each imported name comes from."""

    @classmethod
    def of(cls, path: str, text: str) -> "_Module":
        tree = ast.parse(text)
        found = list(_imports(tree, path))
        defined = [node for node in tree.body if isinstance(node, Definition)]
        names = Counter([name for name, _ in found] + [node.name for node in defined])
        if max(names.values(), default=1) > 1 or "*" in names:
            raise ValueError(f"{path} binds a name twice, or names that it does not say")
        rest = (node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
        return cls(
            path=path, body=tuple(rest), defined={node.name: node for node in defined}, imported=dict(found)
        )

    @property
    def name(self) -> str:
        """The name under which it is imported."""
        parts = PurePosixPath(self.path.removeprefix("src/")).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def bound(self) -> frozenset[str]:
        """The names that mean something at its top."""
        rest = [node for node in self.body if not isinstance(node, Definition)]
        nodes = [each for node in rest for each in ast.walk(node)]
        stored = {each.id for each in nodes if isinstance(each, ast.Name)}
        taken = {name_imported(each) for each in nodes if isinstance(each, ast.alias)}
        return frozenset({*self.defined, *self.imported, *stored, *taken})


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = find_home_module(node, path.removeprefix("src/"))
            yield from ((each.asname or each.name, f"{home}:{each.name}") for each in node.names)


class _Move(Record):
    """The moved definitions, each with its old and its new module."""

    homes: Mapping[str, tuple[_Module, _Module]]
    texts: _Texts
    """All Python files after the change."""

    def is_kept(self, was: _Module, now: _Module) -> bool:
        """Return whether a file differs only in moved definitions and the imports that these need."""
        old, new = (
            [ast.dump(node) for node in side.body if getattr(node, "name", None) not in self.homes]
            for side in (was, now)
        )
        if not was.body and not was.imported:  # a new file may begin with a docstring
            is_told = bool(now.body) and is_constant(now.body[0])
            if new[is_told:] or ">>>" in "".join(list_strings(*now.body[:1])):
                return False
        elif old != new:
            return False
        return self._has_right_imports(was, now) and self._misses_nothing(was, now)

    def _has_right_imports(self, was: _Module, now: _Module) -> bool:
        """Return whether each import still means the same object."""
        came = {name: old for name, (old, new) in self.homes.items() if new is now}
        for name, target in now.imported.items():
            source = was.imported.get(name)
            users = [old for moved, old in came.items() if name in _variables(old.defined[moved])]
            if target.startswith("__future__:"):
                users = list(came.values())
            is_followed = source is not None and self._follow(source) == target
            is_back = source is None and name in was.defined and target == self._place(name)
            is_needed = (
                source is None and any(users) and all(old.imported.get(name) == target for old in users)
            )
            if not (is_followed or is_back or is_needed):
                return False
        return True

    def _misses_nothing(self, was: _Module, now: _Module) -> bool:
        """Return whether nothing imports a name that its module no longer has."""
        gone = {*was.imported, *was.defined} - {*now.imported, *now.defined}
        said = frozenset[str]().union(
            *map(_variables, now.body), *(text.split() for text in list_strings(*now.body))
        )
        return said.isdisjoint(gone) and not any(
            is_taken(was.path, gone, text) for text in self.texts.values()
        )

    def _place(self, name: str) -> str:
        return f"{self.homes[name][1].name}:{name}" if name in self.homes else ""

    def _follow(self, target: str) -> str:
        """Return where an imported object has to be imported from after the change."""
        module, _, name = target.rpartition(":")
        return self._place(name) if name in self.homes and self.homes[name][0].name == module else target

    def means_the_same(self, name: str) -> bool:
        """Return whether a moved definition is unchanged and still loaded in the same way."""
        was, now = self.homes[name]
        future = "annotations"
        if was.imported.get(future) != now.imported.get(future) or ast.dump(was.defined[name]) != ast.dump(
            now.defined[name]
        ):
            return False
        for used in _variables(was.defined[name]) - {
            each for each in self.homes if self.homes[each] == (was, now)
        }:
            is_same = was.imported.get(used) == now.imported.get(used)
            is_free = used not in was.bound and used not in now.bound
            if used.startswith("__") or not (is_free or (is_same and used in was.imported)):
                return False
        return self._is_back(name) or (_only_binds(was.defined[name]) and not self._is_said(name))

    def _is_back(self, name: str) -> bool:
        """Return whether the old module imports the moved definition back."""
        old = _Module.of(self.homes[name][0].path, self.texts.get(self.homes[name][0].path, ""))
        return old.imported.get(name) == self._place(name)

    def is_reached_from(self, tree: ast.Module) -> bool:
        """Return whether other code may replace a name that the moved code uses."""
        used = {
            used
            for name, (was, _) in self.homes.items()
            for used in _variables(was.defined[name]) & was.bound
        }
        stored = (each for each in ast.walk(tree) if isinstance(each, ast.Attribute))
        homes = {f"{was.name}." for was, _ in self.homes.values()}
        is_named = any(home in text for home in homes for text in list_strings(*tree.body))
        return is_named or any(each.attr in used and not isinstance(each.ctx, ast.Load) for each in stored)

    def _is_said(self, name: str) -> bool:
        """Return whether a string in the code contains the name."""
        return any(
            re.search(rf"\b{name}\b", said)
            for text in self.texts.values()
            for said in list_strings(*ast.parse(text).body)
        )


def _find_move(sides: list[tuple[_Module, _Module]], texts: _Texts) -> _Move | None:
    left = [(was, name) for was, now in sides for name in was.defined if name not in now.defined]
    came = {name: now for was, now in sides for name in now.defined if name not in was.defined}
    homes = {name: (was, came[name]) for was, name in left if name in came}
    is_clear = bool(homes) and len(homes) == len(left) == len(came) and not any(map(_CALLED.match, homes))
    is_plain = all(
        isinstance(node, _SIMPLE) or is_constant(node) for was, _ in homes.values() for node in was.body
    )
    is_own = all(not _stores(node, homes) for was, now in sides for node in (*was.body, *now.body))
    return _Move(homes=homes, texts=texts) if is_clear and is_plain and is_own else None


def _stores(node: ast.stmt, names: Mapping[str, object]) -> bool:
    """Return whether a statement rebinds one of the names, or sets an attribute at the top of a module."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load) and each.id in names:
            return True
        if isinstance(each, ast.Global) and not names.keys().isdisjoint(each.names):
            return True
    return isinstance(node, ast.Assign) and not all(isinstance(each, ast.Name) for each in node.targets)


def _only_binds(node: Definition) -> bool:
    is_made = isinstance(node, ast.ClassDef) and bool(node.bases or node.keywords)
    return not node.decorator_list and not is_made


def _tells_home(tree: ast.Module) -> bool:
    """Return whether code finds other code by its name or its module."""
    attributes = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return may_reach_by_name(tree) or not _TELLS_HOME.isdisjoint(attributes)


def _variables(node: ast.AST) -> frozenset[str]:
    return frozenset(list_variables(node))


def find_moved_module(before: _Texts, after: _Texts) -> dict[str, str]:
    """Return the old and the new name of the one module whose file has another name or folder; else nothing.

    The file keeps its text, and everything that imports it does so by the new name.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    new = [path for path in new if not is_empty_package(path, after)]
    if len(gone) != 1 or len(new) != 1 or before[gone[0]] != after[new[0]]:
        return {}
    old, now = PurePosixPath(gone[0]), PurePosixPath(new[0])
    is_fit = old.suffix == now.suffix == ".py" and _is_unknown(old.stem) and _is_unknown(now.stem)
    if not is_fit or _stands_elsewhere(old, after) or _stands_elsewhere(now, before):
        return {}
    try:
        is_same = old.parent == now.parent or _may_change_folder(old, now, before, after)
        return {old.stem: now.stem} if is_same and _is_equal_but_imports(old, now, before, after) else {}
    except NO_PYTHON:
        return {}


def is_empty_package(path: str, texts: _Texts) -> bool:
    """Return whether a file only makes its folder a package."""
    return PurePosixPath(path).name == "__init__.py" and not texts.get(path, "").strip()


def _may_change_folder(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether a module does the same in another folder: no code and no manifest knows where it is."""
    tree = ast.parse(before[str(old)])
    is_placed = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    is_placed = is_placed or not _TELLS_HOME.isdisjoint(list_words(tree))
    apart = {str(each / "__init__.py") for each in {*old.parents} ^ {*now.parents}}
    is_run = any(
        path in texts and not is_empty_package(path, texts) for path in apart for texts in (before, after)
    )
    listed = any(_LISTS_PACKAGES.search(before.get(path, "")) for path in _MANIFESTS)
    tops = {_to_module(each).partition(".")[0] for each in (old, now)}
    return not (is_placed or is_run or listed) and len(tops) == 1


def _is_unknown(stem: str) -> bool:
    """Return whether no program looks for a file of this name by itself."""
    return stem.isidentifier() and not re.match(
        r"_|test|conftest|setup|main|app|wsgi|asgi|manage|settings", stem
    )


def _stands_elsewhere(place: PurePosixPath, texts: _Texts) -> bool:
    """Return whether a text that is no document has a module's name where no import stands."""
    parts = [part for part in place.with_suffix("").parts if part != "src"]
    dotted = r"[./]".join(map(re.escape, parts)) if len(parts) > 1 else re.escape(place.stem)
    named = re.compile(rf"(?<![\w.]){dotted}(?!\w)|(?<!\w){re.escape(place.name)}(?!\w)")
    for path, text in texts.items():
        if not is_document_path(path) and path != str(place):
            said = "\n".join(_texts_in(text)) if path.endswith(".py") else text
            if named.search(said):
                return True
    return False


def _texts_in(text: str) -> list[str]:
    """Return the strings in code; of code that cannot be parsed, all of it."""
    tree = read_python(text)
    return [text] if tree is None else list_strings(tree)


def _is_equal_but_imports(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether all code is unchanged but for imports of the module by its new name."""
    for path in before.keys() & after.keys():
        if path.endswith(".py"):
            was, tree = ast.parse(before[path]), ast.parse(after[path])
            if may_reach_by_name(was) or _reaches_otherwise(was, old.stem):
                return False
            _resolve_imports(was, path, {_to_module(old): _to_module(now)})
            _resolve_imports(tree, path, {})
            if ast.dump(was) != ast.dump(tree):
                return False
        elif before[path] != after[path] and not is_document_path(path):
            return False
    return not may_reach_by_name(ast.parse(before[str(old)]))


def _reaches_otherwise(tree: ast.Module, stem: str) -> bool:
    """Return whether code may reach the module as an attribute of its package."""
    nodes = tuple(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imports = (node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return stem in attributes or any(
        each.name.rpartition(".")[2] == stem for names in imports for each in names
    )


def _resolve_imports(tree: ast.Module, path: str, names: Mapping[str, str]) -> None:
    """Write each import of names with the whole name of its module, some of which have another one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            home = find_home_module(node, path.removeprefix("src/"))
            node.module, node.level = names.get(home, home), 0


def _to_module(place: PurePosixPath) -> str:
    return ".".join(part for part in place.with_suffix("").parts if part != "src")
