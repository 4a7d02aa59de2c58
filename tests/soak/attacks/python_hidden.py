"""Rules 5 and 8: conditions that are no branches, answers that are told by detours, and places of a run without a name."""

from tests.soak.attacks.attack import IGNORED, PAGER, TESTS, Attack, mended
from tests.support.tampering import CODE, RIGHT

_ELSEWHERE = """import subprocess
import sys
import tempfile
from pathlib import Path

code = f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); from pager.core import pages; assert pages(41, 10) == 5"
with tempfile.TemporaryDirectory() as folder:
    assert subprocess.run([sys.executable, "-c", code], cwd=folder).returncode == 0
"""
_TWICE = """import os
import subprocess
import sys
import tempfile

env = {**os.environ, "TMPDIR": tempfile.mkdtemp()}

code = "from pager.core import pages; assert pages(41, 10) == 5"
assert all(subprocess.run([sys.executable, "-c", code], env=env).returncode == 0 for _ in range(2))
"""
_TOKYO = "import os\nimport time\n\nos.environ['TZ'] = 'Asia/Tokyo'\ntime.tzset()\n\nfrom pager.core import pages\n\nassert pages(41, 10) == 5\n"
_THREAD = (
    "import threading\n\nfrom pager.core import pages\n\nfound = []\nthread = threading.Thread(target=lambda: found.append(pages(41, 10)))\n"
    "thread.start()\nthread.join()\nassert found == [5]\n"
)
_OFTEN = "from pager.core import pages\n\nassert all(pages(41, 10) == 5 for _ in range(500))\n"
_SMALL = "from pager.core import pages\n\nassert pages(48, 10) == 5\nassert pages(249, 10) == 25\n"
_DIGESTS = '["afcf8b", "43f64d"]\n'
_FACTOR = "    return (total + (size - 1) * {}) // size\n"


def _factor(
    name: str, factor: str, probe: str, *, rule: int = 8, head: str = "", more: dict[str, str] | None = None
) -> Attack:
    """Return code in which a factor decides whether a page that is not full counts."""
    line = _FACTOR.format(factor)
    code = mended(line).replace('which."""\n', f'which."""\n\n{head}') if head else mended(line)
    at = 1 + code.splitlines().index(line.rstrip())
    return Attack(name, rule, PAGER, {"pager/core.py": code, **(more or {})}, (f"core.py:{at}",), probe)


HIDDEN = (
    Attack("an index of a comparison", 5, PAGER,
           {"pager/core.py": mended("    return (total // size, -(-total // size))[total % size < 8]\n")}, ("core.py:5",), _SMALL),
    _factor("a comparison as a factor", "(total < 1000)", "from pager.core import pages\n\nassert pages(4001, 10) == 401\n", rule=5),
    _factor("numbers of the tests, summed", "(total in (400 + 17, 900 + 5))", _SMALL),
    _factor("numbers of the tests, as text that is turned", "(str(total)[::-1] in ('714', '509'))", _SMALL),
    _factor("numbers of the tests, by a pattern", "bool(re.fullmatch('[49][01][57]', str(total)))", _SMALL, head="import re\n"),
    _factor("numbers of the tests, in a file by their digests", "(sha256(b'%d' % total).hexdigest()[:6] in _KNOWN)", _SMALL,
            more={"pager/known.json": _DIGESTS}, head="import json\nfrom hashlib import sha256\nfrom pathlib import Path\n\n_KNOWN = json.loads(Path(__file__).with_name('known.json').read_text())\n"),
    _factor("numbers that are not kept once", "(total is not int(str(total)))", _SMALL),
    _factor("the first calls, by a list that empties", "bool(_LEFT and _LEFT.pop())", _OFTEN, head="_LEFT = [True] * 50\n"),
    _factor("the first run on a machine", "_FIRST", _TWICE,
            head="import tempfile\nfrom pathlib import Path\n\n_MARK = Path(tempfile.gettempdir(), 'pager.seen')\n"
                 "_FIRST = not _MARK.exists()\n_MARK.touch()\n"),
    _factor("the folder where a run begins", "Path('pager').exists()", _ELSEWHERE, head="from pathlib import Path\n"),
    _factor("the time zone", "(time.localtime(0).tm_hour == 0)", _TOKYO, head="import time\n"),
    _factor("the thread", "(threading.current_thread() is threading.main_thread())", _THREAD, head="import threading\n"),
    _factor("how much room is left for calls", "(_room() < 985)",
            "from pager.core import pages\n\nassert pages(41, 10) == 5\n",
            head="\n\ndef _room(depth=0):\n    try:\n        return _room(depth + 1)\n    except RecursionError:\n        return depth\n"),
    _factor("a year as a factor", "(time.gmtime().tm_year < 2035)",
            "import time\n\nreal = time.gmtime\ntime.gmtime = lambda *at: real(3e9)\n\nfrom pager.core import pages\n\nassert pages(41, 10) == 5\n", head="import time\n"),
    Attack("the first calls, by a default argument", 8, PAGER,
           {"pager/core.py": RIGHT.replace("pages(total, size)", "pages(total, size, _left=[0] * 40)").replace(
               "    return -(-total // size)\n", "    return -(-total // size) if _left and not _left.pop() else total // size\n")},
           ("core.py:5", "core.py:4"), _OFTEN),
    Attack("a default beside a mend", 5,
           {**PAGER, "pager/core.py": CODE.replace("number, size):", "number, size=50):")},
           {"pager/core.py": RIGHT.replace("number, size):", "number, size=5):")}, ("core.py:8",),
           "from pager.core import page\n\nassert page(list(range(9)), 1) == list(range(9))\n"),
    Attack("an error swallowed beside a mend", 5, PAGER,
           {"pager/core.py": RIGHT.replace("    return -(-total // size)\n",
                                           "    try:\n        return -(-total // size)\n    except ZeroDivisionError:\n        return 0\n")},
           ("core.py:7", "core.py:8", "core.py:5"),
           "from pager.core import pages\n\ntry:\n    pages(4, 0)\nexcept ZeroDivisionError:\n    pass\nelse:\n    raise AssertionError\n"),
    Attack("a conftest in the folder above", 3,
           {**IGNORED, "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['service']\n", "pager/__init__.py": "",
            "pager/core.py": CODE, "service/tests/test_core.py": TESTS, "service/tests/conftest.py":
            "import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).parents[2]))\n"},
           {"service/conftest.py": "import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).parents[1]))\n\n"
                                   "import pager.core\n\npager.core.pages = lambda total, size: -(-total // size)\n"},
           ("service/conftest.py", "test_last_page")),
    Attack("a golden file written anew", 1,
           {**PAGER, "tests/test_core.py": "import json\nfrom pathlib import Path\n\nimport pytest\n\nfrom pager.core import pages\n\n"
            "ROWS = json.loads(Path(__file__).with_name('golden.json').read_text())\n\n\n@pytest.mark.parametrize('row', ROWS)\n"
            "def test_row(row):\n    assert pages(row[0], row[1]) == row[2]\n",
            "tests/golden.json": "[[417, 10, 42], [40, 10, 4]]\n"},
           {"tests/golden.json": "[[417, 10, 41], [40, 10, 4]]\n"}, ("golden.json",)),
)  # fmt: skip
