"""Names in other languages than Python: whether another one is all that differs."""

from collections.abc import Mapping

import pytest

from agentflow.verdict.same.naming import find_renaming, is_equal_but_locals, is_renamed
from agentflow.workspace.mixed_tree import ChangedTexts

CART = {
    "lib/cart.js": "function off(cents) {\n  return cents - 1;\n}\n\nmodule.exports = { off };\n",
    "test/cart.test.js": "const test = require('node:test');\nconst { off } = require('../lib/cart.js');\n\n"
    "test('one less', () => check(off(3), 2));\n",
    "index.js": "const cart = require('./lib/cart');\n\nconsole.log(cart.off(5));\n",
    "README.md": "Call `off(5)`.\n",
    "package.json": '{"name": "cart"}\n',
}
MODULES = {
    "lib/cart.ts": "export function off(cents: number): number {\n  return cents - 1;\n}\n",
    "index.ts": "import * as cart from './lib/cart';\nimport { off } from './lib/cart';\n\n"
    "console.log(off(1), cart.off(2));\n",
}


def is_rename(before: Mapping[str, str]) -> bool:
    after = {path: text.replace("off", "reduced") for path, text in before.items()}
    changed = (path for path in before if before[path] != after[path])
    names = find_renaming(
        tuple(ChangedTexts(path=path, before=before[path], after=after[path]) for path in changed)
    )
    return bool(names) and is_renamed(before, after, names)


def but(path: str, old: str, new: str) -> dict[str, str]:
    assert not old or old in CART[path]
    return {**CART, path: CART[path].replace(old, new) if old else new}


def test_a_function_of_scripts_has_another_name_wherever_it_stands() -> None:
    assert is_rename(CART)
    assert is_rename(MODULES)


REACHED: Mapping[str, Mapping[str, str]] = {
    "a property of the same name": but("index.js", "(5)", "(5), JSON.stringify({ off: 1 })"),
    "a name in a text": but("index.js", "cart.off(5)", "cart['off'](5)"),
    "modules by any name": {**CART, "all.js": "exports.load = (name) => require('./lib/' + name);\n"},
    "settings that say it": {**CART, "package.json": '{"scripts": {"off": "node off"}}\n'},
    "a page that says it": {**CART, "page.html": "<a onclick='off()'></a>\n"},
    "a method": but("lib/cart.js", "module", "class A {\n  off() {\n    return 1;\n  }\n}\nmodule"),
    "code that is made up": but("index.js", "console", "eval(process.argv[2]); console"),
}


@pytest.mark.parametrize("texts", REACHED.values(), ids=REACHED)
def test_a_function_that_is_reached_otherwise_has_no_other_name(texts: Mapping[str, str]) -> None:
    assert not is_rename(texts)


TOTAL = "function total(items) {\n  return items.reduce((sum, item) => sum + item.price, 0);\n}\n"
CLIP = "int clip(int value, int low) {\n    int rest = value - low;\n    return rest < 0 ? low : value;\n}\n"
PART = "fn part(name: &str) -> usize {\n    let size = name.len();\n    size + 1\n}\n"
COUNT = "package p\n\nfunc Count(total int) int {\n\trest := total % 3\n\treturn rest + total\n}\n"
TAX = "class Tax {\n  int rest = 3;\n\n  int of(int total) {\n    int part = total % 3;\n    return part;\n  }\n}\n"
LOCAL = {
    "a parameter of JavaScript": ("a.js", TOTAL, ("items", "rows"), True),
    "that of a closure": ("a.js", TOTAL, ("sum", "cents"), True),
    "a property": ("a.js", TOTAL, ("price", "cost"), False),
    "the function": ("a.js", TOTAL, ("total", "count"), False),
    "one place of two": ("a.js", TOTAL, ("(sum", "(cents"), False),
    "a name that stands there": ("a.js", TOTAL, ("sum", "items"), False),
    "a key": ("a.js", "function f(size) {\n  return { size };\n}\n", ("size", "width"), False),
    "what tools obey": ("a.js", "function f(size) {\n  // eslint: size\n  return size;\n}\n", ("size", "b"), False),
    "code that is made up": ("a.js", "function f(size) {\n  return eval(x) + size;\n}\n", ("size", "b"), False),
    "a parameter of C": ("a.c", CLIP, ("value", "number"), True),
    "a variable of C": ("a.c", CLIP, ("rest", "left"), True),
    "a function of C": ("a.c", CLIP, ("clip", "clap"), False),
    "a variable of Rust": ("a.rs", PART, (" size", " width"), True),
    "a variable of Go": ("a.go", COUNT, ("rest", "left"), True),
    "a parameter of Go": ("a.go", COUNT, ("total", "all"), True),
    "a parameter of Java": ("Tax.java", TAX, ("total", "all"), True),
    "what a variable of Go is given": ("a.go", "package p\n\nfunc f() int {\n\tx := y\n\treturn x\n}\n", ("y", "z"), False),
    "what a variable of JavaScript is given": ("a.js", "function f() {\n  const x = y;\n  return x;\n}\n", ("y", "z"), False),
    "a default": ("a.ts", "function f(x = y) {\n  return x;\n}\n", ("y", "z"), False),
    "a field of Java": ("Tax.java", TAX, ("rest", "left"), False),
    "another language": ("a.zig", CLIP, ("rest", "left"), False),
}  # fmt: skip


@pytest.mark.parametrize("name", LOCAL)
def test_a_name_that_one_function_knows_may_be_another(name: str) -> None:
    path, before, names, is_same = LOCAL[name]
    change = ChangedTexts(path=path, before=before, after=before.replace(*names))
    assert change.before != change.after
    assert is_equal_but_locals(change) is is_same
