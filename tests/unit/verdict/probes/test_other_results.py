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
        ("def f():\n    return 1 + 1\n", "f()", 4),
        ("def f():\n    return 'a'.upper()\n", "f()", "A~"),
        ("def f():\n    return [1, [True]]\n", "f()", [2, [False, None], None]),
        ("def f():\n    return 1, 'a'\n", "f()", (2, "a~")),
        ("def f():\n    return {'a': 1.5}\n", "f()", {"a": 2.5, "~": None}),
        ("def f():\n    yield 1\n    yield 2\n", "list(f())", [2, 4]),
        ("async def f():\n    return 1 + 1\n", "__import__('asyncio').run(f())", 4),
        ("class A:\n    @property\n    def size(self):\n        return len('a')\n", "A().size", 2),
        ("class A:\n    @staticmethod\n    def f():\n        return len('a')\n", "A.f()", 2),
        ("from __future__ import annotations\ndef f(a: int = 1) -> int:\n    return a\n", "f()", 2),
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


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("path", "code", "call", "found"),
    [
        ("a.cjs", "function f() { return 2; }\nmodule.exports = { f };\n", "f()", "4"),
        ("a.cjs", "function f() { return [1, 'a', { b: true }]; }\nexports.g = f;\n", "g()",
         "[2, 'a~', { b: false, '~': null }, null]"),
        ("a.mjs", "export async function f() {\n  return 'a';\n}\n", "await f()", "'a~'"),
        ("a.mjs", "export default function f(a) { return this ?? 'a'; }\nexport { f };\n", "f()", "'a~'"),
        ("a.mjs", "export const f = async (a = 1) => a ? 2 : 3\nexport let g\n", "await f()", "4"),
        ("a.mjs", "'use strict'\nexport const f = a => {\n  return 2\n}, g = 1\n", "f()", "4"),
        ("a.mjs", "export default (a) => 2 + 1;\n", "a.default()", "5"),
        ("a.mjs", "export default async function () {\n  return 2;\n}\n", "await a.default()", "4"),
        ("a.cjs", "exports.f = function () { return this.g; };\nexports.g = 2;\n", "a.default.f()", "4"),
        ("a.cjs", "module.exports = (a) => [a].length;\n", "a.default(7)", "2"),
        ("a.mjs", "export class A {\n  async f() {\n    return 'a';\n  }\n}\n", "await new A().f()", "'a~'"),
        ("a.mjs", "export class A { static f() { return 2 } }\n", "A.f()", "4"),
        ("a.mjs", "export class A { #a = 2; get f() { return this.#a; } }\n", "new A().f", "4"),
        ("a.mjs", "export class A {\n  a = 2;\n  f = () => this.a\n}\n", "new A().f()", "4"),
        ("a.mjs", "export default class { f() { return 2; } }\n", "new a.default().f()", "4"),
    ],
)  # fmt: skip
def test_a_new_function_of_a_script_returns_something_else(
    tmp_path: Path, path: str, code: str, call: str, found: str
) -> None:
    (new,) = find_new_functions((a_change(code, path=path),))
    tmp_path.joinpath(path).write_text(new.make_other(MARKS))
    said = (
        f"const a = await import('./{path}'), {{ f, g, A }} = a; "
        f"require('assert').deepStrictEqual({call}, {found})"
    )
    subprocess.run(["node", "-e", f"(async () => {{ {said} }})()"], cwd=tmp_path, check=True)
    assert tmp_path.joinpath("kreached").exists()


def test_what_is_new_in_a_script() -> None:
    before = "function f() {}\nconst e = (a) => a;\n"
    after = (
        before
        + "function* g() { return 1; }\n\nfunction h<T>(a: T): T {\n  return a;\n}\nclass A { f() {} }\n"
    )
    change = a_change(after, before, "a.ts")
    assert wanted(change) == ["that checks what `h` returns"]
    (new,) = find_new_functions((change,))
    assert new.make_other(MARKS).startswith("// @ts-nocheck\nfunction f")


@pytest.mark.parametrize(
    "code",
    [
        "const f = () => null, g = 1, h = () => {};\nf(() => 1);\n",
        "const f = (a) => all.push(a);\nconst g = () => a.b++;\n",
        "type F = (a: B) => C;\ninterface A {\n  f(a: B): C;\n  g: (a: B) => C;\n}\ndeclare let f: F;\n",
        "class A {\n  constructor() { return all; }\n  abstract f(a: B): C;\n  set g(a) { return; }\n}\n",
        "const f = () => { return }",
        "class A {\n  f() { return this }\n  g() { if (a) return; return this; }\n}\n",
        "class A {\n  private g: (a: B) => C;\n  #f() { return 1; }\n  *h() { return 1; }\n}\n",
        "{\n  const f = () => 1;\n}\nfunction g() {\n  all((a) => a);\n}\nconst a = { f: () => 1 };\n",
    ],
)
def test_what_a_script_only_does_or_names_is_left_alone(code: str) -> None:
    assert wanted(a_change(code, path="a.ts")) == []


def test_functions_with_types_are_found() -> None:
    code = """\
export const f: Record<string, (a: B) => C> = wrap;
export const g: (a: B) => C = (a: B): Map<string, C> => load<B, C>(a);
export const h = async <T,>(a: T): Promise<{ b: T }> => {
  return { b: a }
}
export default class Cart<T> extends Base<T> implements Kept {
  private readonly parts: T[] = [];
  handle = (a: B): boolean => a.b
  protected static async total(a?: B, ...rest: T[]): Promise<number> {
    return 1;
  }
}
"""
    found = ("g", "h", "Cart.handle", "Cart.total")
    assert wanted(a_change(code, path="a.ts")) == [f"that checks what `{name}` returns" for name in found]
