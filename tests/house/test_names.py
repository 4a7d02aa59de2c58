"""Names are the field's words, and the public surface stays small."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

BANNED = {"manager", "handler", "helper", "helpers", "util", "utils", "service", "impl", "data", "info"}
DICTATED = {"_missing_", "handle_data", "visit_ExceptHandler"}
"""Names that the standard library calls."""
MAX_PUBLIC = 26

BASE_FORMS = {"bring", "embed", "exceed", "feed", "need", "proceed", "seed", "spring", "string", "succeed"}
"""Words that end like a participle and are none."""
IRREGULAR = re.compile(
    "begun|born|bound|broken|brought|built|caught|chosen|done|drawn|driven|fallen|"
    "felt|found|given|gone|grown|heard|held|hidden|kept|known|laid|led|left|lent|"
    "lost|made|meant|met|paid|proven|rewritten|said|seen|sent|shot|shown|sold|spent|"
    "spoken|stood|stuck|taken|taught|thought|thrown|told|torn|undone|won|woven|"
    "written"
)
PARTICIPLES = Path(__file__).with_name("names_participles.txt")
"""Functions named by a participle, as `room name`; the list may only shrink."""
TWICE = Path(__file__).with_name("names_twice.txt")
"""Public names that several modules define; the list may only shrink."""

Sources = dict[str, str]
parse = cache(ast.parse)


def words(name: str) -> list[str]:
    """Return the words of a snake_case or CamelCase name in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name and whether it is a type's, for each name that a module gives away."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                yield node.lineno, node.name, True
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name, False
            case ast.arg():
                yield node.lineno, node.arg, False
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id, False
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
                yield node.lineno, node.attr, False
            case ast.alias(asname=str(name)):
                yield node.lineno, name, False
            case _:
                continue


def is_banned(name: str, *, is_type: bool) -> bool:
    parts = words(name)
    vague = not BANNED.isdisjoint(parts) or (is_type and "base" in parts)
    return vague or (len(parts) > 1 and parts[0] == "process")


def banned_names(sources: Sources) -> list[str]:
    found = []
    for path, text in sources.items():
        module = PurePosixPath(path).stem
        if is_banned(module, is_type=True):
            found.append(f"{path}: {module}")
        for line, name, is_type in bound_names(parse(text)):
            if name not in DICTATED and is_banned(name, is_type=is_type):
                found.append(f"{path}:{line}: {name}")
    return found


def public_lists(sources: Sources) -> dict[str, list[str]]:
    """Return each `__all__`."""
    found = {}
    for path, text in sources.items():
        for node in parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[path] = list(ast.literal_eval(node.value))
    return found


def room_of(path: str) -> str:
    return PurePosixPath(path).with_suffix("").parts[1]


def is_participle(name: str) -> bool:
    first = name.lstrip("_").partition("_")[0]
    return IRREGULAR.fullmatch(first) is not None or (
        first.endswith(("ed", "ing")) and first not in BASE_FORMS
    )


