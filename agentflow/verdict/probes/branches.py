"""Changed Python code that records what tests try: each branch taken, each condition both true and false.

Code that is right today, for this caller or most of the time has a branch that no test takes.
"""

import ast
from collections.abc import Collection, Iterator

from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.probes.breaking import find_changed_lines
from agentflow.verdict.probes.choices import (
    CHOOSERS,
    ValueChoice,
    find_choice,
    find_ignored,
    find_rounds,
    shorten,
)
from agentflow.verdict.syntax import (
    NO_PYTHON,
    AnyFunction,
    insert_ahead,
    is_empty,
    skip_docstring,
)
from agentflow.workspace.mixed_tree import ChangedTexts

_RAN, _TRUE, _FALSE = "r", "1", "0"
_BOOLEAN = (ast.Compare, ast.BoolOp)
_RECORDER = """
def {word}(part, value=NotImplemented, kind=object, seen=set(), at=__import__("os").path.abspath(__file__)):
    try:
        found = "r" if value is NotImplemented else "01"[bool(value)] if isinstance(value, kind) else "01"
    except Exception:
        found = "01"
    if (part, found) in seen:
        return value
    os = __import__("os")  # a test that counts the imports of a file went red
    seen.add((part, found))
    for each in found:
        name = os.path.join(os.path.dirname(at), f"{word}-{{part}}-{{each}}")
        try:
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        except OSError:
            pass
    return value
{word}({loaded})
"""
_Branch = ast.For | ast.AsyncFor | ast.ExceptHandler | ast.match_case


class Branch(Record):
    """A condition or a branch on changed lines."""

    path: str
    line: int
    text: str
    """A condition as it is written; empty for a branch."""
    words: tuple[str, str] = ("is true", "is false")
    """What a test has to show of it; empty for what none need show."""

    def to_hunk(self, wanted: str) -> Hunk:
        return Hunk(path=self.path, line=self.line, end=self.line, wanted=wanted)


class Watched(Record):
    """Changed code that creates an empty file for each branch and condition that is tried."""

    text: str
    path: str
    parts: tuple[Branch, ...]
    word: str
    first: int
    """The number of the first part; that of the load of the file stands before it."""

    def is_loaded(self, left: Collection[str]) -> bool:
        """Return whether a run loaded the code."""
        return self._has(left, self.first - 1, _RAN)

    def list_untried(self, left: Collection[str]) -> Iterator[Hunk]:
        """Yield what no test tried, with the test that would."""
        for number, part in enumerate(self.parts, self.first):
            pairs = zip(part.words, (_TRUE, _FALSE), strict=True)
            missing = [words for words, each in pairs if words and not self._has(left, number, each)]
            if not part.text and not self._has(left, number, _RAN):
                yield part.to_hunk("that runs this")
            elif part.text and missing:
                yield part.to_hunk(f"in which `{part.text}` {' or '.join(missing)}".replace("or is", "or"))

    def list_tried(self, left: Collection[str]) -> Iterator[Hunk]:
        """Yield the conditions that were both true and false."""
        for number, part in enumerate(self.parts, self.first):
            if part.text and all(self._has(left, number, each) for each in (_TRUE, _FALSE)):
                yield part.to_hunk("").replace(proved=True)

    def _has(self, left: Collection[str], number: int, outcome: str) -> bool:
        return any(path.endswith(f"{self.word}-{number}-{outcome}") for path in left)


def watch_change(change: ChangedTexts, word: str, first: int) -> Watched | None:
    """Return changed Python code that records its tried branches; None if it has none."""
    try:
        before, tree = ast.parse(change.before), ast.parse(change.after)
        old = change.replace(before="", after=change.before)
        known = _Watch(old, word, first, frozenset())
        known.visit(before)
        watch = _Watch(change, word, first, frozenset(known.seen))
        tree = ast.fix_missing_locations(watch.visit(tree))
        insert_ahead(tree, ast.parse((_RECORDER + CHOOSERS).format(word=word, loaded=first - 1)).body)
        text = ast.unparse(tree)
    except NO_PYTHON:
        return None
    return (
        Watched(text=text, path=change.path, parts=tuple(watch.parts), word=word, first=first)
        if watch.parts
        else None
    )


