"""Names in other languages than Python: whether another one is all that differs."""

from collections.abc import Mapping

import pytest

from agentflow.verdict.same.renaming import find_renaming, is_renamed
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
    "a method of something else": but("index.js", "cart.off", "switches.off"),
    "a name in a text": but("index.js", "cart.off(5)", "cart['off'](5)"),
    "a name that is put together": but("index.js", "cart.off(5)", "cart['o' + 'ff'](5)"),
    "a list of what a module has": but("index.js", "cart.off(5)", "Object.keys(cart)"),
    "a module that is passed on": {**CART, "all.js": "module.exports = require('./lib/cart');\n"},
    "modules by any name": {**CART, "all.js": "exports.load = (name) => require('./lib/' + name);\n"},
    "a function of a package": but("test/cart.test.js", "'../lib/cart.js'", "'switches'"),
    "a function of the surroundings": but(
        "test/cart.test.js", "const { off } = require('../lib/cart.js');\n", ""
    ),
    "a name that hides it": but("index.js", "(5)", "(5), [1].map((off) => off(2))"),
    "a function that is handed on": but("index.js", "cart.off(5)", "cart.off.name"),
    "settings that say it": {**CART, "package.json": '{"scripts": {"off": "node off"}}\n'},
    "a page that says it": {**CART, "page.html": "<a onclick='off()'></a>\n"},
    "two of that name": {**CART, "lib/light.js": "function off() {}\nmodule.exports = { off };\n"},
    "a method": but("lib/cart.js", "module", "class A {\n  off() {\n    return 1;\n  }\n}\nmodule"),
    "code that is made up": but("index.js", "console", "eval(process.argv[2]); console"),
}


@pytest.mark.parametrize("texts", REACHED.values(), ids=REACHED)
def test_a_function_that_is_reached_otherwise_has_no_other_name(texts: Mapping[str, str]) -> None:
    assert not is_rename(texts)
