"""Renaming: whether a change does nothing but give names others, so that every use of them is known."""

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping

from agentflow.core.languages import PLAIN_SCRIPTS
from agentflow.verdict.same.comments import list_code_lines
from agentflow.verdict.same.equivalence import is_document
from agentflow.verdict.same.other_names import is_function_of_scripts
from agentflow.verdict.surface import is_document_path
from agentflow.verdict.syntax import (
    AnyFunction,
    find_home_module,
    get_last_word,
    list_module_paths,
    list_parameters,
    list_variables,
    list_words,
    may_reach_by_name,
    name_imported,
    read_python,
)
from agentflow.workspace.mixed_tree import ChangedTexts

_Trees = Mapping[str, ast.Module]
_PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod"})
_FOR_CLASSES = frozenset(
    {"isinstance", "issubclass", "raises", "assertRaises", "assertRaisesRegex", "assertIsInstance"}
)
"""Functions that only compare with a class that they are given."""
_PARTS = re.compile(r"\w+|\W")
_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{2,}")
_CALLED_FROM_OUTSIDE = frozenset(
    {
        *("main", "setup", "app", "application", "handler", "lambda_handler", "create_app"),
        *("make_app", "ready", "upgrade", "downgrade", "load_tests", "build_wheel", "build_sdist"),
        *("build_editable", "prepare", "run", "on_starting", "when_ready", "post_fork", "pre_fork"),
        *("load_ipython_extension", "get_version"),
    }
)
_PREFIXES = re.compile(
    r"(?:pytest_|test|Test|task_|setup|teardown|setUp|tearDown|get_requires_for|visit_|depart_|__)"
)