def participle_functions(sources: Sources) -> set[str]:
    """Return the functions that a participle names; properties are values and may."""
    return {
        f"{room_of(path)} {node.name}"
        for path, text in sources.items()
        for node in ast.walk(parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in DICTATED
        and is_participle(node.name)
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def defined_names(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines at its top level; a type variable is for itself."""
    names = set()
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
                continue
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case _:
                continue
    return {name for name in names if not name.startswith("_")}


def names_defined_twice(sources: Sources) -> set[str]:
    counts = Counter(name for text in sources.values() for name in defined_names(parse(text)))
    return {name for name, count in counts.items() if count > 1}


def entries(listed: Path) -> list[str]:
    return [line for line in listed.read_text().splitlines() if not line.startswith("#")]


def test_no_name_is_on_the_banned_list(sources: Sources) -> None:
    assert banned_names(sources) == []


def test_public_names_are_sorted_and_few(sources: Sources) -> None:
    lists = public_lists(sources)
    assert "agentflow/__init__.py" in lists
    for path, names in lists.items():
        assert names == sorted(names), path
        assert len(names) <= MAX_PUBLIC, path


@pytest.mark.parametrize("listed", [PARTICIPLES, TWICE])
def test_a_list_of_exceptions_has_one_sorted_entry_a_line(listed: Path) -> None:
    assert entries(listed) == sorted(set(entries(listed)))


def test_functions_are_named_by_verbs_in_base_form(sources: Sources) -> None:
    found, listed = participle_functions(sources), set(entries(PARTICIPLES))
    assert found - listed == set(), "name these by a verb in base form"
    assert listed - found == set(), f"these are gone: take them out of {PARTICIPLES.name}"


def test_a_public_name_is_defined_in_one_module(sources: Sources) -> None:
    found, listed = names_defined_twice(sources), set(entries(TWICE))
    assert found - listed == set(), "several modules define these: rename all but one"
    assert listed - found == set(), f"these are gone: take them out of {TWICE.name}"


@pytest.mark.parametrize(
    "planted",
    [
        "def asked(): ...",
        "def _shown_lines(): ...",
        "async def running(): ...",
        "class A:\n    def told(self): ...",
        "def f():\n    def kept(): ...",
    ],
)
def test_a_function_named_by_a_participle_is_found(planted: str) -> None:
    assert len(participle_functions({"agentflow/loop/a.py": planted})) == 1


@pytest.mark.parametrize(
    "fine",
    [
        "def bring(): ...",
        "def need_review(): ...",
        "class A:\n    @property\n    def told(self): ...",
        "told = 1",
        "def is_told(): ...",
    ],
)
def test_a_value_or_a_verb_is_no_participle(fine: str) -> None:
    assert participle_functions({"agentflow/process.py": fine}) == set()


@pytest.mark.parametrize("planted", ["def look(): ...", "class look: ...", "look = 1", "look: int = 1"])
def test_a_name_that_two_modules_define_is_found(planted: str) -> None:
    both = {"agentflow/a.py": planted, "agentflow/loop/b.py": "async def look(): ..."}
    assert names_defined_twice(both) == {"look"}


def test_a_private_a_local_and_an_imported_name_may_repeat() -> None:
    fine = "from x import look\nT = TypeVar('T')\n_own = 1\nclass A{}:\n    def run(self):\n        size = 1"
    assert names_defined_twice({f"agentflow/{n}.py": fine.format(n) for n in "ab"}) == set()


@pytest.mark.parametrize(
    "planted",
    [
        "class ToolManager: ...",
        "class HTTPHandler: ...",
        "class RoleBase: ...",
        "class BaseRole: ...",
        "def helper(): ...",
        "def string_utils(): ...",
        "def process_reply(): ...",
        "data = 1",
        "def f(user_data): ...",
        "def f(*, info=None): ...",
        "self.raw_info = 1",
        "for data in (): ...",
        "import json as data",
        "with open('x') as data: ...",
        "x = [info for info in ()]",
        "(service := 1)",
        "class A:\n    data: int = 1",
    ],
)
def test_a_banned_name_is_found(planted: str) -> None:
    assert len(banned_names({"agentflow/a.py": planted})) == 1


@pytest.mark.parametrize("module", ["utils", "base", "helpers", "model_data", "process_runs"])
def test_a_banned_module_is_found(module: str) -> None:
    assert banned_names({f"agentflow/{module}.py": ""}) == [f"agentflow/{module}.py: {module}"]


@pytest.mark.parametrize(
    "fine",
    [
        "base_tree = 1",
        "metadata = 1",
        "process = 1",
        "dataclass = 1",
        "class Side:\n    BASE = 1",
        "parser.EndHandler = 1",
    ],
)
def test_a_word_that_only_looks_like_one_is_not(fine: str) -> None:
    assert banned_names({"agentflow/process.py": fine}) == []