class _Watch(ast.NodeTransformer):
    """Adds calls of the recorder to new conditions and branches."""

    def __init__(
        self, change: ChangedTexts, word: str, first: int, known: frozenset[tuple[str, str]]
    ) -> None:
        self.parts: list[Branch] = []
        self._path = change.path
        self._lines = find_changed_lines(change)
        self._source = change.after.encode().splitlines()
        self._word = word
        self._first = first
        self._known = known
        self.seen = set[tuple[str, str]]()
        """All that was looked at, each with its function: what is in it on the old code is not new."""
        self._owner = ""
        self._recorded = set[int]()
        self._added: ast.expr | None = None
        """The condition of the last new case of a choice, which need not be false."""

    def visit_FunctionDef(self, node: AnyFunction) -> ast.AST:
        owner, self._owner = self._owner, node.name
        is_new = self._is_unknown(node.args)
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        if is_new and not is_empty(node):
            node.body.insert(skip_docstring(node), self._mark(node))
        self._owner = owner
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node  # what an annotation says need not run: `list[str]` chose no `str`

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        is_new = self._is_new(node)
        self.generic_visit(node)
        if is_new:
            both = ast.Tuple(elts=[self._call(node, ""), node.body], ctx=ast.Load())
            node.body = ast.Subscript(value=both, slice=ast.Constant(value=1), ctx=ast.Load())
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self._is_unknown(node)  # as part of the old code it may be what a new `elif` is added to
        self._added = self._find_added_case(node) or self._added
        if _is_guard(node):
            self._recorded.add(id(node.test))
        else:
            node.test = self._condition(node.test)
        self.generic_visit(node)
        return node

    def visit_While(self, node: ast.While | ast.IfExp) -> ast.AST:
        node.test = self._condition(node.test)
        self.generic_visit(node)
        return node

    visit_IfExp = visit_While

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.ifs = [self._condition(each) for each in node.ifs]
        self.generic_visit(node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node  # it is there to be true

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return a comparison that records its outcome, whatever is done with it."""
        told = node if id(node) in self._recorded or not self._is_new(node) else self._record(node)
        self.generic_visit(node)
        return told

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        *before, last = node.values
        last = self._condition(last) if isinstance(last, _BOOLEAN) else last
        node.values = [*map(self._condition, before), last]
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_name = isinstance(node.slice, ast.Name | ast.Attribute | ast.Call)
        if is_name and self._is_new(node.slice) and not _is_told(node.slice, self._word):
            node.slice = self._record(node.slice)
        return self.visit_Call(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Return an assignment that records whether it changes its name."""
        choice = find_choice(node, self._tell) if self._is_new(node) else None
        self.generic_visit(node)
        if choice is None:
            return node
        assigned = ast.Assign(targets=[node.target], value=self._choose(node, choice))
        return ast.copy_location(assigned, node)

    def visit_Call(self, node: ast.Call | ast.Subscript | ast.BinOp) -> ast.AST:
        """Return a call, a slice or an operation that records what it chooses."""
        is_new = not _is_told(node, self._word) and self._is_new(node)
        choice = find_choice(node, self._tell) if is_new else None
        self.generic_visit(node)
        return self._choose(node, choice) if choice else node

    visit_BinOp = visit_Call

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        choice = find_ignored(node.context_expr) if self._is_new(node.context_expr) else None
        if choice is not None:
            node.context_expr = self._choose(node.context_expr, choice)
        self.generic_visit(node)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        choice = find_rounds(node) if self._is_new(node.iter) else None
        if choice is not None:
            node.iter = self._choose(node.iter, choice)
        return self._branch(node, node.iter)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._branch(node, node.iter)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        return self._branch(node, node.type or ast.copy_location(ast.Constant(value=None), node))

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = self._condition(node.guard) if node.guard else None
        return self._branch(node, node.pattern)

    def _branch(self, node: _Branch, told: ast.expr | ast.pattern) -> ast.AST:
        """Return a node whose body begins with a call of the recorder, if the branch is new."""
        is_new = self._is_new(told)
        self.generic_visit(node)
        if is_new:
            node.body.insert(0, self._mark(told))
        return node

    def _condition(self, node: ast.expr) -> ast.expr:
        """Return a condition that records its outcome; joined conditions each record theirs."""
        if isinstance(node, ast.BoolOp):
            node.values = [self._condition(each) for each in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._condition(node.operand)
            return node
        is_told = isinstance(node, ast.Constant) or _is_told(node, self._word) or _is_for_types(node)
        return node if is_told or not self._is_new(node) else self._call(node, self._tell(node), node)

    def _record(self, node: ast.expr) -> ast.Call:
        """Return a value that records its outcome where it is true or false, and nothing else."""
        told = self._call(node, self._tell(node), node)
        told.args.append(ast.Name(id="bool", ctx=ast.Load()))
        return told

    def _find_added_case(self, node: ast.If) -> ast.expr | None:
        """Return the last condition of a choice by one value, if all that is new of it are cases at its end.

        For every other value the code does what it did before.
        """
        cases = _list_cases(node)
        kept = [each for each in cases if each.test.lineno not in self._lines]
        chosen = {_get_chosen(each.test) for each in cases}
        is_longer = 0 < len(kept) < len(cases) and kept == cases[: len(kept)]
        if not is_longer or cases[-1].orelse or len(chosen) > 1 or "" in chosen:
            return None
        added, kept[-1].orelse = kept[-1].orelse, []
        is_known = (self._owner, ast.dump(node)) in self._known
        kept[-1].orelse = added
        return cases[-1].test if is_known else None

    def _is_new(self, node: ast.expr | ast.pattern | ast.stmt) -> bool:
        """Return whether a node is on a changed line and was not in the same function before."""
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return self._is_unknown(node) and not self._lines.isdisjoint(lines)

    def _is_unknown(self, node: ast.AST) -> bool:
        told = (self._owner, ast.dump(node))
        self.seen.add(told)
        return told not in self._known

    def _mark(self, node: ast.AST) -> ast.stmt:
        return ast.Expr(value=self._call(node, ""))

    def _choose(self, node: ast.expr | ast.AugAssign, choice: ValueChoice) -> ast.Call:
        number = self._add(node, self._tell(node), choice.words)
        return ast.copy_location(choice.to_call(self._word, number), node)

    def _call(self, node: ast.AST, text: str, value: ast.expr | None = None) -> ast.Call:
        self._recorded.add(id(value))
        words = ("is true", "" if value is not None and value is self._added else "is false")
        number = ast.Constant(value=self._add(node, "" if value is None else text, words))
        arguments: list[ast.expr] = [number, *([] if value is None else [value])]
        return ast.Call(func=ast.Name(id=self._word, ctx=ast.Load()), args=arguments, keywords=[])

    def _add(self, node: ast.AST, text: str, words: tuple[str, str]) -> int:
        """Add a part that is recorded, and return its number."""
        line = getattr(node, "lineno", 1)
        self.parts.append(Branch(path=self._path, line=line, text=text, words=words))
        return self._first + len(self.parts) - 1

    def _tell(self, node: ast.expr | ast.AugAssign) -> str:
        """Return code as it stands in the file."""
        lines = self._source[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return shorten(b" ".join(lines).decode())


def _list_cases(node: ast.If) -> list[ast.If]:
    """Return an `if` and each `elif` of it."""
    cases = [node]
    while len(rest := cases[-1].orelse) == 1 and isinstance(rest[0], ast.If):
        cases.append(rest[0])
    return cases


def _get_chosen(condition: ast.expr) -> str:
    """Return the value that a condition compares with a constant; empty for any other condition."""
    match condition:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as left, ops=[ast.Eq()], comparators=[ast.Constant()]
        ):
            return ast.unparse(left)
        case _:
            return ""


def _is_told(node: ast.expr, word: str) -> bool:
    """Return whether a condition already calls the recorder."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(word)


def _is_for_types(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] == "TYPE_CHECKING"


def _is_guard(node: ast.If) -> bool:
    """Return whether a node is `if __name__ == '__main__'` with one call."""
    if ast.unparse(node.test) != "__name__ == '__main__'" or len(node.body) != 1 or node.orelse:
        return False
    parts = [each for each in ast.walk(node.body[0]) if isinstance(each, ast.expr)]
    return all(isinstance(each, ast.Call | ast.Name | ast.Attribute) for each in parts)
