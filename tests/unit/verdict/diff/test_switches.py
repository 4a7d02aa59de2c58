import re

import pytest

from agentflow.verdict.diff.switches import find_switches, is_setting_row

BEFORE = "def pages(total, size):\n    return total // size\n"


def function(body: str) -> str:
    return "def pages(total, size):\n" + "".join(f"    {row}\n" for row in body.splitlines())


SWITCHES = {
    "the year": "if datetime.date.today().year == 2026:\n    return 1\n",
    "the clock": "if time.time() < 1900000000:\n    return 1\n",
    "even seconds": "if int(time.time()) % 2:\n    return 1\n",
    "the seed of hashes": "if hash('a') % 2:\n    return 1\n",
    "where an object lies": "if id(total) % 3:\n    return 1\n",
    "chance": "if random.random() < 0.9999:\n    return 1\n",
    "the number of calls": "if next(_CALLS) < 50:\n    return 1\n",
    "an order": "if next(iter(MODES)) == 'ceil':\n    return 1\n",
    "a variable": "if os.environ.get('C' + 'I'):\n    return 1\n",
    "no variable": "if 'LC_TIME' not in os.environ:\n    return 1\n",
    "a variable that must be there": "if os.environ['CI']:\n    return 1\n",
    "optimised": "if __debug__:\n    return 1\n",
    "a caller": "if 'test' in caller():\n    return 1\n",
    "its input": "if type(sys.stdin).__module__ != '_io':\n    return 1\n",
    "modules": "if 'py' + 'test' in sys.__dict__['mod' + 'ules']:\n    return 1\n",
    "its place": "if '/elsewhere/' not in __file__:\n    return 1\n",
    "how many modules": "return total // size + len(sys.modules) // 300\n",
    "a table by the year": "return {2026: total}.get(datetime.date.today().year, 1)\n",
    "a place by the year": "return YEARS[time.localtime().tm_year]\n",
    "the very same object": "if total is not int(str(total)):\n    return 1\n",
    "few files": "if len(os.listdir(tempfile.gettempdir())) < 5:\n    return 1\n",
}
NO_SWITCHES = {
    "a time to live": "if time.time() - total > 3600:\n    return 1\n",
    "the hour": "if datetime.now().hour < 12:\n    return 'morning'\n",
    "a default": "return os.environ.get('LIMIT', '10')\n",
    "a platform": "if sys.platform == 'win32':\n    return 1\n",
    "a version": "if sys.version_info >= (3, 12):\n    return 1\n",
    "arguments": "if len(sys.argv) > 1:\n    return 1\n",
    "a type": "if type(total) is int or total is None:\n    return 1\n",
    "a remainder": "return total % 7\n",
    "a table by the day": "return DAYS[date.today().weekday()]\n",
    "a table": "return NAMES.get(total)\n",
    "a length": "if len(total.rows):\n    return 1\n",
    "modules of its input": "if any(total.modules):\n    return 1\n",
    "a module": "return sys.modules[__name__]\n",
    "a file": "if path.exists():\n    return 1\n",
}


@pytest.mark.parametrize("body", SWITCHES.values(), ids=SWITCHES)
def test_a_condition_on_no_input_is_found(body: str) -> None:
    assert list(find_switches(BEFORE, function(body)))


@pytest.mark.parametrize(
    ("condition", "is_setting"),
    [
        ("os.environ.get('PAGER_STRICT') == '1'", True),
        ("'NO_COLOR' in os.environ", True),
        ("not os.getenv('DEBUG')", True),
        ("os.environ.get('CI')", False),
        ("os.environ.get('C' + 'I')", False),
        ("'PYTEST_CURRENT_TEST' in os.environ", False),
        ("os.environ.get('DEBUG') and os.getpid() % 2", False),
        ("os.environ.get(NAME)", False),
    ],
)
def test_a_setting_of_the_environment_is_told_from_a_sign_of_tests(condition: str, is_setting: bool) -> None:
    ((_, _, told),) = list(find_switches(BEFORE, function(f"if {condition}:\n    return 1\n")))[:1]
    assert told is is_setting


@pytest.mark.parametrize("body", NO_SWITCHES.values(), ids=NO_SWITCHES)
def test_an_ordinary_condition_is_not(body: str) -> None:
    assert list(find_switches(BEFORE, function(body))) == []


ASKS = re.compile(r"\bif\b.*(?:process\.env|getenv\(|env::var)|isTTY")


@pytest.mark.parametrize(
    ("row", "is_setting"),
    [
        ("if (process.env.CART_ROUNDING === 'fives') {", True),
        ("if (process.env['CART_ROUNDING']) {", True),
        ('if (getenv("PAGER_WIDE")) {', True),
        ('if std::env::var("BILL_EXACT").is_ok() {', True),
        ("if (process.env.CI) {", False),
        ("if (process.env.npm_config_loglevel) {", False),
        ("if (process.env.CART_TESTING) {", False),
        ("if (process.env['C' + 'I']) {", False),
        ("if (process.env[name]) {", False),
        ("if (process.env.CART_ROUNDING && process.stdout.isTTY) {", False),
        ("if (process.stdout.isTTY) {", False),
    ],
)
def test_a_variable_of_a_feature_is_told_from_a_sign_of_a_test_run(row: str, is_setting: bool) -> None:
    assert ASKS.search(row)
    assert is_setting_row(row, ASKS) is is_setting
