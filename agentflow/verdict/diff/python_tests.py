"""Python tests before and after a change: removed, weaker, changed, new or moved."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from agentflow.core.finding import Finding, FindingKind
from agentflow.core.regex import regex
from agentflow.core.test_ids import get_test_function
from agentflow.verdict.syntax import AnyFunction, get_last_word, is_constant, parse_python, read_python

_SKIPS = frozenset(
    {"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "skipTest", "importorskip"}
)
_WEAK_METHODS = frozenset({"assertTrue", "assertIsNotNone", "assertIsNone", "assertFalse", "assertIn"})
_WORD = regex(r"\w+|[\[{][\]}]")
_LOOSE = frozenset({"approx", "ANY", "isclose", "assertAlmostEqual", "match"})


def compare_tests(path: str, before: str, after: str) -> Iterator[Finding]:
    """Yield what the tests of one file lost; nothing if either version cannot be parsed."""
    was, now = read_python(before), read_python(after)
    if was is None or now is None:
        return
    old, new = _tests(was), _tests(now)
    said = [Counter(each for test in tests.values() for each in _assertions(test)) for tests in (old, new)]
    moved = {each for each, number in said[0].items() if said[1][each] >= number}
    for name, test in old.items():
        if name in new:
            yield from _compare_test(path, name, (test, new[name]), moved)
        else:
            yield FindingKind.TEST_GONE.of(name, path=path)
    for name, test in new.items():
        if name not in old and _marks(test):
            yield FindingKind.SKIPPED.of(name, path=path, line=test.lineno)


def _tests(tree: ast.Module) -> Mapping[str, AnyFunction]:
    """Return the test functions by qualified name; of two with one name the last, as Python does."""
    found = {name: node for name, node in _functions_of(tree, "") if node.name.startswith("test")}
    return dict(sorted(found.items(), key=lambda each: each[0].count(".")))


def _compare_test(
    path: str, name: str, versions: tuple[AnyFunction, AnyFunction], moved: Collection[str]
) -> Iterator[Finding]:
    old, new = versions
    if added := sorted(_marks(new) - _marks(old)):
        yield FindingKind.SKIPPED.of(name, *added, path=path, line=new.lineno)
    if (were := _cases(old)) > (are := _cases(new)):
        yield FindingKind.FEWER_CASES.of(name, str(were), str(are), path=path, line=new.lineno)
    if _leaves_early(new) and not _leaves_early(old):
        yield FindingKind.RETURNS_AT_ONCE.of(name, path=path, line=new.lineno)
    before, now = Counter(_assertions(old)), Counter(_assertions(new))
    lost = [each for each in (before - now).elements() if each not in moved]
    gained = list((now - before).elements())
    if not lost:
        if gained or ast.dump(old) == ast.dump(new):
            return
        if len(_statements(new)) != len(_statements(old)) or _inputs(old) - _inputs(new):
            yield FindingKind.OTHER_INPUT.of(name, path=path, line=new.lineno)
        return
    words = [{*_WORD.findall(" ".join(said))} for said in (lost, gained)]
    is_fewer = len(gained) < len(lost) and not words[0] <= words[1]
    weaker = is_fewer or any(map(_is_weak, gained)) > any(map(_is_weak, lost))
    kind = FindingKind.WEAKER if weaker else FindingKind.EXPECTATION
    said = f"{lost[0]} -> {gained[0]}" if gained else lost[0]
    yield kind.of(name, said, path=path, line=new.lineno)


def _marks(test: AnyFunction) -> frozenset[str]:
    named = {get_last_word(node) for mark in test.decorator_list for node in ast.walk(mark)}
    called = {get_last_word(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
    return frozenset((named | called) & _SKIPS)


def _cases(test: AnyFunction) -> int:
    number = 1
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and get_last_word(mark.func) == "parametrize" and len(mark.args) > 1:
            values = mark.args[1]
            number *= len(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else 1
    return number


def _leaves_early(test: AnyFunction) -> bool:
    statements = _statements(test)
    return bool(statements) and isinstance(statements[0], ast.Return | ast.Pass)


def _statements(test: AnyFunction) -> list[ast.stmt]:
    return test.body[is_constant(test.body[0]) :]


def _inputs(test: AnyFunction) -> Counter[str]:
    return Counter(ast.dump(node) for node in ast.walk(test) if isinstance(node, ast.Constant))


def _assertions(test: AnyFunction) -> Iterator[str]:
    """Yield every assertion as text: statements, methods of a TestCase, and expected exceptions."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            yield f"assert {ast.unparse(node.test)}"
        elif isinstance(node, ast.Call) and get_last_word(node.func).startswith(
            ("assert", "fail", "raises", "warns")
        ):
            yield ast.unparse(node)


def _is_weak(assertion: str) -> bool:
    match parse_python(assertion).body:
        case [ast.Assert(test=ast.Compare(ops=[ast.Eq() | ast.Is()], comparators=[right]))]:
            return not _LOOSE.isdisjoint(map(get_last_word, ast.walk(right)))
        case [ast.Expr(value=ast.Call(func=function))]:
            return get_last_word(function) in _WEAK_METHODS | _LOOSE
        case _:
            return True


