"""Names in other languages than Python: whether another one is all that differs."""

from collections.abc import Mapping

import pytest

from agentflow.verdict.same.equivalence import is_same_behaviour
from agentflow.verdict.same.renaming import find_renaming, is_renamed
from agentflow.workspace.mixed_tree import ChangedTexts

SUM = "function total(items) {\n  return items.reduce((sum, item) => sum + item.price, 0);\n}\n"
OFF = "function off(cents, part) {\n  const cut = cents * part;\n  return cents - cut;\n}\n"
TIP = "pub fn tip(cents: i64, percent: i64) -> i64 {\n    (cents * percent + 50) / 100\n}\n"
CUT = "func cut(cents int, percent int) int {\n\treturn cents - cents*percent/100\n}\n"
LOCAL: Mapping[str, tuple[str, str, str, str]] = {
    "an arrow's parameter": ("a.js", SUM, "sum", "cents"),
    "a parameter": ("a.js", OFF, "part", "share"),
    "a variable": ("a.js", OFF, "cut", "less"),
    "a parameter of TypeScript": ("a.ts", OFF.replace("cents,", "cents: number,"), "cents", "money"),
    "a parameter of Rust": ("a.rs", TIP, "percent", "part"),
    "a parameter of Go": ("a.go", CUT, "percent", "part"),
    "a parameter of a method": (
        "a.js",
        "class A extends B {\n  f(part) {\n    return part;\n  }\n}\n",
        "part",
        "share",
    ),
    "a comment beside it": ("a.js", f"// of all\n{OFF}", "part", "share"),
}
OTHER: Mapping[str, tuple[str, ...]] = {
    "a key": ("a.js", SUM, SUM.replace("item.price", "item.cost")),
    "a global": ("a.js", "const a = require('a');\na.x(b);\n", "const a = require('a');\na.x(c);\n"),
    "a name that is taken": ("a.js", OFF, OFF.replace("part", "cents")),
    "swapped": ("a.js", OFF, OFF.replace("cents - cut", "cut - cents")),
    "one place left": ("a.js", OFF, OFF.replace("cents, part", "cents, share")),
    "one place alone": ("a.js", OFF, OFF.replace("* part", "* share")),
    "a short property": (
        "a.js",
        *(OFF.replace("cents - cut", "{ cut }").replace("cut", name) for name in ("cut", "less")),
    ),
    "a property": ("a.js", *(f"function f(x) {{\n  return x.{name};\n}}\n" for name in "yz")),
    "a property beside a parameter": (
        "a.js",
        *(f"function f(x, {name}) {{\n  return x?.{name};\n}}\n" for name in "yz"),
    ),
    "a name in a template": (
        "a.js",
        *(f"function f({name}) {{\n  return `${{{name}}}`;\n}}\n" for name in ("cut", "less")),
    ),
    "the argument of a call before a block": (
        "a.js",
        *(f"let y, z;\nfoo({name})\n{{ bar({name}); }}\n" for name in "yz"),
    ),
    "such a call where a type is asked for": (
        "a.js",
        *(f"let y, z;\nif (type) {{ foo({name})\n{{ bar({name}); }} }}\n" for name in "yz"),
    ),
    "a variable of what it was outside": (
        "a.rs",
        "fn f(part: i64, total: i64) -> i64 {\n    { let part = part + 1; part }\n}\n",
        "fn f(part: i64, total: i64) -> i64 {\n    { let total = total + 1; total }\n}\n",
    ),
    "a field of Rust": (
        "a.rs",
        *(f"fn f({each}: i64) -> P {{\n    P {{ {each} }}\n}}\n" for each in ("part", "rest")),
    ),
    "a name in a format": (
        "a.rs",
        *(f'fn f({each}: i64) {{\n    println!("{{{each}}}")\n}}\n' for each in ("part", "rest")),
    ),
    "a name that a macro shows": (
        "a.rs",
        *(f"fn f({each}: i64) {{\n    dbg!({each});\n}}\n" for each in ("part", "rest")),
    ),
    "a name that an attribute reads": (
        "a.rs",
        *(f"#[instrument]\nfn f({each}: i64) {{\n    g({each});\n}}\n" for each in ("part", "rest")),
    ),
    "a value that goes nowhere": ("a.go", CUT, CUT.replace("percent", "_")),
    "a type": ("a.go", *(f"func f(x {each}) int {{\n\treturn 1\n}}\n" for each in ("int8", "int16"))),
    "a name that the caller tells": (
        "a.js",
        *(f"function f({each}) {{\n  return eval('y');\n}}\n" for each in "yz"),
    ),
    "a function that says its name": (
        "a.js",
        *(f"function f() {{\n  const {each} = () => 1;\n  return {each};\n}}\n" for each in "yz"),
    ),
    "names in C": ("a.c", "int f(int a) {\n    return a;\n}\n", "int f(int b) {\n    return b;\n}\n"),
}


def tried(path: str, before: str, after: str) -> bool:
    return is_same_behaviour([ChangedTexts(path=path, before=before, after=after)])


@pytest.mark.parametrize("case", LOCAL.values(), ids=LOCAL)
def test_a_local_name_of_another_language_is_no_behaviour(case: tuple[str, str, str, str]) -> None:
    path, before, old, new = case
    assert tried(path, before, before.replace(old, new))


@pytest.mark.parametrize("case", OTHER.values(), ids=OTHER)
def test_any_other_name_of_another_language_may_be(case: tuple[str, ...]) -> None:
    path, before, after = case
    assert before != after
    assert not tried(path, before, after)


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
