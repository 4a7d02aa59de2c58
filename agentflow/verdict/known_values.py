"""New code that knows its tests: their values in conditions, and conditions on clock or surroundings."""

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TypeGuard, TypeVar

from agentflow.core.regex import regex
from agentflow.core.verdict import Remark, Tampering
from agentflow.verdict.comments import parse_python, read_python

COMMON = frozenset(
    {12, 15, 16, 24, 32, 60, 64, 128, 255, 256, 365, 404, 512, 1024, 3600, *range(10, 2001, 10)}
)
"""Numbers that tests and code share by chance."""
_STATUS = frozenset(map(int, HTTPStatus))
_SMALL = 32
"""Below it numbers count days, months, letters and small things, in tests as in code."""
_LITERAL = regex(r"\"([^\"\n]*)\"|'([^'\n]*)'|(?<![\w.])(0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)(?![\w.])")
_PHRASE = regex(r".*\w\s+\w.*")
_DECIDES = regex(
    r"[=!]==?|\bcase\b|\bwhen\b|\s-eq\b|\bincludes\(|\bhas\(|=>|[\d\"']\s*:\s*-?[\d\"']|^\s*[\w'\"| ]+\)\s"
)
"""What makes a line of another language a condition or a row of a table."""
_BETWEEN = regex(r"[|,;:=\t{}\[\]\"']+")
_SHELL_FUNCTION = regex(r"(?m)^[ \t]*(?:function[ \t]+)?(\w+)[ \t]*\([ \t]*\)")
_ASKED = regex(r"\b(?:command -[vV]|type|which|hash|declare -[fF]|typeset -f)[ \t]+[\"']?(\w+)")
_ABOUT_STATUS = regex(r"(?i)status|code|http")
_WINDOW = 3
"""So many lines a condition and its result may take."""
Value = float | str
_Node = TypeVar("_Node", bound=ast.AST)


class Known:
    """The values that tests spell out: all of them, and those of each line."""

    def __init__(self, texts: Iterable[str]) -> None:
        rows = {_values_of(line) for text in texts for line in text.splitlines()}
        self._rows = tuple(row for row in rows if len(row) > 1)
        self._all = frozenset[Value]().union(*rows)

    def odd(self, values: Iterable[object]) -> frozenset[Value]:
        """Return the values that code and tests hardly share by chance."""
        return frozenset(value for value in _plain(values) if self._has(value) and _is_odd(value))

    def _has(self, value: Value) -> bool:
        is_number = isinstance(value, str) and value.isdecimal()
        return (float(value) if is_number else value) in self._all

    def is_row(self, values: Iterable[object]) -> bool:
        """Tell whether one line of the tests has all of these values, two of them of some weight."""
        found = _plain(values)
        telling = {value for value in found if value not in (0, 1, "")}
        return len(telling) > 1 and any(found <= row for row in self._rows)


def _values_of(line: str) -> frozenset[Value]:
    found = _LITERAL.findall(line)
    values = {_number(number) if number else one or other for one, other, number in found}
    inner = (_values_of(one) for one, _, _ in found if "'" in one)  # a shell's "$(f 'x')"
    return frozenset(values).union(*inner)


def _number(text: str) -> float:
    return float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text.replace("_", ""))


def _plain(values: Iterable[object]) -> frozenset[Value]:
    found = (value for value in values if isinstance(value, int | float | str))
    return frozenset(value for value in found if not isinstance(value, bool))


def _is_odd(value: Value) -> bool:
    if isinstance(value, str):
        return _is_odd(float(value)) if value.isdecimal() else bool(_PHRASE.fullmatch(value))
    return (value >= _SMALL or value % 0.25 != 0) and value not in COMMON


def find_known_rows(added: Sequence[tuple[int, str]], known: Known) -> Iterator[tuple[int, str]]:
    """Yield the new lines of another language that compare with values of the tests."""
    for place, (line, text) in enumerate(added):
        if not _DECIDES.search(text):
            continue
        near = [after for at, after in added[place : place + _WINDOW] if at < line + _WINDOW]
        values = _values_of(text)
        odd = known.odd(values)
        is_odd = bool(odd) and not (odd <= _STATUS and _ABOUT_STATUS.search(text))
        windows = ("\n".join(near[:end]) for end in range(1, len(near) + 1))
        if is_odd or (values and any(known.is_row(_values_of(window)) for window in windows)):
            yield line, text