def find_changed_tests(before: str, after: str) -> frozenset[str]:
    """Return the names of functions that are new or changed, if each asserts and all else is equal.

    Further imports are no difference. None are returned for what is no Python, and where anything beside
    such functions changed: a helper, a fixture, a constant or a base class can weaken every test.
    """
    functions = find_altered_functions(before, after)
    return strip_to_names(functions) if functions and all(map(_asserts, functions.values())) else frozenset()


def has_only_lost_functions(before: str, after: str) -> bool:
    """Return whether functions are gone from a file of tests, and all else but its imports is equal."""
    names = [{name for name, _ in _functions_of(parse_python(text), "")} for text in (before, after)]
    return names[0] > names[1] and find_altered_functions(before, after) == {}


def find_altered_functions(before: str, after: str) -> Mapping[str, AnyFunction] | None:
    """Return the functions that are new or changed, with their owners; None where all else is not equal."""
    old, new = read_python(before), read_python(after)
    if old is None or new is None:
        return None
    was, now = (dict(_functions_of(tree, "")) for tree in (old, new))
    changed = {
        name: node for name, node in now.items() if name not in was or ast.dump(was[name]) != ast.dump(node)
    }
    gone = {name for name in was if name not in now}
    is_rest_equal = not before or [*_rest_of(old, "", gone | changed.keys())] == [
        *_rest_of(new, "", changed.keys())
    ]
    return changed if is_rest_equal else None


def strip_to_names(functions: Collection[str]) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in functions)


def _asserts(function: ast.AST) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name.startswith(("assert", "fail", "raises", "check")):
                return True
    return False


def _functions_of(node: ast.AST, owner: str) -> Iterator[tuple[str, AnyFunction]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, AnyFunction):
            yield f"{owner}{each.name}", each
        elif isinstance(each, ast.ClassDef):
            yield from _functions_of(each, f"{owner}{each.name}.")


def _rest_of(node: ast.AST, owner: str, left_out: Collection[str]) -> Iterator[str]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            parts = (*each.bases, *each.keywords, *each.decorator_list)
            inner = list(
                _rest_of(ast.Module(body=each.body, type_ignores=[]), f"{owner}{each.name}.", left_out)
            )
            is_new = all(name in left_out for name, _ in _functions_of(each, f"{owner}{each.name}."))
            if inner or not is_new:
                yield f"{owner}{each.name}({','.join(map(ast.dump, parts))})"
                yield from inner
        elif isinstance(each, AnyFunction):
            if f"{owner}{each.name}" not in left_out:
                yield ast.dump(each)
        elif not isinstance(each, ast.Import | ast.ImportFrom):
            yield ast.dump(each)


def find_moved_tests(
    lost: Collection[str], news: Collection[str], texts: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Return the lost tests that are among the new ones with the same body and case.

    `texts` are the changed files of tests, each before and after. A new test takes the place of one only.
    """
    before = [each for old, _ in texts for each in _bodies(old)]
    after = [each for _, new in texts for each in _bodies(new)]
    found, free = set[str](), set(news)
    for test in sorted(lost):
        bodies = {body for known, body in before if known == get_test_function(test)}
        heirs = {known for known, body in after if body in bodies}
        case = test.partition("[")[1:]
        alike = (new for new in sorted(free) if new.partition("[")[1:] == case)
        if place := next((new for new in alike if get_test_function(new) in heirs), ""):
            free.remove(place)
            found.add(test)
    return frozenset(found)


def find_extended_tests(before: str, after: str) -> frozenset[str]:
    """Return the tests, by bare name, that only gained cases in their lists of them.

    What a runner calls a case by its number, such as `test_f[values5]`, has another id behind a new one.
    """
    old, new = (_tests(parse_python(text)) for text in (before, after))
    same = {name for name, test in old.items() if name in new and _only_gains_cases(test, new[name])}
    return strip_to_names(same) - strip_to_names(old.keys() - same)


def _only_gains_cases(old: AnyFunction, new: AnyFunction) -> bool:
    lists = [[_list_cases(mark) for mark in test.decorator_list] for test in (old, new)]
    bare = [[mark for mark, _ in each] for each in lists]
    is_same = [ast.dump(node) for node in (old.args, *old.body)] == [
        ast.dump(node) for node in (new.args, *new.body)
    ]
    return (
        is_same and bare[0] == bare[1] and all(was <= now for (_, was), (_, now) in zip(*lists, strict=True))
    )


def _list_cases(mark: ast.expr) -> tuple[str, Counter[str]]:
    match mark:
        case ast.Call(args=[names, ast.List(elts=rows) | ast.Tuple(elts=rows), *rest]) if (
            get_last_word(mark.func) == "parametrize"
        ):
            bare = ast.Call(func=mark.func, args=[names, *rest], keywords=mark.keywords)
            return ast.dump(bare), Counter(map(ast.dump, rows))
        case _:
            return ast.dump(mark), Counter()


def _bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield each function's name and the rest of its code; nothing for a text that is not Python."""
    for node in ast.walk(parse_python(text)):
        if isinstance(node, AnyFunction):
            parts = (node.args, *node.decorator_list, *node.body)
            yield node.name, "\n".join(map(ast.dump, parts))
