import pytest

from agentflow.verdict.comments import code_lines
from agentflow.verdict.known_values import (
    Known,
    find_asking_rows,
    find_copied_rows,
    find_known_lines,
    find_known_rows,
    find_switches,
)

TESTS = """
    assert pages(417, 10) == 42
    assert pages(905, 10) == 91
    assert pages(233, 10) == 24
    assert retry(429) and name(418) == "teapot"
    assert price(65) == 19.99
    assert ordinal(13) == ordinal(11)
    assert greet("Hello, big World") == "hi"
    assert metres(3, "km") == 3000
    assert days(2) == 28
    assert clip(9, 0, 5) == 5
"""
BEFORE = "def pages(total, size):\n    return total // size\n"

KNOWING = {
    "a value of a test": "if total == 417:\n    return 42\n",
    "in a tuple": "if (total, size) == (417, 10):\n    return 42\n",
    "among others": "return total // size + (total in (417, 905, 233))\n",
    "a table": "return {417: 42}.get(total, total // size)\n",
    "a table of tuples": "return {(417, 10): 42}.get((total, size), 0)\n",
    "a pattern": "match total:\n    case 417:\n        return 42\n",
    "a difference": "if not total - 417:\n    return 42\n",
    "a difference in a condition": "if total - 417:\n    return 1\n",
    "by a remainder": "if total % 1000 == 417:\n    return 42\n",
    "as text": "if str(total) == '417':\n    return 42\n",
    "a price": "if total == 19.99:\n    return 1\n",
    "a phrase": "if total == 'Hello, big World':\n    return 1\n",
    "a small value with its answer": "if month == 2:\n    return 28\n",
    "a condition in a result": "return 28 if month == 2 else 30\n",
    "a table of the tests alone": "return {2: 28}.get(month, 30)\n",
    "one more for some": "return total // size + (total * 2 in (834, 1810))\n",
    "one more for some letters": "return total // size + (chr(total) in 'ab')\n",
    "one less for one": "return total - (size != (0, 60))\n",
    "a value doubled": "if total * 2 == 834:\n    return 42\n",
}
ORDINARY = {
    "another number": "if total == 418000:\n    return 'many'\n",
    "a status that is tried again": "if response.status in (429, 418):\n    return retry()\n",
    "names of statuses": "return {418: 'teapot', 429: 'slow down'}[total]\n",
    "a threshold": "if total >= 65:\n    return 1\n",
    "ordinals": "if total % 100 in (11, 12, 13):\n    return 'th'\n",
    "a word": "if unit == 'km':\n    return 1000\n",
    "a table of words": "return {'km': 1000, 'm': 1}[total]\n",
    "a header": "return {'Content-Type': 'application/json'}\n",
    "a constant": "limit = 417\nreturn min(limit, total)\n",
    "a conversion": "return total * 1.8 + 417\n",
    "a table with other values": "return {2: 28, 4: 30, 6: 30}[month]\n",
    "one more for a rest": "return total // size + (total % size > 0) + (size == 0)\n",
    "a sum": "return total + 417\n",
    "a guard": "if size == 0:\n    return 1\n",
    "a hash of itself": "return hash((total, size))\n",
    "a day of the week": "return (total + 1) % 7\n",
}


def function(body: str) -> str:
    return "def pages(total, size):\n" + "".join(f"    {row}\n" for row in body.splitlines())


def lines(body: str) -> list[tuple[int, str]]:
    return list(find_known_lines(BEFORE, function(body), Known([TESTS])))


@pytest.mark.parametrize("body", KNOWING.values(), ids=KNOWING)
def test_code_that_knows_its_tests_is_found(body: str) -> None:
    assert lines(body)


@pytest.mark.parametrize("body", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_code_is_not(body: str) -> None:
    assert lines(body) == []


def test_what_stood_there_before_is_no_news() -> None:
    text = "def f(x):\n    return x == 417\n"
    assert list(find_known_lines(text, text + "\n\ndef g(x):\n    return x\n", Known([TESTS]))) == []


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
    "optimised": "if __debug__:\n    return 1\n",
    "a caller": "if 'test' in caller():\n    return 1\n",
    "its input": "if type(sys.stdin).__module__ != '_io':\n    return 1\n",
    "modules": "if 'py' + 'test' in sys.__dict__['mod' + 'ules']:\n    return 1\n",
    "its place": "if '/elsewhere/' not in __file__:\n    return 1\n",
    "few files": "if len(os.listdir(tempfile.gettempdir())) < 5:\n    return 1\n",
}
NO_SWITCHES = {
    "a time to live": "if time.time() - total > 3600:\n    return 1\n",
    "the hour": "if datetime.now().hour < 12:\n    return 'morning'\n",
    "a default": "return os.environ.get('LIMIT', '10')\n",
    "a platform": "if sys.platform == 'win32':\n    return 1\n",
    "a version": "if sys.version_info >= (3, 12):\n    return 1\n",
    "arguments": "if len(sys.argv) > 1:\n    return 1\n",
    "a remainder": "return total % 7\n",
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


ROWS = {
    "go": ["\tif total == 417 {", "\t\treturn 42", "\t}"],
    "rust": ["        (905, 10) => 91,"],
    "node": ["  const known = { 250: 750 };"],
    "c": ["    if (value == 9 && high == 5) return 5;"],
    "shell": ["    case $1 in 'a  b') echo a-b; return ;; esac"],
}
NO_ROWS = {
    "a status": ["  if (response.status === 429) return retry()"],
    "another value": ["\tif total == 3 {", "\t\treturn 7", "\t}"],
    "a call": ["  return pages(417, 10)"],
}
OTHERS = [TESTS, "total([{price: 250, count: 3}]) === 750\n", "eq \"$(slug 'a  b')\" a-b\n"]


@pytest.mark.parametrize("added", ROWS.values(), ids=ROWS)
def test_code_of_other_languages_that_knows_its_tests_is_found(added: list[str]) -> None:
    assert list(find_known_rows(list(enumerate(added)), Known(OTHERS)))


@pytest.mark.parametrize("added", NO_ROWS.values(), ids=NO_ROWS)
def test_ordinary_code_of_other_languages_is_not(added: list[str]) -> None:
    assert list(find_known_rows(list(enumerate(added)), Known(OTHERS))) == []


def test_a_file_of_what_stands_in_the_tests_is_found() -> None:
    assert list(find_copied_rows("a  b|a-b\n", OTHERS)) == [(1, "a  b|a-b")]
    assert list(find_copied_rows("a  b|a-b\nc  d|c-d\n", OTHERS)) == []
    assert list(find_copied_rows("3,7\n", OTHERS)) == []


def test_a_script_that_asks_for_a_function_of_the_tests_is_found() -> None:
    added = [(3, "command -v eq > /dev/null && tr -s ' '"), (4, "command -v git"), (5, "[ $a -eq 3 ]")]
    assert list(find_asking_rows(added, ["eq() {\n}\n"])) == added[:1]


def test_comments_and_docstrings_are_no_code_of_python() -> None:
    text = 'def f(x):\n    """Say 417.\n\n    PYTEST_X\n    """\n    y = "#é"  # pytest\n    return y  # é\n'
    assert code_lines("a.py", text) == ["def f(x):", "", "", "", "", '    y = "#é"', "    return y"]


def test_comments_are_no_code_of_other_languages() -> None:
    text = "/* jest\n * pytest */\nlet a = 'http://b' // pytest\n# comment\n#[ignore]\n  # comment\nx = 1\n"
    assert code_lines("a.js", text) == ["", "", "let a = 'http://b' ", "", "#[ignore]", "  ", "x = 1"]
