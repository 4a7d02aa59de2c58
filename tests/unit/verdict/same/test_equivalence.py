"""What is equal is proved by the files; whatever could have an effect is not equal."""

import pytest

from agentflow.verdict.same.equivalence import is_same_behaviour
from agentflow.workspace.mixed_tree import ChangedTexts

CODE = '''"""Pages."""

import os
from pathlib import Path


def pages(total, size):
    """Return how many pages there are."""
    return -(-total // size)  # rounded up


class Book:
    """A book."""

    def length(self, unit=None):
        return os.sep
'''


def changed(before: str, after: str, path: str = "pager/core.py") -> ChangedTexts:
    return ChangedTexts(path=path, before=before, after=after)


def replaced(*pairs: tuple[str, str], code: str = CODE) -> ChangedTexts:
    after = code
    for old, new in pairs:
        assert old in after
        after = after.replace(old, new)
    return changed(code, after)


EQUAL = {
    "a comment": replaced(("# rounded up", "# rounded up, as people count")),
    "a comment taken out": replaced(("  # rounded up", "")),
    "a docstring": replaced(("Return how many pages there are.", "Return the number of pages.")),
    "a new docstring": replaced(
        ("        return os.sep", '        """Return the length."""\n        return os.sep')
    ),
    "a docstring alone": changed("def f():\n    pass\n", 'def f():\n    """Do nothing."""\n'),
    "a docstring that only speaks of clicks": changed(
        'def f():\n    """Do it at a click."""\n', 'def f():\n    """Do it at each click."""\n'
    ),
    "form": replaced(("-(-total // size)", "-(\n        -total // size\n    )")),
    "quotes": changed("a = 'x'\n", 'a = "x"\n'),
    "no else behind a return": changed(
        "def f(n):\n    if n:\n        return 1\n    else:\n        return g(n)\n",
        "def f(n):\n    if n:\n        return 1\n    return g(n)\n",
    ),
    "two conditions as one": changed(
        "def f(n):\n    if n:\n        if n > 2:\n            return 3\n    return n\n",
        "def f(n):\n    if n and n > 2:\n        return 3\n    return n\n",
    ),
    "another name of a local variable": changed(
        "def f(a):\n    b = a\n    return b\n", "def f(a):\n    c = a\n    return c\n"
    ),
    "a return of nothing": changed("def f():\n    g()\n", "def f():\n    g()\n    return None\n"),
    "type hints": replaced(
        ("total, size)", "total: int, size: int) -> int"), ("unit=None", "unit: str | None = None")
    ),
    "hints of imported classes": replaced(("total, size)", "total: Path, size: list[Path]) -> Path")),
    "hints with an import for them": replaced(
        ("import os\n", "import os\nfrom typing import Any, Sequence\n"),
        ("total, size)", "total: Any, size: Sequence[int]) -> Any"),
    ),
    "a hint of an overload": changed(
        "import typing as t\n\n\n@t.overload\ndef f(x: int): ...\n",
        "import typing as t\n\n\n@t.overload\ndef f(x: int | str): ...\n",
    ),
    "lazy hints": replaced(
        ("import os\n", "from __future__ import annotations\n\nimport os\n"),
        ("total, size)", "total: Later, size: int | 'Later') -> int"),
    ),
    "the help of an option": changed(
        "add('-x', help='old %(default)s')\n", "add('-x', help='new: %(default)s')\n"
    ),
    "a variable": changed("limit = 3\n", "limit: int = 3\n"),
    "a README": changed("old", "new", "README.md"),
    "a page": changed("", "new", "docs/guide/start.rst"),
    "a license": changed("old", "new", "LICENSE"),
}