def find_copied_rows(text: str, tests: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows of a file of data if each stands in a line of the tests, odd values among them."""
    lines = [line for each in tests for line in each.splitlines()]
    rows = [(at, row) for at, row in enumerate(text.splitlines(), 1) if row.strip()]
    fields = [[field for part in _BETWEEN.split(row) if (field := part.strip())] for _, row in rows]
    is_known = all(len(row) > 1 and any(all(map(line.__contains__, row)) for line in lines) for row in fields)
    if rows and is_known and any(_is_odd(field) for row in fields for field in row):
        yield from rows


def find_asking_rows(added: Iterable[tuple[int, str]], tests: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the new lines of a shell that ask whether a function of the tests is there."""
    names = {name for text in tests for name in _SHELL_FUNCTION.findall(text)}
    for line, text in added:
        if not names.isdisjoint(_ASKED.findall(text)):
            yield line, text


def find_known_lines(before: str, after: str, known: Known) -> Iterator[tuple[int, str]]:
    """Yield the new conditions and tables of Python code that hold values of the tests."""
    for node in _find_new(before, after, _find_decisions):
        if _knows(node, known):
            yield getattr(node, "lineno", 1), ast.unparse(node).partition("\n")[0]


def _find_new(before: str, after: str, find: Callable[[ast.Module], Iterator[_Node]]) -> Iterator[_Node]:
    """Yield the nodes that only the new code has; none where the old code cannot be parsed."""
    old, new = read_python(before), read_python(after)
    if old is None or new is None:
        return
    left = Counter(map(ast.dump, find(old)))
    for node in find(new):
        dump = ast.dump(node)
        if left[dump]:
            left[dump] -= 1
        else:
            yield node


def _find_decisions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what decides over what code does: conditions, patterns and tables."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare() | ast.Dict() | ast.If() | ast.IfExp() | ast.BinOp(op=ast.Add()):
                yield node
            case ast.BinOp(op=ast.Sub(), right=ast.Compare()):
                yield node
            case ast.match_case(pattern=ast.MatchValue(value=value)):
                yield value
            case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp() as operand):
                yield operand
            case _:
                pass


def _knows(node: ast.AST, known: Known) -> bool:
    """Tell whether a condition or a table holds values of the tests."""
    match node:
        case ast.Dict(keys=keys, values=values):
            return _is_table_of_tests(keys, values, known)
        case ast.Compare(ops=ops):
            found = known.odd(_constants(node))
            return _is_exact(ops) and bool(found) and not (found <= _STATUS and _names_status(node))
        case ast.If(test=test, body=[ast.Return(value=result) | ast.Assign(value=result), *_]):
            return _is_answer(test, result, known)
        case ast.IfExp(test=test, body=result):
            return _is_answer(test, result, known)
        case ast.BinOp(right=ast.Compare() as nudge) | ast.BinOp(op=ast.Add(), left=ast.Compare() as nudge):
            return _is_nudge(nudge)
        case ast.BinOp(op=ast.Add()):
            return False
        case ast.Constant() | ast.BinOp(op=ast.Sub() | ast.BitXor()):
            return bool(known.odd(_constants(node)))
        case _:
            return False


def _is_nudge(node: ast.Compare) -> bool:
    """Tell whether a result is one more or less for certain values: arithmetic that no rule leads to."""
    values = {value for value in _plain(_constants(node)) if value not in (0, 1, "")}
    return _is_exact(node.ops) and bool(values)


def _is_exact(ops: Iterable[ast.cmpop]) -> bool:
    return all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is) for op in ops)


def _is_answer(test: ast.expr, result: ast.expr | None, known: Known) -> bool:
    """Tell whether a condition on constants leads to the constant that a test expects of them."""
    if isinstance(test, ast.BinOp):
        return bool(known.odd(_constants(test)))
    compared = [each for each in ast.walk(test) if isinstance(each, ast.Compare) and _is_exact(each.ops)]
    answer = result.operand if isinstance(result, ast.UnaryOp) else result
    if not compared or not isinstance(answer, ast.Constant):
        return False
    asked = [value for each in compared for value in _constants(each)]
    is_doubled = any(
        isinstance(value, int) and _is_odd(value) for value in asked if not isinstance(value, bool)
    )
    is_number = isinstance(answer.value, int | float) and not isinstance(answer.value, bool)
    is_status = _plain(asked) <= _STATUS
    return known.is_row([*asked, answer.value]) or (is_doubled and is_number and not is_status)


