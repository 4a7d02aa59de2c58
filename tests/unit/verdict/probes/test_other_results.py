import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.verdict.probes.breaking import Marks
from agentflow.verdict.probes.other_results import find_new_functions
from agentflow.workspace.mixed_tree import ChangedTexts

MARKS = Marks(word="kwq", loaded="kwq", reached="kreached")


def a_change(after: str, before: str = "", path: str = "core.py") -> ChangedTexts:
    return ChangedTexts(path=path, before=before, after=after, modes=("100644", "100644"))


def wanted(*changes: ChangedTexts) -> list[str]:
    return [each.hunk.wanted for each in find_new_functions(changes)]


@pytest.mark.parametrize(
    ("code", "call", "found"),
    [
        ("def f():\n    return 1 + 1\n", "f()", -3),
        ("def f():\n    return 'a'.upper()\n", "f()", "A~"),
        ("def f():\n    return [1, [True]]\n", "f()", [-2, [False, None], None]),
        ("def f():\n    return 1, 'a'\n", "f()", (-2, "a~")),
        ("def f():\n    return {'a': 1.5}\n", "f()", {"a": -2.5, "~": None}),
        ("def f():\n    yield 1\n    yield 2\n", "list(f())", [-2, -3]),
        ("async def f():\n    return 1 + 1\n", "__import__('asyncio').run(f())", -3),
        ("class A:\n    @property\n    def size(self):\n        return len('a')\n", "A().size", -2),
        ("class A:\n    @staticmethod\n    def f():\n        return len('a')\n", "A.f()", -2),
        ("from __future__ import annotations\ndef f(a: int = 1) -> int:\n    return a\n", "f()", -2),
    ],
)
def test_a_new_function_returns_something_else_of_its_kind(
    tmp_path: Path, code: str, call: str, found: object
) -> None:
    (new,) = find_new_functions((a_change(code),))
    tmp_path.joinpath("core.py").write_text(new.make_other(MARKS))
    said = f"from core import *\nassert {call} == {found!r}, {call}"
    subprocess.run([sys.executable, "-B", "-c", said], cwd=tmp_path, check=True)
    assert tmp_path.joinpath("kreached").exists()


def test_what_has_no_other_result_of_its_kind_is_not_marked(tmp_path: Path) -> None:
    (new,) = find_new_functions((a_change("def f(a):\n    return a\n"),))
    tmp_path.joinpath("core.py").write_text(new.make_other(MARKS))
    said = "from core import f\nassert f(None) is None and f(f) is f and f(()) == ()"
    subprocess.run([sys.executable, "-B", "-c", said], cwd=tmp_path, check=True)
    assert not tmp_path.joinpath("kreached").exists()


def test_new_functions_and_methods_are_found() -> None:
    after = "def f(a):\n    return a\n\n\nclass A:\n    def g(self):\n        return len(self)\n"
    assert wanted(a_change(after, "def f(a):\n    return -a\n")) == ["that checks what `A.g` returns"]


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    print()\n",
        "def f():\n    return 0\n",
        "def f(a):\n    if a:\n        return True\n    return True\n",
        "def f():\n    raise NotImplementedError\n",
        "class A:\n    def __hash__(self):\n        return id(self)\n",
        "@contextmanager\ndef f():\n    yield 1\n",
    ],
)
def test_functions_without_a_result_that_tells_are_left_alone(code: str) -> None:
    assert wanted(a_change(code)) == []


def test_a_function_that_moved_is_not_new() -> None:
    code = "def f(a):\n    return a\n"
    assert wanted(a_change("", code, "old.py"), a_change(code, path="new.py")) == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    ("path", "code", "found"),
    [
        ("a.cjs", "function f() { return 2; }\nmodule.exports = { f };\n", "-3"),
        ("a.cjs", "exports.f = () => f();\nfunction f() { return [1, 'a', { b: true }]; }\n",
         "[-2, 'a~', { b: false, '~': null }, null]"),
        ("a.mjs", "export async function f() {\n  return 'a';\n}\n", "'a~'"),
        ("a.mjs", "export default function f(a) { return this ?? 'a'; }\nexport { f };\n", "'a~'"),
    ],
)  # fmt: skip
def test_a_new_function_of_a_script_returns_something_else(
    tmp_path: Path, path: str, code: str, found: str
) -> None:
    (new,) = find_new_functions((a_change(code, path=path),))
    tmp_path.joinpath(path).write_text(new.make_other(MARKS))
    said = f"const {{ f }} = await import('./{path}'); require('assert').deepStrictEqual(await f(), {found})"
    subprocess.run(["node", "-e", f"(async () => {{ {said} }})()"], cwd=tmp_path, check=True)
    assert tmp_path.joinpath("kreached").exists()


def test_what_is_new_in_a_script() -> None:
    before = "function f() {}\n"
    after = before + "function* g() {}\n\nfunction h<T>(a: T): T {\n  return a;\n}\nclass A { f() {} }\n"
    change = a_change(after, before, "a.ts")
    assert wanted(change) == ["that checks what `h` returns"]
    (new,) = find_new_functions((change,))
    assert new.make_other(MARKS).startswith("// @ts-nocheck\nfunction f")
