"""Seeded mistakes: the right code, the edit that breaks it, and tests that tell."""

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    code: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    """Expressions that must be true."""


CART = """
class Cart:
    def __init__(self, name, limit):
        self.name = name
        self.limit = limit
        self.items = []

    def add(self, item):
        if len(self.items) < self.limit:
            self.items.append(item)
        return len(self.items)

    def room(self):
        return self.limit - len(self.items)
"""
TEXT = """
def pad_left(text, width):
    return " " * (width - len(text)) + text


def pad_right(text, width):
    return text + " " * (width - len(text))


def column(rows, width):
    return [pad_right(row, width) for row in rows]
"""
STATS = """
def mean(values):
    if not values:
        return 0
    return sum(values) / len(values)


def spread(values):
    low = min(values)
    high = max(values)
    return high - low


def is_outlier(value, values):
    return value < mean(values) / 2 or value > mean(values) * 2
"""
PAGES = """
SIZE = 10


def count(total):
    return (total + SIZE - 1) // SIZE


def page(items, number):
    start = (number - 1) * SIZE
    return items[start : start + SIZE]


def longest(words):
    best = ""
    for word in words:
        if not word:
            continue
        if len(word) > len(best):
            best = word
    return best


def first_even(numbers):
    found = None
    for number in numbers:
        if number % 2 == 0:
            found = number
            break
    return found


def lookup(table, key):
    try:
        return table[key]
    except KeyError:
        return None


def total(rows):
    result = 0
    for price, pieces in rows:
        result += price * pieces
    return result


def clamp(value, low, high):
    return max(low, min(value, high))


def between(value, low, high):
    return low <= value and value <= high


def squeezed(text):
    return clamp(len(text), 1, 5)
"""

BUGS = (
    Bug(
        "comparison",
        PAGES,
        "low <= value and",
        "low < value and",
        ("between(1, 1, 3)", "between(3, 1, 3)", "not between(0, 1, 3)", "not between(4, 1, 3)"),
    ),
    Bug(
        "logic",
        PAGES,
        "low <= value and value",
        "low <= value or value",
        ("between(2, 1, 3)", "not between(0, 1, 3)", "not between(4, 1, 3)"),
    ),
    Bug(
        "constant",
        PAGES,
        "clamp(len(text), 1, 5)",
        "clamp(len(text), 1, 4)",
        ('squeezed("abcdef") == 5', 'squeezed("") == 1', 'squeezed("abc") == 3'),
    ),
    Bug(
        "module constant",
        PAGES,
        "SIZE = 10",
        "SIZE = 9",
        ("count(10) == 1", "count(11) == 2", "len(page(list(range(30)), 2)) == 10"),
    ),
    Bug(
        "operator",
        PAGES,
        "(number - 1) * SIZE",
        "(number + 1) * SIZE",
        ("page(list(range(30)), 2)[0] == 10", "page(list(range(30)), 1)[0] == 0"),
    ),
    Bug(
        "augmented operator",
        PAGES,
        "result += price",
        "result -= price",
        ("total([(2, 3), (1, 1)]) == 7", "total([]) == 0"),
    ),
    Bug(
        "missing increment",
        PAGES,
        "(number - 1) * SIZE",
        "number * SIZE",
        ("page(list(range(30)), 2)[0] == 10", "page(list(range(30)), 1)[0] == 0"),
    ),
    Bug(
        "extra increment",
        PAGES,
        "items[start : start + SIZE]",
        "items[start + 1 : start + SIZE]",
        ("page(list(range(30)), 2)[0] == 10", "len(page(list(range(30)), 1)) == 10"),
    ),
    Bug(
        "repeated variable",
        PAGES,
        "min(value, high)",
        "min(high, low)",
        ("clamp(2, 1, 3) == 2", "clamp(0, 1, 3) == 1", "clamp(9, 1, 3) == 3"),
    ),
    Bug(
        "jump",
        PAGES,
        "            break\n",
        "            continue\n",
        ("first_even([1, 2, 3, 4]) == 2", "first_even([1]) is None"),
    ),
    Bug(
        "negation",
        PAGES,
        "if not word:",
        "if word:",
        ('longest(["a", "abc", "ab"]) == "abc"', 'longest([]) == ""'),
    ),
    Bug(
        "missing guard",
        STATS,
        "    if not values:\n        return 0\n",
        "",
        ("mean([]) == 0", "mean([1, 3]) == 2"),
    ),
    Bug(
        "wrong call",
        STATS,
        "low = min(values)",
        "low = max(values)",
        ("spread([3, 1, 7]) == 6", "spread([2]) == 0"),
    ),
    Bug(
        "swapped operands",
        STATS,
        "high - low",
        "low - high",
        ("spread([3, 1, 7]) == 6", "spread([2]) == 0"),
    ),
    Bug(
        "wrong variable",
        STATS,
        "return value < mean",
        "return low < mean",
        ("is_outlier(1, [10, 10])", "not is_outlier(9, [10, 10])", "is_outlier(30, [10, 10])"),
    ),
    Bug(
        "sibling function",
        TEXT,
        "[pad_right(row",
        "[pad_left(row",
        ('column(["a", "bc"], 3) == ["a  ", "bc "]', 'pad_left("a", 2) == " a"'),
    ),
    Bug(
        "swapped call arguments",
        TEXT,
        "pad_right(row, width)",
        "pad_right(width, row)",
        ('column(["a", "bc"], 3) == ["a  ", "bc "]', 'pad_left("a", 2) == " a"'),
    ),
    Bug(
        "wrong attribute",
        CART,
        "return self.limit - len",
        "return self.name - len",
        ('Cart("x", 3).room() == 3', 'Cart("x", 1).add(1) == 1'),
    ),
)


def module_tests(module: str, truths: tuple[str, ...]) -> str:
    """Return a test file for both runners, one test a truth."""
    text = f"import unittest\n\nfrom {module} import *\n\n\nclass ShopTest(unittest.TestCase):\n"
    for number, truth in enumerate(truths):
        text += f"    def test_{number}(self):\n        self.assertTrue({truth})\n\n"
    return text
