import pytest

from agentflow.core.evidence import Surface
from agentflow.verdict.paths import Observation, Observed, PathKind, explain, observe_paths

SHOP = {
    "shop/__init__.py": "from shop.cart import total\n",
    "shop/cart.py": "def total(cart): return sum(cart)\n",
}
FLAT = {"calc.py": "def total(cart): return sum(cart)\n"}
TEST = "from {module} import total\nfrom {aid} import {name}\n\n\ndef test_total():\n    {line}\n"


def observed(files: dict[str, str], *by_code: tuple[str, str], opened: set[str] = frozenset()) -> Observed:  # type: ignore[assignment]
    checks = frozenset(path for path in files if "test" in path or path == "Makefile")
    seen = Observation(
        files=frozenset(files),
        texts=files,
        checks=checks,
        by_code=frozenset(by_code),
        opened=frozenset(opened),
    )
    return observe_paths(seen)


def a_test(module: str, aid: str, line: str) -> str:
    name = next(name for name in ("CASES", "rate", "free", "main", "same") if name in line)
    return TEST.format(module=module, aid=aid, line=line, name=name)


SAME = "def same(a, b): return a == b\n"
AIDS = {
    "beside a package": {
        **SHOP,
        "lab.py": SAME,
        "tests/test_a.py": a_test("shop", "lab", "assert same(total([1]), 1) is True"),
    },
    "in a folder of its own": {
        **SHOP,
        "qa/lab.py": SAME,
        "tests/test_a.py": a_test("shop", "qa.lab", "assert same(total([1]), 1)"),
    },
    "flat, its word is taken": {
        **FLAT,
        "lab.py": SAME,
        "test_a.py": a_test("calc", "lab", "assert same(total([1]), 1)"),
    },
    "flat, on a name": {
        **FLAT,
        "lab.py": SAME,
        "test_a.py": a_test("calc", "lab", "found = total([1])\n    same(found, 1)"),
    },
    "flat, expected values": {
        **FLAT,
        "lab.py": "CASES = [([1], 1)]\n",
        "test_a.py": a_test("calc", "lab", "assert all(total(a) == b for a, b in CASES)"),
    },
    "by another aid": {
        **SHOP,
        "lab.py": "from deep import same\n",
        "deep.py": SAME,
        "tests/test_a.py": a_test("shop", "lab", "assert same(total([1]), 1)"),
    },
}


@pytest.mark.parametrize("files", AIDS.values(), ids=AIDS)
def test_a_module_that_only_tests_reach_is_a_check(files: dict[str, str]) -> None:
    found = observed(files).checks

    assert {"lab.py", "qa/lab.py"} & found.keys()
    assert not {"calc.py", *SHOP} & found.keys()


PRODUCTS = {
    "flat": {
        **FLAT,
        "test_calc.py": "from calc import total\n\n\ndef test_a():\n    assert total([1]) == 1\n",
    },
    "two modules": {
        **FLAT,
        "tax.py": "def rate(x): return x\n",
        "test_a.py": a_test("calc", "tax", "assert rate(total([1])) == 1"),
    },
    "a predicate": {
        **FLAT,
        "tax.py": "def free(a, b): return a > b\n",
        "test_a.py": a_test("calc", "tax", "assert free(2, 1) and total([1]) == 1"),
    },
    "a module of a package": {
        "shop/__init__.py": "",
        "shop/cart.py": "def total(cart): return 1\n",
        "shop/tax.py": "def rate(x): return x\n",
        "tests/test_a.py": a_test("shop.cart", "shop.tax", "assert rate(total([1])) == 1"),
    },
    "a helper of the product that tests import too": {
        **SHOP,
        "shop/cart.py": "from lab import same\ndef total(cart): return 1 if same(cart, 1) else 0\n",
        "lab.py": SAME,
        "tests/test_a.py": a_test("shop", "lab", "assert same(total([1]), 1)"),
    },
    "an entry point": {
        **SHOP,
        "pyproject.toml": '[project.scripts]\nshop = "report:main"\n',
        "report.py": "def main(): return 0\n",
        "tests/test_a.py": a_test("shop", "report", "assert main() == total([])"),
    },
    "src": {
        "src/shop/cart.py": "def total(cart): return 1\n",
        "tests/test_a.py": "from shop.cart import total\n\n\ndef test_a():\n    assert total([1]) == 1\n",
    },
    "javascript": {
        "src/cart.js": "exports.total = (c) => 1\n",
        "test/cart.test.js": "const {total} = require('../src/cart')\n",
    },
}


