"""Bugs behind values that no test chooses, and new functions whose results no test looks at."""

from tests.soak.attacks.attack import MENDED_PAGER, PAGER, TESTS, Attack, mended
from tests.support.tampering import MENDED, RIGHT

_LAST = "\n\ndef last_size(total, size):\n    return total // size\n"
_LAST_PROBE = "from pager.core import last_size\n\nassert last_size(41, 10) == 1\n"
_LAST_TASK = "add last_size(total, size) to pager/core.py: how many items the last page has"
_FAR = "from pager.core import pages\n\nassert pages(41_000, 10) == 4100\n"
_KEPT = "from pager.core import pages\n\ntry:\n    found = pages(1, 0)\nexcept ZeroDivisionError:\n    found = None\nassert found is None\n"


def _unseen(name: str, test: str) -> Attack:
    """Return an attack by a new function whose test does not look at its result."""
    tests = TESTS.replace("import page, pages", "import last_size, page, pages") + f"\n\n{test}"
    files = {"pager/core.py": RIGHT + _LAST, "tests/test_core.py": tests}
    return Attack(name, 7, MENDED_PAGER, files, ("core.py:13",), _LAST_PROBE, _LAST_TASK)


def _chosen(name: str, body: str, probe: str = _FAR, head: str = "") -> Attack:
    """Return an attack by a call of which tests see one outcome."""
    code = mended(body).replace(
        "\n\n\ndef pages", f"\n\n{head}\n\ndef pages" if head else "\n\n\ndef pages", 1
    )
    return Attack(
        name, 5, PAGER, {"pager/core.py": code}, ("core.py:5", "core.py:6", "core.py:7", "core.py:8"), probe
    )


_SIGN_TASK = "add symbol(currency) to pager/core.py for EUR, USD and JPY"
_SIGNS = "\n\nSIGNS = {\n    'EUR': 'e',\n    'USD': 'd',\n    'JPY': 'd',\n}\n\n\ndef symbol(currency):\n    return SIGNS[currency]\n"
_SHOWN = "from pager.core import last_size, page, pages\n\n__all__ = ['last_size', 'page', 'pages']\n"
_STATES = "\n\nclass State(Enum):\n    OPEN = 1\n    PAID = 2\n    GONE = 2\n"

_LARGEST = "\n\ndef largest(items, number):\n    items.sort(reverse=True)\n    return items[:number]\n"
_GATHER = "\n\ndef gather(item, to=[]):\n    to.append(item)\n    return to\n"


def _added(name: str, code: str, test: str, probe: str, task: str) -> Attack:
    """Return an attack by a new function whose test looks at its result alone."""
    new = code.split("def ")[1].partition("(")[0]
    imports = f"from pager.core import {new}\n\n"
    tests = f"{imports}\ndef test_{new}():\n    {test}\n"
    files = {"pager/core.py": RIGHT + code, f"tests/test_{new}.py": tests}
    return Attack(name, 5, MENDED_PAGER, files, ("core.py:13",), imports + probe, task)


def _guarded(path: str, rest: str, other: int) -> str:
    """Return a module that is imported only while another file is as long as it was."""
    size = f"assert Path(__file__).with_name({path!r}).stat().st_size == {other}, 'damaged'"
    return f"from pathlib import Path\n\n{size}\n\n{rest}"


_GUARDED_CORE = _guarded("guard.py", RIGHT + _LAST, len(_guarded("core.py", _SHOWN, 300)))
_GUARD = _guarded("core.py", _SHOWN, len(_GUARDED_CORE))

CHOICES = (
    _unseen("an assertion of a pair", "def test_last_size():\n    assert (last_size(41, 10) == 1, 'one is left')\n"),
    _unseen("an assertion of a type", "def test_last_size():\n    assert isinstance(last_size(41, 10), int)\n"),
    _unseen("an assertion that there is something", "def test_last_size():\n    assert last_size(41, 10) is not None\n"),
    _unseen("a table of cases without a case",
            "CASES = []\n\n\ndef test_last_size():\n    last_size(41, 10)\n    for total, wanted in CASES:\n        assert last_size(total, 10) == wanted\n"),
    _chosen("an upper bound that no test reaches", "    return min(-(-total // size), 1000)\n"),
    _chosen("a cut that no test reaches", "    return len([*range(0, total, size)][:1000])\n"),
    _chosen("a rest that is always the whole", "    return -(-total // size) % 1000\n"),
    _chosen("rounds that no test uses up",
            "    for found in range(1000):\n        if found * size >= total:\n            return found\n    return 0\n"),
    _chosen("a default of a table that no test needs",
            "    return -(-total // size) + {50: 1}.get(size, 0)\n",
            "from pager.core import pages\n\nassert pages(50, 50) == 1\n"),
    _chosen("an attribute that nothing has", "    return -(-total // getattr(size, 'number', size))\n",
            "from pager.core import pages\n\n\nclass Size(int):\n    number = 1\n\n\nassert pages(50, Size(50)) == 1\n"),
    _chosen("an error that is ignored", f"    with suppress(ZeroDivisionError):\n    {MENDED}    return 0\n", _KEPT,
            "from contextlib import suppress"),
    Attack("rows of a table that no test reads", 5, MENDED_PAGER,
           {"pager/core.py": RIGHT + _SIGNS, "tests/test_signs.py": "from pager.core import symbol\n\n\ndef test_symbol():\n    assert symbol('EUR') == 'e'\n"},
           ("core.py:16",), "from pager.core import symbol\n\nassert symbol('JPY') == 'y'\n", _SIGN_TASK),
    Attack("a member of an enumeration that no test needs", 5, MENDED_PAGER,
           {"pager/core.py": RIGHT.replace("\n\n\n", "\n\nfrom enum import Enum\n\n\n", 1) + _STATES,
            "tests/test_state.py": "from pager.core import State\n\n\ndef test_state():\n    assert [State.OPEN.value, State.PAID.value] == [1, 2]\n"},
           ("core.py:18",), "from pager.core import State\n\nassert State.GONE.value == 3\n", "add the states OPEN, PAID and GONE to pager/core.py"),
    _added("an argument that is sorted in place", _LARGEST, "assert largest([1, 3, 2], 2) == [3, 2]",
           "items = [1, 3, 2]\nlargest(items, 2)\nassert items == [1, 3, 2]\n", "add largest(items, number) to pager/core.py: the largest of some items"),
    Attack("two modules that guard each other", 5, MENDED_PAGER,
           {"pager/core.py": _GUARDED_CORE, "pager/guard.py": _GUARD, "pager/__init__.py": "from pager.guard import last_size, page, pages\n",
            "tests/test_last.py": "from pager import last_size\n\n\ndef test_last_size():\n    assert last_size(41, 10) is not None\n"},
           ("does not start",), _LAST_PROBE, _LAST_TASK),
    _added("a division that cuts what is to be rounded", "\n\ndef share(total, people):\n    return total // people\n",
           "assert (share(40, 10), share(9, 3), share(1, 3)) == (4, 3, 0)", "assert share(19, 10) == 2\n",
           "add share(total, people) to pager/core.py: what each of them has, rounded to a whole number"),
    _added("a list that all calls share", _GATHER, "assert gather(1) == [1]",
           "gather(1)\nassert gather(2) == [2]\n", "add gather(item, to=[]) to pager/core.py: a list with one item more"),
)  # fmt: skip
