"""Which tests are new or changed, where nothing else of a file of tests is."""

import ast
from collections.abc import Collection, Iterator


def changed_tests(before: str, after: str) -> frozenset[str]:
    """Return the names of functions that are new or changed, if each asserts and all else is equal.

    Further imports are no difference. None are returned for what is no Python, and where anything beside
    such functions changed: a helper, a fixture, a constant or a base class can weaken every test.
    """
    functions = altered_functions(before, after)
    return functions_named(functions) if functions and all(map(_asserts, functions.values())) else frozenset()


def altered_functions(before: str, after: str) -> dict[str, ast.AST] | None:
    """Return the functions that are new or changed, with their owners; None where all else is not equal."""
    try:
        old, new = ast.parse(before), ast.parse(after)
    except (SyntaxError, ValueError, RecursionError):
        return None
    was, now = (dict(_functions(tree, "")) for tree in (old, new))
    changed = {name: node for name, node in now.items() if name not in was or _differs(was[name], node)}
    gone = {name for name in was if name not in now}
    is_rest_equal = not before or _rest(old, gone | changed.keys()) == _rest(new, changed.keys())
    return changed if is_rest_equal else None


def functions_named(functions: Collection[str]) -> frozenset[str]:
    """Return the bare names of functions."""
    return frozenset(name.rpartition(".")[2] for name in functions)


def _differs(old: ast.AST, new: ast.AST) -> bool:
    return ast.dump(old) != ast.dump(new)


def _asserts(function: ast.AST) -> bool:
    """Tell whether a function has an assertion, a call of one, or expects an error."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name.startswith(("assert", "fail", "raises", "check")):
                return True
    return False


def _functions(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{owner}{each.name}", each
        elif isinstance(each, ast.ClassDef):
            yield from _functions(each, f"{owner}{each.name}.")


def _rest(tree: ast.Module, left_out: Collection[str]) -> list[str]:
    """Return what stands in a test module beside some functions and the imports."""
    return list(_rest_of(tree, "", left_out))


def _rest_of(node: ast.AST, owner: str, left_out: Collection[str]) -> Iterator[str]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            parts = (*each.bases, *each.keywords, *each.decorator_list)
            inner = list(
                _rest_of(ast.Module(body=each.body, type_ignores=[]), f"{owner}{each.name}.", left_out)
            )
            is_new = all(name in left_out for name, _ in _functions(each, f"{owner}{each.name}."))
            if inner or not is_new:
                yield f"{owner}{each.name}({','.join(map(ast.dump, parts))})"
                yield from inner
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            if f"{owner}{each.name}" not in left_out:
                yield ast.dump(each)
        elif not isinstance(each, ast.Import | ast.ImportFrom):
            yield ast.dump(each)
