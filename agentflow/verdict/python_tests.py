"""Python tests before and after a change, as syntax: gone, skipped, weaker, or expecting other results."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from agentflow.verdict.tampering import Finding, Tampering

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SKIPS = frozenset(
    {"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "skipTest", "importorskip"}
)
_WEAK_METHODS = frozenset({"assertTrue", "assertIsNotNone", "assertIsNone", "assertFalse", "assertIn"})
_LOOSE = frozenset({"approx", "ANY", "isclose", "assertAlmostEqual", "match"})


def compare(path: str, before: str, after: str) -> Iterator[Finding]:
    """Yield what tests of one file lost; nothing where either cannot be read."""
    try:
        old, new = _tests(ast.parse(before)), _tests(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError):
        return
    for name, test in old.items():
        if name in new:
            yield from _compared(path, name, test, new[name])
        else:
            yield Finding(kind=Tampering.TEST_GONE, path=path, line=None, text=name)
    for name, test in new.items():
        if name not in old and _marks(test):
            yield Finding(kind=Tampering.SKIPPED, path=path, line=test.lineno, text=name)


def _tests(tree: ast.Module) -> Mapping[str, Function]:
    """Return the test functions by qualified name; of two with one name the last, as Python does."""
    found: dict[str, Function] = {}
    todo: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    for prefix, node in todo:
        if isinstance(node, ast.ClassDef):
            todo += [(f"{prefix}{node.name}.", child) for child in node.body]
        elif isinstance(node, Function) and node.name.startswith("test"):
            found[prefix + node.name] = node
    return found


def _compared(path: str, name: str, old: Function, new: Function) -> Iterator[Finding]:
    if added := sorted(_marks(new) - _marks(old)):
        yield Finding(kind=Tampering.SKIPPED, path=path, line=new.lineno, text=f"{name}: {', '.join(added)}")
    if _cases(new) < _cases(old):
        said = f"{name}: {_cases(old)} before, {_cases(new)} now"
        yield Finding(kind=Tampering.FEWER_CASES, path=path, line=new.lineno, text=said)
    if _leaves_early(new) and not _leaves_early(old):
        yield Finding(kind=Tampering.SKIPPED, path=path, line=new.lineno, text=f"{name}: returns at once")
    yield from _assertions_compared(path, name, old, new)


def _assertions_compared(path: str, name: str, old: Function, new: Function) -> Iterator[Finding]:
    before, now = Counter(_assertions(old)), Counter(_assertions(new))
    lost, gained = list((before - now).elements()), list((now - before).elements())
    if not lost:
        if gained or ast.dump(old) == ast.dump(new):
            return
        if len(_statements(new)) != len(_statements(old)) or _inputs(old) - _inputs(new):
            yield Finding(kind=Tampering.EXPECTATION, path=path, line=new.lineno, text=f"{name}: other input")
        return
    weaker = len(gained) < len(lost) or any(map(_is_weak, gained)) > any(map(_is_weak, lost))
    kind = Tampering.WEAKER if weaker else Tampering.EXPECTATION
    said = f"{lost[0]} -> {gained[0]}" if gained else lost[0]
    yield Finding(kind=kind, path=path, line=new.lineno, text=f"{name}: {said}")


def _marks(test: Function) -> frozenset[str]:
    """Return the words of a test that let it not run, or fail."""
    named = {_last_word(node) for mark in test.decorator_list for node in ast.walk(mark)}
    called = {_last_word(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
    return frozenset((named | called) & _SKIPS)


def _last_word(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
        case _:
            return ""


def _cases(test: Function) -> int:
    """Return how many cases the lists of its `parametrize` marks make."""
    number = 1
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and _last_word(mark.func) == "parametrize" and len(mark.args) > 1:
            values = mark.args[1]
            number *= len(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else 1
    return number


def _leaves_early(test: Function) -> bool:
    statements = _statements(test)
    return bool(statements) and isinstance(statements[0], ast.Return | ast.Pass)


def _statements(test: Function) -> list[ast.stmt]:
    """Return the body without its docstring."""
    first = test.body[0]
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return test.body[1:] if said else test.body


def _inputs(test: Function) -> Counter[str]:
    return Counter(ast.dump(node) for node in ast.walk(test) if isinstance(node, ast.Constant))


def _assertions(test: Function) -> Iterator[str]:
    """Yield every assertion as text: statements, methods of a TestCase, and expected exceptions."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            yield f"assert {ast.unparse(node.test)}"
        elif isinstance(node, ast.Call) and _last_word(node.func).startswith(
            ("assert", "fail", "raises", "warns")
        ):
            yield ast.unparse(node)


def _is_weak(assertion: str) -> bool:
    """Return whether an assertion holds for many results."""
    try:
        (statement,) = ast.parse(assertion).body
    except (SyntaxError, ValueError):
        return True
    match statement:
        case ast.Assert(test=ast.Compare(ops=[ast.Eq() | ast.Is()], comparators=[right])):
            return not _LOOSE.isdisjoint(map(_last_word, ast.walk(right)))
        case ast.Expr(value=ast.Call(func=function)):
            return _last_word(function) in _WEAK_METHODS | _LOOSE
        case _:
            return True


_COMPARED = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})


def careless_comparisons(path: str, before: str, after: str) -> Iterator[Finding]:
    """Yield the comparisons of a change that never look at what they compare with."""
    if not path.endswith(".py"):
        return
    known = {ast.dump(node) for node in _careless(before)}
    for node in _careless(after):
        if ast.dump(node) not in known:
            text = ast.unparse(node).partition("\n")[0]
            yield Finding(
                kind=Tampering.PATCHED, path=path, line=node.lineno, text=f"{text} ignores its argument"
            )


def _careless(text: str) -> Iterator[ast.FunctionDef | ast.Lambda]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name in _COMPARED:
                found: list[ast.AST] = [node]
            case ast.Dict(keys=keys, values=values):
                found = [value for key, value in zip(keys, values, strict=True) if _is_comparison(key)]
            case _:
                continue
        yield from (
            each for each in found if isinstance(each, ast.FunctionDef | ast.Lambda) if _ignores(each)
        )


def _is_comparison(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value in _COMPARED


def _ignores(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a comparison never names what it compares with."""
    others = [given.arg for given in node.args.args[1:2]]
    return bool(others) and not any(
        isinstance(each, ast.Name) and each.id in others for each in ast.walk(node)
    )
