from collections.abc import Mapping

import pytest

from agentflow.verdict.same.naming import find_moved_module

TAX = "def with_tax(cents):\n    return cents * 2\n"
BASE = {
    "src/shop/__init__.py": "",
    "src/shop/tax.py": TAX,
    "src/shop/core.py": "from shop.tax import with_tax\n\n\ndef total(cents):\n    return with_tax(cents)\n",
    "tests/test_core.py": "from shop.core import total\n\n\ndef test():\n    assert total(1) == 2\n",
    "README.md": "See shop/tax.py.\n",
}


def renamed(texts: Mapping[str, str], **others: str) -> dict[str, str]:
    after = {path: text.replace("shop.tax", "shop.vat") for path, text in texts.items()}
    after["src/shop/vat.py"] = after.pop("src/shop/tax.py")
    return {**after, **others}


def test_a_module_has_another_name() -> None:
    assert find_moved_module(BASE, renamed(BASE)) == {"tax": "vat"}
    relative = {**BASE, "src/shop/core.py": BASE["src/shop/core.py"].replace("shop.tax", ".tax")}
    after = renamed(relative)
    assert find_moved_module(relative, after) == {}
    after["src/shop/core.py"] = after["src/shop/core.py"].replace(".tax", ".vat")
    assert find_moved_module(relative, after) == {"tax": "vat"}


@pytest.mark.parametrize(
    "extra",
    [
        {"pyproject.toml": "[project.scripts]\ntax = 'shop.tax:with_tax'\n"},
        {"src/shop/find.py": "import importlib\n\nfound = importlib.import_module('shop.' + 'tax')\n"},
        {"src/shop/find.py": "NAMES = ['shop.tax']\n"},
        {"src/shop/find.py": "from shop import tax\n"},
        {"src/shop/find.py": "import shop\n\nprint(shop.tax)\n"},
        {"tests/test_find.py": "from pathlib import Path\n\nassert Path('src/shop/tax.py').exists()\n"},
    ],
)
def test_a_module_that_is_known_by_another_way_is_not(extra: dict[str, str]) -> None:
    before = {**BASE, **extra}
    after = {**renamed(BASE), **extra}
    assert find_moved_module(before, after) == {}


def test_a_module_that_changed_is_another() -> None:
    after = renamed(BASE)
    assert find_moved_module(BASE, {**after, "src/shop/vat.py": TAX.replace("2", "3")}) == {}
    assert find_moved_module(BASE, {**after, "src/shop/core.py": after["src/shop/core.py"] + "A = 1\n"}) == {}
    assert find_moved_module(BASE, {**after, "src/shop/more.py": ""}) == {}
    assert find_moved_module(BASE, BASE) == {}


def moved(texts: Mapping[str, str], **others: str) -> dict[str, str]:
    after = {path: text.replace("shop.tax", "shop.money.vat") for path, text in texts.items()}
    after["src/shop/money/vat.py"] = after.pop("src/shop/tax.py")
    return {**after, **others}


def test_a_module_has_another_folder() -> None:
    package = {"src/shop/money/__init__.py": ""}
    assert find_moved_module(BASE, moved(BASE, **package)) == {"tax": "vat"}
    assert find_moved_module(BASE, moved(BASE)) == {"tax": "vat"}
    relative = {**BASE, "src/shop/core.py": BASE["src/shop/core.py"].replace("shop.tax", ".tax")}
    after = {
        **moved(relative),
        "src/shop/core.py": BASE["src/shop/core.py"].replace("shop.tax", ".money.vat"),
    }
    assert find_moved_module(relative, after) == {"tax": "vat"}


@pytest.mark.parametrize(
    ("extra", "package"),
    [
        ({}, "print('loaded')\n"),
        ({"src/shop/tax.py": f"from . import rates\n\n\n{TAX}"}, ""),
        ({"src/shop/tax.py": f"PLACE = __file__\n\n\n{TAX}"}, ""),
        ({"src/shop/money/cents.py": "", "src/shop/money/__init__.py": "x = 1\n"}, "x = 1\n"),
        ({"pyproject.toml": "[tool.setuptools]\npackages = ['shop']\n"}, ""),
    ],
)
def test_a_module_that_may_do_something_else_in_another_folder_is_another(
    extra: dict[str, str], package: str
) -> None:
    before = {**BASE, **extra}
    assert find_moved_module(before, {**moved(before), "src/shop/money/__init__.py": package}) == {}


def test_a_module_moves_in_no_other_package() -> None:
    after = {path.replace("src/shop/tax.py", "src/money/tax.py"): text for path, text in BASE.items()}
    after["src/shop/core.py"] = after["src/shop/core.py"].replace("shop.tax", "money.tax")
    assert find_moved_module(BASE, after) == {}
