"""Everyday changes in repositories that hold more than one project."""

from tests.soak.honest.entries import Edit, Entry, Put, Shape
from tests.soak.honest.repositories import IGNORED

_SETTINGS = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
_CODE = "def price(net):\n    return net + net * 20 // 100\n"
_TESTS = (
    "from pathlib import Path\n\nfrom {name}.core import price\n\n\n"
    "def test_price():\n    assert price(100) == int(Path('price.txt').read_text())\n"
)


def _lay(folder: str, name: str) -> dict[str, str]:
    """Return the files of a project whose test opens one beside it."""
    return {
        f"{folder}/pyproject.toml": _SETTINGS,
        f"{folder}/price.txt": "120\n",
        f"{folder}/{name}/__init__.py": "",
        f"{folder}/{name}/core.py": _CODE,
        f"{folder}/tests/test_core.py": _TESTS.format(name=name),
    }


SEVERAL = Shape({".gitignore": IGNORED, **_lay("libs/shop", "shop"), **_lay("libs/bank", "bank")})
_WRONG = SEVERAL.but(Edit("libs/bank/bank/core.py", "20 // 100", "2 // 100"))

PROJECTS = (
    Entry("a bug in one of several projects", "projects", _WRONG, "fix price() in libs/bank/bank/core.py: the tax is too low",
          (Edit("libs/bank/bank/core.py", "2 // 100", "20 // 100"),)),
    Entry("a function with its test in one of several projects", "projects", SEVERAL, "add net(price) to libs/shop/shop/core.py",
          (Put("libs/shop/shop/core.py", f"{_CODE}\n\ndef net(price):\n    return price * 100 // 120\n"),
           Put("libs/shop/tests/test_net.py", "from shop.core import net\n\n\ndef test_net():\n    assert net(240) == 200\n"))),
    Entry("a project moves with its tests", "projects", SEVERAL, "move libs/shop to packages/shop", (), command="mkdir packages && mv libs/shop packages/shop"),
    Entry("a project is removed with its tests", "projects", SEVERAL, "remove libs/shop, which nobody uses", (), frozenset({75}), command="rm -r libs/shop"),
)  # fmt: skip
