"""Oracle probes: tests that expect another value and therefore have to fail."""

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING

from agentflow.core.evidence import RED, TestOutcome
from agentflow.core.record import Record
from agentflow.core.test_ids import get_test_function
from agentflow.languages.grammars import parse_source
from agentflow.verdict.syntax import AnyFunction, get_last_word, is_literal, name_imported, read_python

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node

_EQUAL = re.compile(r"(?!.*(?:not|greater|less))assert.*(?:equal|allclose)", re.IGNORECASE)
_CLAIM = re.compile(r"(?:assert|check|expect|verify|ensure)_?\w*", re.IGNORECASE)
_MAY_FAIL = re.compile(r"xfail|expectedFailure|flaky|skip")
_CATCHES = re.compile(r"raises|suppress", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OFFSET = 7_919
_ASSERTS = re.compile(r"assert|check|expect|same|equal|want|verify|^(?:is|ok)\b", re.IGNORECASE)
_EQUALS = frozenset({"==", "===", "!=", "!==", "=", "-eq", "-ne"})
_ROUGH = re.compile(r"approx|almost|close|near|tol|delta|places|digits|round", re.IGNORECASE)
"""Assertions that accept neighbouring values."""


class Oracle(Record):
    """A file of tests with copies beside them, each of which must fail."""

    text: str
    copies: Mapping[str, str]
    """The test and the value that its copy no longer expects, by the name of the copy."""


def copy_tests(text: str, tests: Collection[str], word: str, most: int) -> Oracle | None:
    """Return a file with copies of the named test functions that expect other values.

    None where no assertion compares. `word` stands nowhere in the file.
    """
    tree = read_python(text)
    if tree is None:
        return None
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {name_imported(each) for node in imports for each in node.names}
    copies = dict[str, str]()
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
    for owner in owners:
        tested = [node for node in owner.body if isinstance(node, AnyFunction) and node.name in tests]
        made = (one for node in tested for one in _expect_others(node, word, imported))
        for function, said in islice(made, most - len(copies)):
            owner.body.append(function)
            copies[function.name] = said
    return Oracle(text=ast.unparse(ast.fix_missing_locations(tree)), copies=copies) if copies else None


def find_softened(copies: Mapping[str, str], outcomes: Mapping[str, TestOutcome]) -> tuple[str, ...]:
    """Return the expected values in whose place others would do as well."""
    passed = {get_test_function(test) for test, end in outcomes.items() if end is TestOutcome.PASSED}
    return tuple(dict.fromkeys(said for name, said in copies.items() if name in passed))


def gave_results(copies: Collection[str], outcomes: Mapping[str, TestOutcome]) -> bool:
    """Return whether one of the copies ran."""
    ends = (TestOutcome.PASSED, *RED)
    return any(end in ends and get_test_function(test) in copies for test, end in outcomes.items())


def _expect_others(
    test: AnyFunction, word: str, imported: Collection[str]
) -> Iterator[tuple[AnyFunction, str]]:
    """Yield copies of a test, each with what one assertion no longer expects.

    Their names begin like the test's, and no filter by the test's name finds them.
    """
    if any(_MAY_FAIL.search(ast.unparse(each)) for each in test.decorator_list):
        return
    assertions = list(_list_assertions(test.body))
    for number, step in product(range(len(assertions)), (-1, 1)):
        found = copy.deepcopy(test)
        found.name = f"{test.name[:-1]}_{word}_{number}_{step + 1}_{test.name[-1]}"
        place = next(islice(_list_assertions(found.body), number, None))
        said = _expect_other(place, 0 if _ROUGH.search(ast.unparse(place)) else step, imported)
        if said and (step < 0 or _NUMBER.fullmatch(said)):
            yield found, f"{test.name}: {said}"


def _list_assertions(body: list[ast.stmt]) -> Iterator[ast.Assert | ast.Expr]:
    """Yield the statements that run whenever a test passes, and that may assert."""
    for node in body:
        if isinstance(node, ast.Assert | ast.Expr):
            yield node
        elif isinstance(node, ast.With | ast.AsyncWith) and not any(
            _CATCHES.search(ast.unparse(each.context_expr)) for each in node.items
        ):
            yield from _list_assertions(node.body)


def _expect_other(place: ast.Assert | ast.Expr, step: int, imported: Collection[str]) -> str:
    """Let an assertion expect something else; return what it expected, or nothing if it does not compare."""
    if isinstance(place, ast.Assert):
        return _change_comparison(place.test, step)
    call = place.value
    if not isinstance(call, ast.Call):
        return ""
    name = get_last_word(call.func)
    if name == "assertTrue" and call.args:
        return _change_comparison(call.args[0], step)
    if _EQUAL.match(name) and len(call.args) > 1:
        return _change_one(call.args, step)
    is_claim = isinstance(call.func, ast.Name) and name in imported and _CLAIM.fullmatch(name)
    if not is_claim or not any(map(is_literal, call.args)):
        return ""
    said = ast.unparse(call)
    call.args = [_make_object() for _ in call.args]
    return said


def _change_comparison(node: ast.expr, step: int) -> str:
    """Change one side of an equality that has to hold."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return next(filter(None, (_change_comparison(each, step) for each in node.values)), "")
    if not isinstance(node, ast.Compare) or [type(each) for each in node.ops] != [ast.Eq]:
        return ""
    sides = [node.left, *node.comparators]
    said = _change_one(sides, step)
    node.left, node.comparators = sides[0], sides[1:]
    return said


def _change_one(sides: list[ast.expr], step: int) -> str:
    """Change the side that is a literal, or the second one; return what it was.

    A number is another one by the step, or far off by none; what reads it from the test would give that.
    """
    place = next((at for at, side in enumerate(sides[:2]) if is_literal(side)), 1)
    side = sides[place]
    match side:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            near = number + step
            sides[place] = ast.Constant(value=near if near != number else 2 * abs(number) + _OFFSET)
        case _:
            sides[place] = _make_object()
    return ast.unparse(side)


def _make_object() -> ast.expr:
    return ast.parse("object()", mode="eval").body


def expect_others(path: str, text: str, word: str) -> tuple[str, list[int]] | None:
    """Return a file of tests in another language with each literal that is compared changed, and their lines.

    None where there is none.
    """
    tree = parse_source(path, text)
    if tree is None:
        return None
    found = list["Node | None"]()
    literals = {each.id for name in ("number", "string") for each in tree.nodes[name]}
    for node in tree.nodes["binary"]:
        signs = {tree.read(each) for each in node.children[1:-1]}
        found += [node.children[-1]] if signs & _EQUALS else []
    for node in tree.nodes["call"]:
        fields = (node.child_by_field_name(name) for name in ("function", "name"))
        called = next(filter(None, fields), node.children[0])
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and _ASSERTS.search(tree.read(called)):
            given = arguments.named_children[1::-1]
            found.append(next((each for each in given if each.id in literals), None))
    found += [node.named_children[-1] for node in tree.nodes["compared"] if node.named_children]
    timed = [range(each.start_byte, each.end_byte) for each in tree.nodes["timed"]]
    nodes = {
        each.start_byte: each
        for each in found
        if each is not None and each.id in literals and not any(each.start_byte in part for part in timed)
    }
    source = bytearray(tree.text)
    for _, node in sorted(nodes.items(), reverse=True):
        said = tree.read(node)
        other = f"{said[:-1]}{word}{said[-1]}" if said[-1:] in "\"'`" else f"{_OFFSET}{said}"
        source[node.start_byte : node.end_byte] = other.encode()
    lines = sorted(each.start_point.row + 1 for each in nodes.values())
    return (source.decode("utf-8", "replace"), lines) if nodes else None