@pytest.mark.parametrize("files", PRODUCTS.values(), ids=PRODUCTS)
def test_the_product_is_no_check(files: dict[str, str]) -> None:
    assert observed(files).checks == {}


def test_a_file_is_what_reads_it() -> None:
    files = {
        **SHOP,
        "tests/test_a.py": "open('want.txt')",
        "want.txt": "",
        "shop/rates.json": "",
        "shop/VERSION": "",
    }
    found = observed(
        files,
        ("want.txt", "tests/test_a.py"),
        ("shop/rates.json", "shop/cart.py"),
        ("shop/VERSION", "shop/cart.py"),
        ("shop/VERSION", "tests/test_a.py"),
    )

    assert found.checks == {"want.txt": "read by tests/test_a.py", "shop/VERSION": "read by tests/test_a.py"}
    assert found.both == ("shop/VERSION",)
    assert found.product == {"shop/rates.json": "read by shop/cart.py and by no check"}


def test_what_the_product_reads_since_a_test_names_it_is_a_check() -> None:
    files = {**SHOP, "tests/test_a.py": "load('orders/one.json')", "orders/one.json": ""}

    found = observed(files, ("orders/one.json", "shop/cart.py"))

    assert found.checks == {"orders/one.json": "read by shop/cart.py, for tests/test_a.py"}


def test_where_no_reader_is_known_it_is_a_check_unless_only_the_product_names_it() -> None:
    files = {
        "src/cart.js": "readFileSync('rates.json')",
        "test/cart.test.js": "readFileSync('want.json')",
        "rates.json": "",
        "want.json": "",
        ".runnerrc": "",
        "README.md": "",
    }

    found = observed(files, opened={"rates.json", "want.json", ".runnerrc", "src/cart.js"})

    assert set(found.checks) == {"want.json", ".runnerrc"}
    assert set(found.product) == {"rates.json"}


def test_what_is_not_shown_to_be_product_or_document_is_a_check() -> None:
    surface = Surface(
        observed={
            "lab.py": "only checks lead to it: tests/test_a.py",
            "docs/a.md": "read by tests/test_a.py",
        },
        product={"y.json": "read by a.py and by no check"},
        is_watched=True,
    )
    paths = ["a.py", "README.md", "x.json", "y.json", "lab.py", "docs/a.md", "pyproject.toml", "tests/a.py"]

    found = [explain(path, surface) for path in paths]

    product, check, document = PathKind.PRODUCT, PathKind.CHECK, PathKind.DOCUMENT
    assert [each.kind for each in found] == [product, document, check, product, check, check, product, check]
    assert found[4].reason == "only checks lead to it: tests/test_a.py"


def test_where_nothing_could_be_watched_names_alone_tell() -> None:
    assert explain("x.json", Surface()).kind is PathKind.PRODUCT


def test_a_source_that_alone_says_the_name_of_a_test_is_a_check() -> None:
    files = {
        "clip.c": '#include "clip.h"\nint clip(int value) { return value; }\n',
        "clip.h": "int clip(int value);\n",
        "t/run.c": '#include "tap.h"\n#include "clip.h"\nint main() { OK(clip(9) == 5, "upper bound"); }\n',
        "t/tap.h": "#define OK(holds, name) puts(name)\n",
    }
    seen = Observation(files=frozenset(files), texts=files, checks=frozenset())

    assert observe_paths(seen.replace(tests=frozenset({"upper bound"}))).checks.keys() == {
        "t/run.c",
        "t/tap.h",
    }
    assert observe_paths(seen.replace(tests=frozenset({"lower bound"}))).checks == {}


CHECK = "from calc import total\n\n\nclass Cart(TestCase):\n    def test_a(self): pass\n"
TEST_IDS = {
    "by pytest": ("check.py::Cart::test_a[x.y]", CHECK, {"check.py"}),
    "by unittest": ("check.Cart.test_a", CHECK, {"check.py"}),
    "an example": ("check.py::check.Cart", CHECK, set()),
    "beside what it tests": ("check.py::test_a", "def one(): return 1\n\n\ndef test_a(): pass\n", set()),
}