def is_renamed(before: Mapping[str, str], after: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Return whether a change did nothing but give these names others.

    The texts are those of all files by path. A renamed thing is a function or class that one module defines,
    not decorated, and only called, imported and compared; or a parameter, a variable, an own attribute.
    """
    words = {word for path in before for word in re.findall(r"\w+", path)}
    is_clear = (
        before.keys() == after.keys()
        and all(map(_may_change, names, names.values()))
        and words.isdisjoint({*names, *names.values()})
        and not any(_says(text, names.values()) for text in before.values())
        and not any(_says(text, names) for text in after.values())
    )
    scripts = {name for name in names if is_function_of_scripts(name, before, is_document_path)}
    rest = {name: new for name, new in names.items() if name not in scripts}
    return is_clear and (not rest or _are_plain(rest, before))


def find_renaming(changes: tuple[ChangedTexts, ...]) -> dict[str, str]:
    """Return the mapping of words that turns the old files into the new ones, if there is one."""
    found = dict[str, str]()
    for each in changes:
        is_told = each.is_whole and each.modes[0] == each.modes[1] and bool(each.before) and bool(each.after)
        old, new = _PARTS.findall(each.before), _PARTS.findall(each.after)
        is_read = each.path.endswith((".py", *PLAIN_SCRIPTS)) or is_document(each)
        if not is_told or len(old) != len(new) or not is_read:
            return {}
        for was, now in zip(old, new, strict=True):
            if was != now and found.setdefault(was, now) != now:
                return {}
    return found if len(set(found.values())) == len(found) else {}


def _may_change(old: str, new: str) -> bool:
    """Return whether only the repository itself can use either name."""
    is_of_tests = old.startswith("test_") and new.startswith("test_")
    return all(
        _NAME.fullmatch(name)
        and (is_of_tests or not _PREFIXES.match(name))
        and not keyword.iskeyword(name)
        and not keyword.issoftkeyword(name)
        and not hasattr(builtins, name)
        and name not in _CALLED_FROM_OUTSIDE
        for name in (old, new)
    )


def _says(text: str, names: Iterable[str]) -> bool:
    words = "|".join(map(re.escape, names))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text) is not None


def _are_plain(names: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    """Return whether every use of each name is known, and no code looks things up by name."""
    code = {path: text for path, text in texts.items() if path.endswith((".py", ".pyi"))}
    trees = {path: tree for path, text in code.items() if (tree := read_python(text))}
    if trees.keys() != code.keys():
        return False
    new = {*names.values()}
    if any(may_reach_by_name(tree) or new & {*list_variables(tree)} for tree in trees.values()):
        return False  # Python may have normalised a name
    return all(_is_plain(name, code, trees) for name in names)


def _is_plain(name: str, code: Mapping[str, str], trees: _Trees) -> bool:
    """Return whether every use of a name means one definition, or parameters and attributes of `self`."""
    definers = [path for path, tree in trees.items() for node in tree.body if _defines(node, name, trees)]
    if len(definers) > 1 or any(not path.endswith(".py") for path in definers):
        return False
    if not definers and not _is_local(name, trees):
        return False
    uses = 0
    for path, tree in trees.items():
        found = _places_of_definition if definers else _places_of_local
        places = sum(found(tree, path, name, trees))
        uses += places
        stands = re.findall(rf"(?<!\w){name}(?!\w)", "\n".join(list_code_lines(path, code[path])))
        if len(stands) != places:
            return False
    return uses > 1 or name.startswith(("test_", "_"))  # others that nobody calls are called from outside


def _defines(node: ast.stmt, name: str, trees: _Trees) -> bool:
    if isinstance(node, ast.ClassDef) and node.name == name:
        return _is_plain_class(node, trees)
    return isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list


def _is_plain_class(node: ast.ClassDef, trees: _Trees) -> bool:
    """Return whether a class has no decorator and no base from outside the repository."""
    own = {each.name for tree in trees.values() for each in tree.body if isinstance(each, ast.ClassDef)}
    bases = [each.id if isinstance(each, ast.Name) else "" for each in node.bases]
    known = all(each in own or isinstance(getattr(builtins, each, None), type) for each in bases)
    return known and not node.decorator_list and not node.keywords


def _places_of_definition(tree: ast.Module, path: str, name: str, trees: _Trees) -> Iterator[int]:
    """Yield how often the name of a function or class stands as such: defined, called, imported, compared."""
    modules = _modules(tree, path, trees)
    yield sum(_defines(node, name, trees) for node in tree.body)
    is_class = any(
        isinstance(node, ast.ClassDef) and node.name == name for each in trees.values() for node in each.body
    )
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=word)) if word == name:
                yield 1
            case ast.Call(func=ast.Attribute(attr=word, value=value)) if word == name:
                yield ast.unparse(value) in modules
            case ast.ImportFrom(names=names) if _file(find_home_module(node, path), trees):
                yield sum(each.name == name for each in names)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=listed)):
                yield sum(isinstance(each, ast.Constant) and each.value == name for each in listed)
            case _:
                pass
        if is_class:
            yield from (_stands_in(part, name) for part in _for_classes(node))


def _for_classes(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the parts of a node in which a class is meant and nobody asks for its name."""
    match node:
        case ast.ClassDef(bases=bases):
            yield from bases
        case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
            yield returns
        case ast.ExceptHandler(type=kind):
            yield kind
        case ast.Raise(exc=ast.Name() as kind):
            yield kind
        case ast.Attribute(value=ast.Name() as owner):
            yield owner
        case ast.Call(func=ast.Name(id=word) | ast.Attribute(attr=word), args=args) if word in _FOR_CLASSES:
            yield from args
        case _:
            pass


def _stands_in(node: ast.AST | None, name: str) -> int:
    """Return how often a name stands in a part of code, alone or in a tuple, a union or a subscript."""
    match node:
        case ast.Name(id=word):
            return word == name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return sum(_stands_in(each, name) for each in parts)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _stands_in(left, name) + _stands_in(right, name)
        case ast.Subscript(value=value, slice=inner):
            return _stands_in(value, name) + _stands_in(inner, name)
        case _:
            return 0


def _is_local(name: str, trees: _Trees) -> bool:
    """Return whether a name is that of parameters, variables in functions and own attributes alone."""
    owners = {owner for tree in trees.values() for owner in _takers(tree, name)}
    for tree in trees.values():
        if name in _open_bindings(tree):
            return False
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ClassDef)
                and not _is_plain_class(node, trees)
                and name in list_words(node)
            ):
                return False
            if isinstance(node, AnyFunction) and name in list_parameters(node):
                owners.add(node.name)
                if not all(map(_is_usual, node.decorator_list)):
                    return False
    return bool(owners) and not any(_is_passed_on(owners, tree) for tree in trees.values())


