"""Code that is written in another way and does the same; and what looks alike and does something else."""

import pytest

from agentflow.verdict.same.equivalence import is_same_behaviour
from agentflow.workspace.mixed_tree import ChangedTexts

CHECK = "    if amount <= 0:\n        raise ValueError(amount)\n"
PAID = f"def pay(purse, amount):\n{CHECK}    purse.take(amount)\n"
HELPER = f"def _check(amount):\n{CHECK}\n\n"
CHECKED = "def pay(purse, amount):\n    _check(amount)\n    purse.take(amount)\n"
LOOP = (
    "def f(words):\n    found = []\n    for word in words:\n        found.append(word[0])\n    return found\n"
)
ONCE = "def f(words):\n    found = g(words)\n    return len(found)\n"
OPTIONS = "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--to', help='were it goes')\n"


def of(*rows: str, head: str = "def f(words):\n") -> str:
    return head + "".join(f"    {row}\n" for row in rows)


LISTED = of("return [word[0] for word in words]")
SAME = {
    "a function is extracted": (PAID, f"{HELPER}{CHECKED}"),
    "behind what calls it": (PAID, f"{CHECKED}\n\n{HELPER}"),
    "with a result": (
        of("total = 3 * words", "return total + 1"),
        "def _sum(words):\n    total = 3 * words\n    return total + 1\n\n\n" + of("return _sum(words)"),
    ),
    "with other names": (
        of("return words.a if words else 2"),
        "def _first(each, other):\n    return each.a if each else other\n\n\n"
        + of("return _first(words, 2)"),
    ),
    "from a method": (
        f"class A:\n    def pay(self, purse, amount):\n{CHECK.replace('    ', '        ', 1).replace('raise', '    raise')}",
        f"{HELPER}class A:\n    def pay(self, purse, amount):\n        _check(amount)\n",
    ),
    "a loop becomes a comprehension": (LOOP, LISTED),
    "with a condition": (
        LOOP.replace("        found", "        if word:\n            found"),
        of("found = [word[0] for word in words if word]", "return found"),
    ),
    "a comprehension that is joined": (
        LOOP.replace("return found", 'return "-".join(found)'),
        of('return "-".join(word[0] for word in words)'),
    ),
    "a variable that is used at once": (ONCE, of("return len(g(words))")),
    "a variable that is returned": (of("found = g(words)", "return found"), of("return g(words)")),
    "as the owner of a method": (of("found = g(words)", "return found.h(1)"), of("return g(words).h(1)")),
    "a text that is formatted": (
        of("return 'of {}: {:>3} {{}} {!r}'.format(words, 1, words)"),
        of("return f'of {words}: {1:>3} {{}} {words!r}'"),
    ),
    "the result of a call in a text": (of("return '{}!'.format(g(words))"), of("return f'{g(words)}!'")),
    "help of an option": (OPTIONS, OPTIONS.replace("were", "where")),
}
OTHER = {
    "another condition": (PAID, f"{HELPER.replace('<=', '<')}{CHECKED}"),
    "another argument": (PAID, f"{HELPER}{CHECKED.replace('_check(amount)', '_check(purse)')}"),
    "a result that ends the caller": (
        of("if not words:", "    return 0", "return g(words)"),
        "def _none(words):\n    if not words:\n        return 0\n\n\n" + of("_none(words)", "return g(words)"),
    ),
    "a name that the caller binds": (
        "limit = 1\n\n\n" + of("limit = 2", "if words > limit:", "    raise ValueError"),
        "limit = 1\n\n\ndef _check(words):\n    if words > limit:\n        raise ValueError\n\n\n"
        + of("limit = 2", "_check(words)"),
    ),
    "a name that the caller reads later": (
        of("total = 0", "total = g(words)", "return total"),
        "def _sum(words):\n    total = g(words)\n\n\n" + of("total = 0", "_sum(words)", "return total"),
    ),
    "a name that is set at times": (
        of("if words:", "    seen = 1", "g(seen)", "if words:", "    seen = 1", "g(seen)"),
        "def _see(words):\n    if words:\n        seen = 1\n    g(seen)\n\n\n" + of("_see(words)", "_see(words)"),
    ),
    "an argument that does something": (
        of("if words:", "    g(h())"),
        "def _call(words, it):\n    if words:\n        g(it)\n\n\n" + of("_call(words, h())"),
    ),
    "an argument that may not be bound": (
        of("if words:", "    it = 1", "if words:", "    g(it)"),
        "def _call(words, it):\n    if words:\n        g(it)\n\n\n"
        + of("if words:", "    it = 1", "_call(words, it)"),
    ),
    "a function that is not there yet": (
        of("return 1") + "\n\nONE = f(1)\n",
        of("return _one()") + "\n\nONE = f(1)\n\n\ndef _one():\n    return 1\n",
    ),
    "a function that is put over": (PAID, f"{HELPER}{CHECKED}\n\n_check = print\n"),
    "a call that runs later": (
        of("return lambda: words"), "def _it(words):\n    return words\n\n\n" + of("return lambda: _it(words)")
    ),
    "a default that is kept": (
        of("words.append(1)", "return words"),
        "def _add(words=[]):\n    words.append(1)\n    return words\n\n\n" + of("return _add(words)"),
    ),
    "a private name of a class": (
        "class A:\n    def f(self):\n        return self.__x\n",
        "def _x(self):\n    return self.__x\n\n\nclass A:\n    def f(self):\n        return _x(self)\n",
    ),
    "a function that pauses": (of("yield words"), "def _y(words):\n    yield words\n\n\n" + of("_y(words)")),
    "a variable that a closure changes": (
        of("def turn():", "    nonlocal words", "    words = 2", "turn()", "return words"),
        "def _turn(turn, words):\n    turn()\n    return words\n\n\n"
        + of("def turn():", "    nonlocal words", "    words = 2", "return _turn(turn, words)"),
    ),
    "a list that is seen half filled": (
        of("found = []", "try:", "    found = []", "    for word in words:", "        found.append(g(word))",
           "except OSError:", "    pass", "return found"),
        of("found = []", "try:", "    found = [g(word) for word in words]",
           "except OSError:", "    pass", "return found"),
    ),
    "a list that is read as it fills": (
        LOOP.replace("word[0]", "len(found)"), of("return [len(found) for word in words]")
    ),
    "functions that keep a variable": (
        LOOP.replace("word[0]", "lambda: word"), of("return [(lambda: word) for word in words]")
    ),
    "a name that the loop leaves": (
        LOOP.replace("return found", "return found, word"),
        of("found = [word[0] for word in words]", "return found, word"),
    ),
    "a parameter that the loop binds": (
        LOOP.replace("word in words", "words in words"), of("return [word[0] for words in words]")
    ),
    "the other list": (LOOP, LISTED.replace("word[0]", "word[1]")),
    "a loop that stops": (LOOP.replace("word[0])", "word[0])\n        break"), LISTED),
    "a set": (LOOP, LISTED.replace("[word[0] for word in words]", "{word[0] for word in words}")),
    "a generator for a list": (LOOP, LISTED.replace("[word[0] for word in words]", "(word[0] for word in words)")),
    "a generator that may be ended": (
        LOOP.replace("word[0]", "next(word)").replace("return found", "return ''.join(found)"),
        of("return ''.join(next(word) for word in words)"),
    ),
    "a value that comes second": (
        of("found = g(words)", "return h(words)[found]"), of("return h(words)[g(words)]")
    ),
    "a value that is taken at times": (
        of("found = g(words)", "return words and found"), of("return words and g(words)")
    ),
    "a value that is gone too soon": (
        of("found = TemporaryDirectory()", "return g(found.name)"), of("return g(TemporaryDirectory().name)")
    ),
    "a value that is kept till the end": (
        of("with words:", "    found = g(words)", "    return len(found)"),
        of("with words:", "    return len(g(words))"),
    ),
    "a value that is taken later": (
        of("found = g(words)", "return lambda: found"), of("return lambda: g(words)")
    ),
    "a value that is taken twice": (
        of("found = g(words)", "return found, found"), of("return g(words), g(words)")
    ),
    "a function that is put over by a value": (
        "def h(x):\n    return x\n\n\ndef g(x):\n    global h\n    h = len\n    return x\n\n\n"
        + of("found = g(words)", "return h(found)"),
        "def h(x):\n    return x\n\n\ndef g(x):\n    global h\n    h = len\n    return x\n\n\n"
        + of("return h(g(words))"),
    ),
    "frames that are seen": (
        ONCE.replace("g(", "locals("), of("return len(locals(words))")
    ),
    "the walrus": (of("found = (w := words)", "return g(w, found)"), of("return g(w, (w := words))")),
    "a text that is formatted otherwise": (of("return '{:>4}'.format(words)"), of("return f'{words:>3}'")),
    "a text that is formatted before a call": (
        of("return '{}{}'.format(words, words.pop())"),
        of("return f'{words}{words.pop()}'"),
    ),
    "a value that is given too much": (of("return '{}'.format(words, 1)"), of("return f'{words}'")),
    "another option": (OPTIONS, OPTIONS.replace("--to", "--at")),
    "help that is filled in": (OPTIONS, OPTIONS.replace("were", "%(default)s")),
    "help that is not shown": (OPTIONS, OPTIONS.replace("'were it goes'", "argparse.SUPPRESS")),
    "a default": tuple(OPTIONS.replace("help='were", f"default='{word}") for word in ("were", "where")),
}  # fmt: skip


