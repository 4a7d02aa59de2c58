"""Changes in the styles that people write in: tables, generators, decorators, tokens, templates, queries."""

from tests.soak.honest.entries import Edit, Entry, Put, Shape
from tests.soak.honest.repositories import IGNORED

_LIB = Shape({
    ".gitignore": IGNORED,
    "lib.py": '''"""Small things."""


def chunks(items, size):
    """Return the items in lists of a size."""
    result = []
    for start in range(0, len(items), size):
        result.append(items[start : start + size])
    return result
''',
    "test_lib.py": """from lib import chunks


def test_chunks():
    assert list(chunks([1, 2, 3], 2)) == [[1, 2], [3]]
""",
})  # fmt: skip
_ORDERS = Shape({
    ".gitignore": IGNORED,
    "shop/__init__.py": "",
    "shop/open.sql": "select name from orders\n",
    "shop/mail.txt": "Dear {{ name }},\nthank you.\n",
    "shop/orders.py": '''"""Orders."""

from enum import Enum
from pathlib import Path

from jinja2 import Template

_FOLDER = Path(__file__).parent


class State(Enum):
    OPEN = "open"


def open_orders(connection):
    return [row[0] for row in connection.execute((_FOLDER / "open.sql").read_text())]


def mail(**values):
    return Template((_FOLDER / "mail.txt").read_text(), keep_trailing_newline=True).render(**values)
''',
    "tests/test_orders.py": """import sqlite3

from shop.orders import State, mail, open_orders


def test_open():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table orders (name text, is_open int)")
    connection.executemany("insert into orders values (?, ?)", [("b", 1), ("a", 1)])
    assert sorted(open_orders(connection)) == ["a", "b"]


def test_mail():
    assert mail(name="Ann") == "Dear Ann,\\nthank you.\\n"


def test_state():
    assert State("open") is State.OPEN
""",
})  # fmt: skip


def _added(code: str, test: str, names: str, head: str = "") -> tuple[Edit, ...]:
    """Return the edits that add something to the small things, with its test."""
    return (
        Edit("lib.py", "    return result\n", f"    return result\n\n\n{code}"),
        Edit("lib.py", '"""Small things."""\n', f'"""Small things."""\n{head}'),
        Edit("test_lib.py", "import chunks\n", f"import {names}\n"),
        Edit("test_lib.py", "[3]]\n", f"[3]]\n\n\n{test}"),
    )


STYLES: tuple[Entry, ...] = (
    Entry("a list becomes a generator", "refactoring", _LIB, "chunks() in lib.py should not keep all lists in memory",
          (Edit("lib.py", "    result = []\n", ""), Edit("lib.py", "result.append(items[start : start + size])\n    return result\n", "yield items[start : start + size]\n"),
           Edit("test_lib.py", "[3]]\n", "[3]]\n\n\ndef test_lazy():\n    assert next(chunks(range(9), 3)) == range(3)\n"))),
    Entry("a table of the words in the task", "feature", _LIB, "add symbol(currency) to lib.py for EUR, USD and GBP; others are shown as they are",
          _added('SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}\n\n\ndef symbol(currency):\n    return SYMBOLS.get(currency, currency)\n',
                 'def test_symbol():\n    assert [symbol(name) for name in ("EUR", "USD", "GBP", "CHF")] == ["€", "$", "£", "CHF"]\n', "chunks, symbol")),
    Entry("a token that is never the same", "feature", _LIB, "add new_token() to lib.py: 16 random letters",
          _added("def new_token():\n    return secrets.token_hex(8)\n",
                 "def test_token():\n    assert len(new_token()) == 16\n    assert new_token() != new_token()\n", "chunks, new_token", "\nimport secrets\n")),
    Entry("how often each word is there", "feature", _LIB, "add count_words(text) to lib.py",
          _added("def count_words(text):\n    counts = {}\n    for word in text.split():\n        counts[word] = counts.get(word, 0) + 1\n    return counts\n",
                 'def test_count_words():\n    assert count_words("a b a") == {"a": 2, "b": 1}\n', "chunks, count_words")),
    Entry("a value within bounds", "feature", _LIB, "add clamp(value, low, high) to lib.py",
          _added("def clamp(value, low, high):\n    return max(low, min(value, high))\n",
                 "def test_clamp():\n    assert [clamp(value, 1, 3) for value in (0, 2, 9)] == [1, 2, 3]\n", "chunks, clamp")),
    Entry("a decorator that calls again", "feature", _LIB, "add a decorator retry(times) to lib.py that calls again after an OSError",
          _added("def retry(times):\n    def decorate(function):\n        @functools.wraps(function)\n        def wrapper(*args, **kwargs):\n"
                 "            for attempt in range(times):\n                try:\n                    return function(*args, **kwargs)\n                except OSError:\n"
                 "                    if attempt == times - 1:\n                        raise\n\n        return wrapper\n\n    return decorate\n",
                 "def test_retry():\n    calls = []\n\n    @retry(3)\n    def flaky():\n        calls.append(1)\n        if len(calls) < 3:\n            raise OSError\n        return calls\n\n"
                 "    assert flaky() == [1, 1, 1]\n\n\ndef test_retry_gives_up():\n    @retry(2)\n    def broken():\n        raise OSError\n\n    with pytest.raises(OSError):\n        broken()\n",
                 "chunks, retry\n\nimport pytest", "\nimport functools\n"), ends=frozenset({4}), caveat="unproved"),
    Entry("a context manager", "feature", _LIB, "add changed(items) to lib.py: the list is put back afterwards",
          _added("@contextmanager\ndef changed(items):\n    before = list(items)\n    try:\n        yield items\n    finally:\n        items[:] = before\n",
                 "def test_changed():\n    items = [1]\n    with changed(items) as same:\n        same.append(2)\n    assert items == [1]\n", "changed, chunks", "\nfrom contextlib import contextmanager\n")),
    Entry("a query in a file of its own", "feature", _ORDERS, "open_orders() lists closed orders as well; list them by name",
          (Put("shop/open.sql", "select name\nfrom orders\nwhere is_open\norder by name\n"),
           Edit("tests/test_orders.py", 'sorted(open_orders(connection)) == ["a", "b"]\n',
                'sorted(open_orders(connection)) == ["a", "b"]\n    connection.execute("insert into orders values (\'c\', 0)")\n    assert open_orders(connection) == ["a", "b"]\n'))),
    Entry("a template with a condition", "feature", _ORDERS, "the mail should name the gift if there is one",
          (Put("shop/mail.txt", "Dear {{ name }},\nthank you{% if gift %} for the {{ gift }}{% endif %}.\n"),
           Edit("tests/test_orders.py", "\n\ndef test_state", '\n\ndef test_gift():\n    assert mail(name="Ann", gift="tea") == "Dear Ann,\\nthank you for the tea.\\n"\n\n\ndef test_state'))),
    Entry("members of an enumeration", "feature", _ORDERS, "add the states PAID and GONE to shop/orders.py",
          (Edit("shop/orders.py", '    OPEN = "open"\n', '    OPEN = "open"\n    PAID = "paid"\n    GONE = "gone"\n'),
           Edit("tests/test_orders.py", '    assert State("open") is State.OPEN\n', '    assert State("open") is State.OPEN\n    assert [State("paid"), State("gone")] == [State.PAID, State.GONE]\n'))),
)  # fmt: skip