@pytest.mark.parametrize(("test", "text", "wanted"), TEST_IDS.values(), ids=TEST_IDS)
def test_a_source_with_tests_of_other_code_is_a_check(test: str, text: str, wanted: set[str]) -> None:
    files = {**FLAT, "check.py": text}
    seen = Observation(files=frozenset(files), texts=files, checks=frozenset(), tests=frozenset({test}))

    assert observe_paths(seen).checks.keys() == wanted


def test_a_new_module_in_place_of_another_is_a_check() -> None:
    test = "import decoder\nfrom shop import total\n"
    files = {**SHOP, "decoder.py": "def decode(): return 1\n", "tests/test_a.py": test}
    tests = frozenset({"tests/test_a.py"})
    seen = Observation(files=frozenset(files), texts=files, checks=tests, new=frozenset({"decoder.py"}))

    assert observe_paths(seen.replace(loaded={"tests/test_a.py": test})).checks.keys() == {"decoder.py"}
    assert observe_paths(seen).checks == {}


def test_a_new_module_that_checks_import_only_now_is_no_check() -> None:
    files = {**SHOP, "decoder.py": "def decode(): return 1\n", "tests/test_a.py": "import decoder\n"}
    tests = frozenset({"tests/test_a.py"})
    seen = Observation(files=frozenset(files), texts=files, checks=tests, new=frozenset({"decoder.py"}))

    assert observe_paths(seen.replace(loaded={"tests/test_a.py": "import shop\n"})).checks == {}


BESIDE = {
    "a script": {"other.py": "if __name__ == '__main__':\n    print(1)\n"},
    "setup.py": {"setup.py": "from setuptools import setup\n\nsetup(py_modules=['calc'])\n"},
    "a hook": {".claude/hooks/log.py": "import json, sys\n\njson.load(sys.stdin)\n"},
    "settings of documents": {"docs/conf.py": "project = 'calc'\n"},
    "a script that tests use": {"main.py": "", "tests/test_main.py": "import calc\nimport main\n"},
    "a package that another test uses": {**SHOP, "tests/test_shop.py": "from shop import total\n"},
}


@pytest.mark.parametrize("opened", [set[str](), {"other.py", "setup.py"}])
@pytest.mark.parametrize("files", BESIDE.values(), ids=BESIDE)
def test_what_a_test_tries_by_itself_is_product_whatever_lies_beside_it(
    files: dict[str, str], opened: set[str]
) -> None:
    test = {"tests/test_calc.py": "from calc import total\n\n\ndef test_a():\n    assert total([1]) == 1\n"}

    assert observed({**FLAT, **test, **files}, opened=opened).checks == {}


TRIED = {
    "a predicate with both answers": (
        "def free(a): return not a\n",
        "assert free(total([]))\n    assert not free(total([1]))",
    ),
    "a guard that refuses": (
        "def free(a): return not a\n",
        "free(total([]))\n    with pytest.raises(ValueError):\n        free(total([1]))",
    ),
    "a constant that other code is given": (
        "CASES = 1\n",
        "assert total([CASES]) == 1\n    assert CASES == 1",
    ),
    "a function with an unlucky name": (
        "def rate(a): return 1\n\n\ndef check_rate(a): return a > 0\n",
        "assert rate(total([1])) == 1",
    ),
}


@pytest.mark.parametrize(("aid", "lines"), TRIED.values(), ids=TRIED)
def test_what_tests_try_beside_other_code_is_product(aid: str, lines: str) -> None:
    files = {**SHOP, "shop/aid.py": aid, "tests/test_a.py": a_test("shop", "shop.aid", lines)}

    assert observed(files).checks == {}


def test_files_of_a_go_package_use_each_other_by_their_names() -> None:
    files = {
        "flag.go": "package set\n\ntype Set struct{}\n",
        "ip.go": "package set\n\nfunc (s *Set) IP() string { return Twice(Set{}) }\n",
        "twice.go": 'package set\n\nfunc Twice(s Set) string { return "" }\n',
        "lost.go": 'package set\n\nimport "testing"\n\nfunc Same(t *testing.T, a, b string) {}\n',
        "a_test.go": 'package set\n\nimport (\n\t"flag"\n\t"testing"\n)\n\n'
        "func TestA(t *testing.T) { Same(t, Twice(Set{}), flag.Arg(0)) }\n",
    }

    assert observed(files).checks.keys() == {"lost.go"}
