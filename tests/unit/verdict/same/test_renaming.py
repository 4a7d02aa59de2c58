import re
from collections.abc import Mapping

import pytest

from agentflow.verdict.same.naming import find_renaming, is_renamed
from agentflow.workspace.mixed_tree import ChangedTexts

CODE = """def pages(total, size):
    return -(-total // size)


def last(total):
    return pages(total, 10)
"""
SHOW = """from . import core


def show(total):
    # pages are counted
    return core.pages(total, 3) + core.last(total)
"""
BASE = {
    "pager/__init__.py": "from pager.core import pages\n\n__all__ = ['pages']\n",
    "pager/core.py": CODE,
    "pager/show.py": SHOW,
    "tests/test_core.py": "from pager.core import pages\n\n\ndef test():\n    assert pages(40, 10) == 4\n",
    "README.md": "Call `pages(40, 10)`.\n",
    "pyproject.toml": "[project]\nname = 'pager'\n",
}


def swapped(texts: Mapping[str, str], **names: str) -> dict[str, str]:
    found = dict(texts)
    for old, new in names.items():
        found = {path: text.replace(old, new) for path, text in found.items()}
    return found


def tried(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    differing = [path for path in before if before[path] != after.get(path)]
    changes = (ChangedTexts(path=path, before=before[path], after=after.get(path, "")) for path in differing)
    names = find_renaming(tuple(changes))
    return tuple(sorted(names)) if names and is_renamed(before, after, names) else ()


def test_a_function_with_callers_tests_and_documents_is_renamed() -> None:
    assert tried(BASE, swapped(BASE, pages="count_pages")) == ("pages",)
    assert tried(BASE, swapped(BASE, pages="count_pages", last="last_page")) == ("last", "pages")


def test_a_test_is_renamed_with_its_function() -> None:
    before = {**BASE, "tests/test_core.py": BASE["tests/test_core.py"].replace("test()", "test_pages()")}
    assert tried(before, swapped(before, pages="count_pages")) == ("pages", "test_pages")
    assert tried(before, swapped(before, test_pages="check_pages")) == ()


def test_files_of_packages_are_no_functions() -> None:
    before = {
        **BASE,
        "pager/data.py": "from importlib import resources\nfrom importlib.metadata import version\n",
    }
    assert tried(before, swapped(before, pages="count_pages")) == ("pages",)


def test_a_docstring_says_the_name_too_and_other_words_of_texts_are_no_names() -> None:
    before = {**BASE, "pager/core.py": f'"""How many pages there are."""\n\n\n{CODE}'}
    assert tried(before, swapped(before, pages="count_pages")) == ("pages",)
    assert tried(before, swapped(before, many="few")) == ()
    assert tried(BASE, swapped(BASE, Call="Use")) == ()


def test_a_private_function_may_have_no_callers() -> None:
    before = {"pager/core.py": "def _pages():\n    return 1\n"}
    assert tried(before, swapped(before, _pages="_count")) == ("_pages",)


SHAPES = """class Broken(ValueError):
    pass


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def wider(self, by=1):
        return Circle(radius=self.radius + by)


def check(shape: Circle) -> Circle:
    if not isinstance(shape, Circle):
        raise Broken("none")
    return shape
"""
DRAWN = {
    "shapes.py": SHAPES,
    "tests/test_shapes.py": "import pytest\n\nfrom shapes import Broken, Circle, check\n\n\n"
    '@pytest.mark.parametrize("radius, by", [(1, 2)])\ndef test_all(radius, by):\n'
    "    assert check(Circle(radius).wider(by))\n    with pytest.raises(Broken):\n        check(3)\n",
}


@pytest.mark.parametrize("name", ["Circle", "Broken", "radius", "by", "shape"])
def test_a_class_and_a_parameter_are_renamed(name: str) -> None:
    after = {path: re.sub(rf"\b{name}\b", f"{name}_of", text) for path, text in DRAWN.items()}
    assert tried(DRAWN, after) == ((name,) if len(name) > 2 else ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Circle", "from shapes import Circle\n\nMADE = {c.__name__: c for c in [Circle]}\n"),
        ("Circle", "import lib\n\n\nclass Circle(lib.Model):\n    pass\n"),
        ("radius", "import json\nfrom shapes import Circle\n\nprint(Circle(**json.loads(input())))\n"),
        ("radius", "def size(shape):\n    return vars(shape)\n"),
        ("shape", "import lib\n\n\n@lib.command\ndef draw(shape):\n    return shape\n"),
        (
            "shape",
            "import lib\n\n\nclass View(lib.View):\n    def draw(self, shape):\n        return shape\n",
        ),
    ],
)
def test_a_name_that_others_may_use_is_no_renaming(name: str, text: str) -> None:
    before = {**DRAWN, "more.py": text}
    after = {path: re.sub(rf"\b{name}\b", f"{name}_of", text) for path, text in before.items()}
    assert tried(before, after) == ()