def _is_table_of_tests(keys: Sequence[ast.expr | None], values: Sequence[ast.expr], known: Known) -> bool:
    """Tell whether a table leads from values of the tests to what they expect, and from nothing else."""
    given = [key for key in keys if key is not None]
    if not given or len(given) < len(keys) or not all(map(_is_constant, (*given, *values))):
        return False
    found = known.odd(value for key in given for value in _constants(key))
    results = _plain(value for each in values for value in _constants(each))
    if found and not (found <= _STATUS and all(isinstance(each, str) for each in results)):
        return True
    rows = zip(given, values, strict=True)
    return all(known.is_row([*_constants(key), *_constants(value)]) for key, value in rows)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple)


def _constants(node: ast.AST) -> list[object]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]


def _names_status(node: ast.expr) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return any("status" in name.lower() or "code" in name.lower() for name in names)


_YEAR = 1000
"""From here on a number that is compared with the clock is a year or a moment."""
_CLOCKS = frozenset({"time", "time_ns", "now", "utcnow", "today", "fromtimestamp", "localtime", "gmtime"})
_MODULES_OF_CLOCKS = frozenset({"time", "datetime", "date", "dt"})
_ORDINARY_OF_SYS = frozenset(
    {
        *("version_info", "platform", "argv", "maxsize", "byteorder", "hexversion", "implementation"),
        *("maxunicode", "float_info", "getsizeof", "exc_info", "path"),
    }
)
_SURROUNDINGS = frozenset({"__file__", "__debug__", "__spec__", "__loader__", "vars", "globals"})
_ATTRIBUTES = frozenset(
    {
        *("environ", "getenv", "getcwd", "getpid", "getppid", "gettempdir", "tempdir", "gethostname"),
        *("getfqdn", "node", "getuser", "getlogin", "__file__", "__debug__"),
    }
)
_SETTINGS = frozenset({"environ", "getenv"})
_OF_RUNS = regex(r"(?i)test|^CI$|_CI$|^CI_|tox|nox|coverage|github|gitlab|jenkins|hypothesis")
"""What names a variable that tells one run of tests from another."""
_CHANCE = frozenset({"random", "randint", "randrange", "choice", "uniform", "getrandbits", "randbelow"})
_OF_TESTS = frozenset({"test", "tests", "test_", "_test", ".test", "pytest", "unittest", "conftest", "spec"})
_BUILT_IN = (int, float, str, bytes, tuple, list, dict, set, frozenset)
_VALUES = frozenset(each.__name__ for each in _BUILT_IN)
_OF_VALUES = frozenset(name for each in _BUILT_IN for name in dir(each))
_COMPARED = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})