def _is_usual(decorator: ast.expr) -> bool:
    """Return whether a decorator is built in or only parametrizes a test."""
    word = ast.unparse(decorator).partition("(")[0]
    return word in _PLAIN_DECORATORS or word.endswith("mark.parametrize")


def _is_passed_on(owners: set[str], tree: ast.Module) -> bool:
    """Return whether code passes on a callable of these names, or calls one with `**` arguments."""
    known = set[int]()
    for node in ast.walk(tree):
        known |= {id(each) for part in _for_classes(node) if part for each in ast.walk(part)}
        if isinstance(node, ast.Call):
            known.add(id(node.func))
            if get_last_word(node.func) in owners and any(each.arg is None for each in node.keywords):
                return True
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute))
    return any(get_last_word(node) in owners and id(node) not in known for node in names)


def _open_bindings(tree: ast.Module) -> frozenset[str]:
    """Return the names that are bound outside functions, which others may reach as attributes."""
    found, rest = set[str](), list[ast.AST](tree.body)
    while rest:
        node = rest.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.alias():
                found.add(name_imported(node))
            case _:
                pass
        rest += [] if isinstance(node, AnyFunction | ast.Lambda) else ast.iter_child_nodes(node)
    return frozenset(found)


def _places_of_local(tree: ast.Module, path: str, name: str, trees: _Trees) -> Iterator[int]:
    """Yield how often a name stands as a parameter, variable, keyword of an own call or own attribute."""
    callables = {owner for each in trees.values() for owner in _takers(each, name)}
    modules = _modules(tree, path, trees)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) if word == name:
                yield 1
            case ast.arg(arg=word) if word == name:
                yield 1
            case ast.Attribute(attr=word, value=ast.Name(id="self")) if word == name:
                yield 1
            case ast.Call(func=ast.Name(id=word), keywords=keywords) if word in callables:
                yield sum(each.arg == name for each in keywords)
            case ast.Call(func=ast.Attribute(attr=word, value=value), keywords=keywords) if word in callables:
                is_own = ast.unparse(value) in {*modules, "self"}
                yield sum(each.arg == name for each in keywords) if is_own else 0
            case ast.Call(
                func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as text), *_]
            ):
                yield re.findall(r"\w+", text).count(name)
            case _:
                pass


def _takers(tree: ast.Module, name: str) -> Iterator[str]:
    """Yield what can be called with a parameter of a name: functions, methods, and classes."""
    for node in ast.walk(tree):
        for each in getattr(node, "body", ()) if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(each, AnyFunction) and name in list_parameters(each):
                yield node.name if each.name == "__init__" and isinstance(node, ast.ClassDef) else each.name


def _modules(tree: ast.Module, path: str, trees: _Trees) -> frozenset[str]:
    """Return the names under which code has modules of the repository."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname or each.name for each in node.names if _file(each.name, trees)}
        elif isinstance(node, ast.ImportFrom):
            home = find_home_module(node, path)
            found |= {each.asname or each.name for each in node.names if _file(f"{home}.{each.name}", trees)}
    return frozenset(found)


def _file(module: str, trees: _Trees) -> str:
    """Return the file of a module; empty for one from elsewhere."""
    return next((path for path in list_module_paths(module.strip(".")) if path in trees), "")