def base(path: str, text: str) -> dict[str, str]:
    return {**BASE, path: text}


REFUSED = {
    "a string": base("pager/names.py", "LABEL = 'pages'\n"),
    "an f-string": base("pager/names.py", "def label(n):\n    return f'{n} pages'\n"),
    "settings": base("pyproject.toml", "[project.scripts]\npager = 'pager.core:pages'\n"),
    "a template": base("pager/page.html", "{{ pages }}\n"),
    "a method": base(
        "pager/names.py", "import lib\n\n\nclass Book(lib.Book):\n    def pages(self):\n        return 3\n"
    ),
    "a decorated function": base("pager/core.py", "import cli\n\n\n@cli.command\n" + CODE),
    "a look by name": base("pager/names.py", "def find(module, name):\n    return getattr(module, name)\n"),
    "an import by name": base("pager/names.py", "import importlib\n"),
    "names of all kinds": base("pager/names.py", "def find(f):\n    return f.__name__\n"),
    "all names of a module": base("pager/names.py", "from lib import *\n"),
    "the other name in other letters": base("pager/names.py", "def label():\n    \uff43ount_pages = 3\n"),
    "no Python": base("pager/names.py", "def (:\n"),
    "a file of the name": base("pager/pages.py", ""),
}


@pytest.mark.parametrize("before", REFUSED.values(), ids=REFUSED)
def test_what_others_may_know_by_name_is_not_renamed(before: dict[str, str]) -> None:
    after = {path: text.replace("pages", "count_pages") for path, text in before.items()}
    assert tried(before, after) == ()


OTHERS = {
    "two names swapped": swapped(BASE, pages="last_", last="pages", pages_="last"),
    "one place left": {**swapped(BASE, pages="count_pages"), "pager/show.py": BASE["pager/show.py"]},
    "a comment left": {**swapped(BASE, pages="count_pages"), "pager/show.py":
                       BASE["pager/show.py"].replace("core.pages", "core.count_pages")},
    "a name that stood there": swapped(BASE, pages="show"),
    "two names made one": swapped(BASE, pages="count", last="count"),
    "two names for one": {**swapped(BASE, pages="count_pages"), "README.md": "Call `all_pages(40, 10)`.\n"},
    "a builtin": swapped(BASE, pages="print"),
    "a word of the language": swapped(BASE, pages="match"),
    "a hook of the runner": swapped(BASE, pages="pytest_configure"),
    "what others call": swapped(BASE, pages="lambda_handler"),
    "more than a name": swapped(BASE, pages="count_pages", **{"// size": "// 10"}),
    "a number": swapped(BASE, **{"40": "50"}),
    "a new file": {**swapped(BASE, pages="count_pages"), "new.py": ""},
    "nothing": dict(BASE),
}  # fmt: skip


@pytest.mark.parametrize("after", OTHERS.values(), ids=OTHERS)
def test_anything_else_is_no_renaming(after: dict[str, str]) -> None:
    assert tried(BASE, after) == ()


def test_a_file_that_is_no_plain_text_is_not_renamed() -> None:
    after = swapped(BASE, pages="count_pages")
    changes = [
        ChangedTexts(path=path, before=BASE[path], after=after[path])
        for path in BASE
        if BASE[path] != after[path]
    ]
    changes[0] = changes[0].replace(modes=("100644", "100755"))
    assert find_renaming(tuple(changes)) == {}