def find_switches(before: str, after: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the new conditions of code that do not depend on what it is given.

    Each comes with whether it asks for nothing but variables of the environment that a test may set.
    """
    for node in _find_new(before, after, _conditions):
        if _is_switch(node):
            yield node.lineno, ast.unparse(node).partition("\n")[0], _is_setting(node)


def _conditions(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield test
            case ast.Compare() | ast.BinOp(op=ast.Mod()):
                yield node
            case ast.Call(func=ast.Name(id="hash"), args=[ast.Constant(value=str())]):
                yield node  # another number with each seed, and nothing else
            case ast.comprehension(ifs=tests):
                yield from tests
            case _:
                pass


def _is_switch(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash":
        return True
    if isinstance(node, ast.BinOp):
        return _reads_clock(node.left) or _calls(node.left, "id")
    is_dated = isinstance(node, ast.Compare) and _reads_clock(node) and _says_date(node)
    is_counted = isinstance(node, ast.Compare) and _calls(node, "next") and _has_constant(node)
    return is_dated or is_counted or _looks_around(node)


def _is_setting(node: ast.expr) -> bool:
    """Tell whether a condition asks for variables of the environment alone, by plain names of features."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    names = [text for text in texts if isinstance(text, str)]
    is_plain = bool(names) and not any(_OF_RUNS.search(name) for name in names)
    is_joined = any(isinstance(each, ast.BinOp | ast.JoinedStr) for each in ast.walk(node))
    return is_plain and not is_joined and not _looks_around(node, _ATTRIBUTES - _SETTINGS)


def _looks_around(node: ast.expr, attributes: frozenset[str] = _ATTRIBUTES) -> bool:
    """Tell whether a condition asks where, by whom or beside what the code runs."""
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="sys"), attr=word) if word not in _ORDINARY_OF_SYS:
                return True
            case ast.Attribute(value=ast.Name(id="random" | "secrets"), attr=word) if word in _CHANCE:
                return True
            case ast.Name(id=word) if word in _SURROUNDINGS:
                return True
            case ast.Attribute(attr=word) if word in attributes:
                return True
            case ast.Constant(value=str() as word) if word.strip("/").lower() in _OF_TESTS:
                return isinstance(node, ast.Compare)
            case _:
                pass
    return False


def _reads_clock(node: ast.AST) -> bool:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(
        isinstance(call, ast.Attribute)
        and call.attr in _CLOCKS
        and not _MODULES_OF_CLOCKS.isdisjoint(_names(call))
        for call in calls
    )


def _names(node: ast.AST) -> frozenset[str]:
    nodes = tuple(ast.walk(node))
    attributes = {each.attr for each in nodes if isinstance(each, ast.Attribute)}
    return frozenset({each.id for each in nodes if isinstance(each, ast.Name)} | attributes)


def _says_date(node: ast.expr) -> bool:
    """Tell whether a comparison names a year or a moment; a difference of two moments is a duration."""
    if any(isinstance(each, ast.Sub) for each in ast.walk(node)):
        return False
    constants = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return any(isinstance(value, int | float) and value >= _YEAR for value in constants)


def _has_constant(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Constant) and each.value is not None for each in ast.walk(node))


def _calls(node: ast.expr, name: str) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
        for each in ast.walk(node)
    )


def find_careless_comparisons(path: str, before: str, after: str) -> Iterator[Remark]:
    """Yield the comparisons of a change that look at something else than the two values."""
    if not path.endswith(".py"):
        return
    known = {ast.dump(node) for node in _careless(before)}
    for node in _careless(after):
        if ast.dump(node) not in known:
            text = ast.unparse(node).partition("\n")[0]
            said = f"{text} ignores its argument" if _ignores(node) else f"{text} is not that of the value"
            yield Remark(kind=Tampering.PATCHED, path=path, line=node.lineno, text=said)


def _careless(text: str) -> Iterator[ast.FunctionDef | ast.Lambda]:
    for node in ast.walk(parse_python(text)):
        match node:
            case ast.ClassDef(bases=bases) if any(getattr(base, "id", "") in _VALUES for base in bases):
                yield from (each for each in node.body if _compares_anew(each))
                continue
            case ast.FunctionDef(name=name) if name in _COMPARED:
                found: list[ast.AST] = [node]
            case ast.Dict(keys=keys, values=values):
                found = [value for key, value in zip(keys, values, strict=True) if _is_comparison(key)]
            case _:
                continue
        yield from (
            each for each in found if isinstance(each, ast.FunctionDef | ast.Lambda) if _ignores(each)
        )


def _compares_anew(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Tell whether a number or text of another class compares what neither its value nor the other has."""
    if not isinstance(node, ast.FunctionDef) or node.name not in ("__eq__", "__ne__") or _ignores(node):
        return False
    parts = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    read = {(getattr(each.value, "id", ""), each.attr) for each in parts if each.attr not in _OF_VALUES}
    own, other = ({attr for name, attr in read if name == given.arg} for given in node.args.args[:2])
    return bool(own - other) and "super()" not in ast.unparse(node)


def _is_comparison(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value in _COMPARED


def _ignores(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a comparison never names what it compares with."""
    others = [given.arg for given in node.args.args[1:2]]
    return bool(others) and not any(
        isinstance(each, ast.Name) and each.id in others for each in ast.walk(node)
    )
