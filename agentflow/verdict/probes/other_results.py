"""New functions that return something else: whoever checks their results has to notice."""

import ast
from collections.abc import Iterator

from agentflow.core.languages import GO, SCRIPTS
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.probes.breaking import Marks
from agentflow.verdict.probes.go_results import list_go_functions, return_other
from agentflow.verdict.probes.script_functions import ScriptFunction, list_script_functions
from agentflow.verdict.syntax import AnyFunction, insert_ahead, is_empty, parse_python
from agentflow.workspace.mixed_tree import ChangedTexts

_OTHER = """
def {word}(function):
    import functools, inspect, pathlib
    def other(value):
        kind = type(value)
        if kind is bool:
            return not value
        if kind in (int, float):
            return 1 if value < 0 else value + value // 2 + 1
        if kind in (str, bytes):
            return value + kind(b"~" if kind is bytes else "~")
        if kind is list:
            return [*map(other, value), None]
        if kind is tuple and value:
            return tuple(map(other, value))
        if kind is dict:
            return {{**{{key: other(part) for key, part in value.items()}}, "~": None}}
        return value
    def tell(value):
        found = other(value)
        if found is not value:
            try:
                pathlib.Path(__file__).with_name({reached!r}).touch()
            except OSError:
                pass
        return found
    @functools.wraps(function)
    def call(*args, **named):
        return tell(function(*args, **named))
    @functools.wraps(function)
    async def wait(*args, **named):
        return tell(await function(*args, **named))
    @functools.wraps(function)
    def give(*args, **named):
        for value in function(*args, **named):
            yield tell(value)
    if inspect.isasyncgenfunction(function):
        return function
    if inspect.iscoroutinefunction(function):
        return wait
    return give if inspect.isgeneratorfunction(function) else call
"""


class NewFunction(Record):
    """A function or method that a change adds to a file."""

    change: ChangedTexts
    name: str
    place: tuple[int, int]
    """Its line and column."""
    hunk: Hunk
    of_script: ScriptFunction | None = None

    def make_other(self, marks: Marks) -> str:
        """Return the file in which the function returns something else, which it marks as reached."""
        if self.of_script:
            return self.of_script.make_other(self.change.path, self.change.after, marks.word, marks.reached)
        names = {"word": marks.word, "reached": marks.reached}
        if self.change.path.endswith(GO):
            return return_other(self.change.path, self.change.after, self.place[0], **names)
        tree = ast.parse(self.change.after)
        for node in ast.walk(tree):
            if isinstance(node, AnyFunction) and (node.lineno, node.col_offset) == self.place:
                node.decorator_list.append(ast.Name(id=marks.word, ctx=ast.Load()))
        insert_ahead(tree, ast.parse(_OTHER.format(**names)).body)
        return ast.unparse(ast.fix_missing_locations(tree))


def find_new_functions(changes: tuple[ChangedTexts, ...]) -> Iterator[NewFunction]:
    """Yield the functions that a change adds and whose results may be changed; none that has only moved."""
    yield from _find_in_python([each for each in changes if each.path.endswith(".py")])
    yield from _find_in_scripts([each for each in changes if each.path.endswith(SCRIPTS)])
    yield from _find_in_go([each for each in changes if each.path.endswith(GO)])


def _find_in_python(changes: list[ChangedTexts]) -> Iterator[NewFunction]:
    old = {ast.dump(node) for each in changes for _, node in _list_functions(each.before)}
    for change in changes:
        known = {name for name, _ in _list_functions(change.before)}
        for name, node in _list_functions(change.after):
            if name not in known and ast.dump(node) not in old and not _is_left_alone(node):
                place = (node.lineno, node.col_offset)
                yield _to_new(change, name, place, node.end_lineno or node.lineno)


def _find_in_scripts(changes: list[ChangedTexts]) -> Iterator[NewFunction]:
    old = {found.name for each in changes for found in list_script_functions(each.path, each.before)}
    for change in changes:
        for found in list_script_functions(change.path, change.after):
            if found.name not in old:
                line = change.after.count("\n", 0, found.start) + 1
                yield _to_new(change, found.name, (line, 0), line).replace(of_script=found)


def _find_in_go(changes: list[ChangedTexts]) -> Iterator[NewFunction]:
    old = {each.text for change in changes for each in list_go_functions(change.path, change.before)}
    for change in changes:
        known = {each.name for each in list_go_functions(change.path, change.before)}
        for each in list_go_functions(change.path, change.after):
            if each.tells and each.name not in known and each.text not in old:
                yield _to_new(change, each.name, (each.line, 0), each.end)


def _to_new(change: ChangedTexts, name: str, place: tuple[int, int], end: int) -> NewFunction:
    hunk = Hunk(path=change.path, line=place[0], end=end, wanted=f"that checks what `{name}` returns")
    return NewFunction(change=change, name=name, place=place, hunk=hunk)


def _list_functions(text: str) -> Iterator[tuple[str, AnyFunction]]:
    """Yield the functions of a module and of its classes, each with its whole name."""
    owners: list[tuple[str, ast.Module | ast.ClassDef]] = [("", parse_python(text))]
    for begin, owner in owners:
        for node in owner.body:
            if isinstance(node, ast.ClassDef):
                owners.append((f"{begin}{node.name}.", node))
            elif isinstance(node, AnyFunction):
                yield f"{begin}{node.name}", node


def _is_left_alone(node: AnyFunction) -> bool:
    """Return whether a function has no result that tells, or one that a decorator takes apart."""
    if is_empty(node) or node.name == "__hash__":
        return True
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)):
        return bool(node.decorator_list)
    given = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
    is_same = len({*map(ast.dump, given)}) == 1 and isinstance(given[0], ast.Constant)
    return not given or is_same
