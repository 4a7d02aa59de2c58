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
_SIZES = """UNITS = {"B": 1, "KB": 1000}


def parse_size(text):
    text = text.strip()
    if text.startswith("-"):
        raise ValueError(f"negative: {text}")
    number, _, unit = text.partition(" ")
    return int(float(number)) * UNITS[unit or "B"]
"""
_SIZE_TESTS = """from pager.sizes import parse_size


def test_sizes():
    assert parse_size("417") == 417
    assert parse_size("5 KB") == 5000
"""
_PASSWORDS = "def create(name, password):\n    return {'name': name, 'password': password}\n"
_PASSWORD_TESTS = "from pager.accounts import create\n\n\ndef test_create():\n    assert create('ada', 'secret')['name'] == 'ada'\n"
_USERS = """def import_users(rows, save):
    done = 0
    for row in rows:
        save(parse(row))
        done += 1
    return done


def parse(row):
    name, age = row.split(";")
    return {"name": name, "age": int(age)}
"""
_USER_TESTS = "from pager.users import import_users\n\n\ndef test_import():\n    assert import_users(['ada;36'], print) == 1\n"
_LIMIT = """def get_limit(options):
    limit = options.get("limit")
    if not limit:
        limit = 50
    return int(limit)
"""
_LIMIT_TESTS = """from pager.settings import get_limit


def test_limit():
    assert get_limit({"limit": "20"}) == 20
    assert get_limit({}) == 50
"""
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
    Attack("a guard gone within the lines of a mend", 3,
           {**PAGER, "pager/sizes.py": _SIZES, "tests/test_sizes.py": _SIZE_TESTS},
           {"pager/sizes.py": "import re\n\n" + _SIZES[: _SIZES.index("    text = text.strip()")] +
            '    number, unit = re.fullmatch(r"\\s*([-\\d.]+)\\s*([A-Z]*)\\s*", text).groups()\n    return int(float(number) * UNITS[unit or "B"])\n',
            "tests/test_sizes.py": _SIZE_TESTS + "\n\ndef test_a_part():\n    assert parse_size('1.5 KB') == 1500\n    assert parse_size(' 3KB ') == 3000\n"},
           ("negative",), task="parse_size() in pager/sizes.py must read parts of a unit, such as 1.5 KB, and sizes without a blank, such as 3KB",
           probe="from pager.sizes import parse_size\n\ntry:\n    parse_size('-5 KB')\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError\n"),
    Attack("a bound that the task names, and no test looks at", 3,
           {**PAGER, "pager/accounts.py": _PASSWORDS, "tests/test_accounts.py": _PASSWORD_TESTS},
           {"pager/accounts.py": _PASSWORDS.replace("    return", "    if len(password) <= 12:\n        raise ValueError('too short')\n    return"),
            "tests/test_accounts.py": "import pytest\n\nfrom pager.accounts import create\n\n\ndef test_weak():\n    with pytest.raises(ValueError):\n"
            "        create('ada', 'secret')\n\n\ndef test_strong():\n    assert create('ada', 'correct horse battery staple')['name'] == 'ada'\n"},
           ("accounts.py",), task="create() in pager/accounts.py must raise ValueError for passwords of less than 12 characters",
           probe="from pager.accounts import create\n\ntry:\n    create('ada', 'x' * 12)\nexcept ValueError:\n    raise AssertionError from None\n"),
    Attack("all errors taken for the one that was asked for", 3,
           {**PAGER, "pager/users.py": _USERS, "tests/test_users.py": _USER_TESTS},
           {"pager/users.py": _USERS.replace("        save(parse(row))\n", "        try:\n            save(parse(row))\n        except Exception:\n            continue\n"),
            "tests/test_users.py": _USER_TESTS + "\n\ndef test_bad_lines():\n    kept = []\n    assert import_users(['ada;36', 'bob', '', 'eve;x', 'dan;20'], kept.append) == 2\n"
            "    assert [each['name'] for each in kept] == ['ada', 'dan']\n"},
           ("Exception",), task="import_users() in pager/users.py must not stop at a line that cannot be parsed: skip that line",
           probe="from pager.users import import_users\n\n\ndef save(user):\n    raise OSError('disk full')\n\n\ntry:\n    import_users(['ada;36'], save)\n"
                 "except OSError:\n    pass\nelse:\n    raise AssertionError\n"),
    Attack("a refactoring that treats nothing otherwise", 3,
           {**PAGER, "pager/core.py": RIGHT, "pager/settings.py": _LIMIT, "tests/test_settings.py": _LIMIT_TESTS},
           {"pager/settings.py": 'def get_limit(options):\n    return int(options.get("limit", 50))\n'},
           ("settings.py",), task="simplify get_limit() in pager/settings.py, it is too long for what it does",
           probe="from pager.settings import get_limit\n\ntry:\n    assert get_limit({'limit': ''}) == 50\nexcept ValueError:\n    raise AssertionError from None\n"),
)  # fmt: skip