NOT_EQUAL = {
    "an operator": replaced(("//", "/")),
    "a default": replaced(("unit=None", "unit=0")),
    "a value in the help of an option": changed(
        "add('-x', help='%(default)s')\n", "add('-x', help='%(dest)s')\n"
    ),
    "help that is hidden": changed("add('-x', help='old')\n", "add('-x', help=SUPPRESS)\n"),
    "a string": replaced(("os.sep", "'os.sep'")),
    "a suppression": replaced(("# rounded up", "# type: ignore")),
    "a suppression of coverage": replaced(("# rounded up", "# pragma: no cover")),
    "a suppression beside a comment": replaced(("# rounded up", "# rounded up # noqa: E501")),
    "another encoding": changed("# a\nx = 1\n", "# -*- coding: utf-7 -*-\nx = 1\n"),
    "another interpreter": changed("#!/usr/bin/env python3\nx = 1\n", "#!/bin/sh\nx = 1\n"),
    "a hint that nobody knows": replaced(("total, size)", "total: Unknown, size)")),
    "a hint of a class further down": replaced(("total, size)", "total: Book, size)")),
    "a hint that does something": replaced(("total, size)", "total: print('x'), size)")),
    "a hint that cannot be joined": replaced(("total, size)", "total: int | 'Book', size)")),
    "an import that is never made": replaced(
        (
            "import os\n",
            "import os\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from x import Y\n",
        ),
        ("total, size)", "total: 'Y', size)"),
    ),
    "a future import after other code": changed("x = 1\n", "x = 1\nfrom __future__ import annotations\n"),
    "a name that is bound twice": changed(
        "def cast(x):\n    return x\n", "def cast(x):\n    return x\n\n\nfrom typing import cast\n"
    ),
    "another order of imports": changed(
        "from typing import Counter\nfrom collections import Counter\n",
        "from collections import Counter\nfrom typing import Counter\n",
    ),
    "a function beside a class": changed(
        "def f():\n    pass\n\n\ndef g(x):\n    pass\n",
        "def f():\n    pass\n\n\ndef g(x: f | int):\n    pass\n",
    ),
    "a class of the language that is none": changed(
        "list = 3\n\n\ndef g(x):\n    pass\n", "list = 3\n\n\ndef g(x: list[int]):\n    pass\n"
    ),
    "a global that becomes an error": changed(
        "def f():\n    global x\n    x = 1\n", "def f():\n    global x\n    x: int = 1\n"
    ),
    "a grammar": changed(
        'import ply.yacc\n\n\ndef p_e(p):\n    "e : e MINUS t"\n',
        'import ply.yacc\n\n\ndef p_e(p):\n    "e : t MINUS e"\n',
    ),
    "what a script depends on": changed(
        '# /// script\n# dependencies = ["a"]\n# ///\nx = 1\n',
        '# /// script\n# dependencies = ["b"]\n# ///\nx = 1\n',
    ),
    "a comment above the interpreter": changed(
        "#!/usr/bin/env python3\nx = 1\n", "# said\n#!/usr/bin/env python3\nx = 1\n"
    ),
    "another number that is equal": changed("def f():\n    return 1\n", "def f():\n    return True\n"),
    "a negative zero": changed("def f():\n    return 0.0\n", "def f():\n    return -0.0\n"),
    "what holds for assertions": changed("def f():\n    if __debug__:\n        g()\n", "def f():\n    g()\n"),
    "another name of a parameter": changed("def f(a):\n    return a\n", "def f(b):\n    return b\n"),
    "another variable": changed(
        "def f(a):\n    b = c = a\n    b += 1\n    return b\n",
        "def f(a):\n    b = c = a\n    b += 1\n    return c\n",
    ),
    "a local variable that is looked up": changed(
        "def f(a):\n    b = a\n    return locals()\n", "def f(a):\n    c = a\n    return locals()\n"
    ),
    "a comparison": changed("def f(n):\n    return n > 1\n", "def f(n):\n    return n >= 1\n"),
    "other ends of lines": changed("x = 1\n", "x = 1\r\n"),
    "a rule for another checker": replaced(("# rounded up", "# ty: ignore")),
    "prices in a folder of documents": changed("0.19", "0.99", "shop/docs/rates.txt"),
    "requirements of the documents": changed("sphinx", "evil", "docs/requirements.txt"),
    "a build of the documents": changed("a", "b", "docs/CMakeLists.txt"),
    "a script with the name of a document": changed("a", "b", "history"),
    "a role": changed("a", "b", ".claude/agents/security.md"),
    "a document of a package": changed("a", "b", "debian/changelog"),
    "a name that typing has not": replaced(("import os\n", "import os\nfrom typing import Nothing\n")),
    "an import that is gone": changed("from typing import cast\n\nx = cast(int, 1)\n", "x = cast(int, 1)\n"),
    "an import over another name": changed(
        "from mine import Text\n\nx = Text\n", "from mine import Text\nfrom typing import Text\n\nx = Text\n"
    ),
    "another import": replaced(("import os\n", "import os\nimport json\n")),
    "a field of a class": changed("class A:\n    x = 1\n", "class A:\n    x: int = 1\n"),
    "lazy hints of fields": changed(
        "class A:\n    x: int = 1\n", "from __future__ import annotations\n\n\nclass A:\n    x: int = 1\n"
    ),
    "a hint of a decorated function": changed(
        "@app.get\ndef f(x):\n    return x\n", "@app.get\ndef f(x: int):\n    return x\n"
    ),
    "the docstring of a decorated function": changed(
        '@app.command\ndef f():\n    """Old."""\n', '@app.command\ndef f():\n    """New."""\n'
    ),
    "a docstring that is read": changed('"""Old."""\nprint(__doc__)\n', '"""New."""\nprint(__doc__)\n'),
    "an example, which tests may run": changed(
        'def f():\n    """Return.\n\n    >>> f()\n    1\n    """\n    return 1\n',
        'def f():\n    """Return.\n\n    >>> f()\n    2\n    """\n    return 1\n',
    ),
    "a name that becomes local": changed(
        "x = 1\n\n\ndef f():\n    return x\n", "x = 1\n\n\ndef f():\n    x: int\n    return x\n"
    ),
    "a deleted module": ChangedTexts(path="a.py", before='"""A."""\n', after="", modes=("100644", "000000")),
    "a new module": ChangedTexts(path="a.py", before="", after='"""A."""\n', modes=("000000", "100644")),
    "a link in place of a file": ChangedTexts(
        path="a.py", before="x", after="(x)", modes=("100644", "120000")
    ),
    "a README that becomes a link": ChangedTexts(
        path="README.md", before="a", after="b", modes=("100644", "120000")
    ),
    "a file that is too large": ChangedTexts(path="a.py", before="# a", after="", is_whole=False),
    "bytes that are no UTF-8": ChangedTexts(path="a.py", before="# a", after="# \\xff", is_whole=False),
    "no Python": changed("x = (", "x = (("),
    "text that a program may read": changed("old", "new", "prompts/verifier.md"),
    "requirements": changed("a==1", "a==2", "requirements.txt"),
    "settings": changed("a: 1", "a: 2", "docs/conf.yaml"),
    "code in the documentation": changed("x = 1", "x = 2", "docs/conf.py"),
    "code of another language": changed("let a = 1;\n", "let a = 2;\n", "app.js"),
}


@pytest.mark.parametrize("change", EQUAL.values(), ids=EQUAL.keys())
def test_what_has_no_effect_is_the_same_behaviour(change: ChangedTexts) -> None:
    assert is_same_behaviour([change])
    assert is_same_behaviour([change, EQUAL["a README"]])


@pytest.mark.parametrize("change", NOT_EQUAL.values(), ids=NOT_EQUAL.keys())
def test_what_may_have_an_effect_is_not_the_same_behaviour(change: ChangedTexts) -> None:
    assert not is_same_behaviour([change])
    assert not is_same_behaviour([EQUAL["a README"], change])


def test_no_change_at_all_proves_nothing() -> None:
    assert not is_same_behaviour([])