def tried(before: str, after: str) -> bool:
    change = ChangedTexts(path="a.py", before=before, after=after)
    return is_same_behaviour([change], own={"a"})


@pytest.mark.parametrize("name", SAME)
def test_what_is_written_otherwise_does_the_same(name: str) -> None:
    before, after = SAME[name]
    assert tried(before, after)
    assert tried(after, before)


@pytest.mark.parametrize("name", OTHER)
def test_what_looks_alike_may_do_something_else(name: str) -> None:
    before, after = OTHER[name]
    compile(before + after, "a.py", "exec")
    assert not tried(before, after)
    assert not tried(after, before)


COST = "def cost(weight):\n    return 490 if weight <= 2000 else 990 + 600 * weight\n"
NAMED = COST.replace("490", "SMALL").replace("600", "FEE")
WRONG_CONSTANTS = {
    "another value": f"SMALL = 491\nFEE = 600\n{NAMED}",
    "set twice": f"SMALL = 490\nFEE = 600\n{NAMED}\n\nFEE = 700\n",
    "set elsewhere": f"SMALL = 490\nFEE = 600\n{NAMED}\n\ndef f():\n    global FEE\n    FEE = 1\n",
    "a name of Python": f"max = 490\n{COST.replace('490', 'max')}",
    "a list": f"SMALL = [490]\n{COST.replace('490', 'SMALL')}",
    "a name that is known": f"{COST.replace('490', 'weight')}",
}


def test_a_new_constant_stands_for_its_value() -> None:
    whole = "def f(word, times=(-1, 60 * 60)):\n    return word in times or 'b' * 2\n"
    after = "OFTEN = (-1, 60 * 60)\nLETTER = 'b'\n\n\n" + whole.replace("(-1, 60 * 60)", "OFTEN")
    assert tried(whole, after.replace("'b' *", "LETTER *"))
    assert tried(COST, f"SMALL = 490\nFEE: int = 600\n\n\n{NAMED}")
    given = "def f(fee=600):\n    return fee\n"
    assert not tried(given, f"{given.replace('600', 'FEE')}\n\nFEE = 600\n")  # it is set too late
    assert not tried(f"SMALL = 490\nFEE = 600\n{NAMED}", COST)  # others may import what is gone


@pytest.mark.parametrize("name", WRONG_CONSTANTS)
def test_another_constant_may_do_something_else(name: str) -> None:
    assert not tried(COST, WRONG_CONSTANTS[name])
