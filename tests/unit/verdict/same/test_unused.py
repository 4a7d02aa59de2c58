import ast

import pytest

from agentflow.verdict.same.equivalence import find_dropped_names, is_same_behaviour
from agentflow.workspace.mixed_tree import ChangedTexts

OWN = frozenset({"pager", "core", "tests"})
CODE = "import re\nimport os\n\n\ndef _old(a):\n    return a\n\n\ndef pages(a):\n    return re.sub(a, a, a)\n"


def is_same(before: str, after: str) -> bool:
    ast.parse(after)
    return is_same_behaviour([ChangedTexts(path="pager/core.py", before=before, after=after)], OWN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import re\nimport os\n", "import os\nimport re\n"),
        ("import re\nimport os\n", "import os, re\n"),
        ("import os\n", ""),
        ("def _old(a):\n    return a\n\n\n", ""),
    ],
)
def test_order_of_imports_and_what_nobody_needs(old: str, new: str) -> None:
    assert old in CODE
    assert is_same(CODE, CODE.replace(old, new))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import core\nimport re\nre.X\n", "import re\nimport core\nre.X\n"),
        ("import lib\nimport re\nre.X\n", "import re\nimport lib\nre.X\n"),
        ("import lib\n", ""),
        ("import os.path\n", ""),
        ("import readline\n", ""),
        ("from json import loads\n", ""),
        ("import os\nNAMES = ['os']\n", "NAMES = ['os']\n"),
        ("def old():\n    return 1\n", ""),
        ("@lib.hook\ndef _old():\n    return 1\n", ""),
        ("def _old(a=lib.start()):\n    return 1\n", ""),
        ("def _old():\n    return 1\nA = '_old'\n", "A = '_old'\n"),
        (
            "from math import pow\nfrom operator import pow\n",
            "from operator import pow\nfrom math import pow\n",
        ),
        ("from math import *\nimport os\nos.x\n", "import os\nfrom math import *\nos.x\n"),
    ],
)
def test_what_may_be_needed_stays(before: str, after: str) -> None:
    assert not is_same(before, after)


def test_names_that_are_gone() -> None:
    after = CODE.replace("import os\n", "").replace("def _old(a):\n    return a\n\n\n", "")
    assert find_dropped_names(CODE, after) == {"os", "_old"}


def test_a_description_of_a_project_is_no_behaviour() -> None:
    before = "[project]\nname = 'a'\ndescription = 'b'\n\n[tool.x]\ny = 1\n"
    for old, new, same in (("'b'", "'c'", True), ("'a'", "'c'", False), ("y = 1", "y = 2", False)):
        change = ChangedTexts(path="pyproject.toml", before=before, after=before.replace(old, new))
        assert is_same_behaviour([change]) is same
