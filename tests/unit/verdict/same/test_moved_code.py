"""Code that only stands elsewhere does the same, unless a name in it or of it means something else."""

from collections.abc import Mapping

import pytest

from agentflow.verdict.same.moved_code import find_moved

CIRCLE = "class Circle:\n    def __init__(self, radius):\n        self.radius = radius\n\n"
CIRCLE += "    def area(self):\n        return math.pi * self.radius ** 2\n"
SQUARE = "class Square:\n    def __init__(self, side):\n        self.side = side\n"
BASE = {
    "shapes/__init__.py": 'from .area import Circle, Square\n\n__all__ = ["Circle", "Square"]\n',
    "shapes/area.py": f"import math\n\n\n{SQUARE}\n\n{CIRCLE}",
    "tests/test_area.py": "from shapes.area import Circle\n\n\ndef test():\n"
    "    assert Circle(0).area() == 0\n",
}
ROUND = f'"""What is round."""\n\nimport math\n\n\n{CIRCLE}'
BACK = {**BASE, "shapes/area.py": f"from .round import Circle\n\n\n{SQUARE}", "shapes/round.py": ROUND}
AWAY = {
    "shapes/__init__.py": BASE["shapes/__init__.py"].replace(
        "Circle, Square\n", "Square\nfrom .round import Circle\n", 1
    ),
    "shapes/area.py": SQUARE,
    "shapes/round.py": ROUND,
    "tests/test_area.py": BASE["tests/test_area.py"].replace("shapes.area", "shapes.round"),
}


def is_moved(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return bool(find_moved(before, after))


def but(texts: Mapping[str, str], path: str, old: str, new: str) -> dict[str, str]:
    assert old in texts[path]
    return {**texts, path: texts[path].replace(old, new)}


def test_a_class_stands_elsewhere_and_is_imported_back() -> None:
    assert is_moved(BASE, BACK)
    assert (
        is_moved(BACK, but({**BACK, "shapes/area.py": BASE["shapes/area.py"]}, "shapes/round.py", ROUND, ""))
        is False
    )


def test_a_class_stands_elsewhere_and_all_take_it_from_there() -> None:
    plain = {**BASE, "shapes/__init__.py": ""}
    moved = {**AWAY, "shapes/__init__.py": ""}
    assert is_moved(plain, moved)
    assert not is_moved(plain, {**moved, "tests/test_area.py": BASE["tests/test_area.py"]})
    assert not is_moved(BASE, AWAY)  # somebody may find it by the name in a text


def test_a_function_moves_to_a_module_that_was_there() -> None:
    before = {**BASE, "shapes/round.py": "import math\n\n\ndef turn():\n    return math.tau\n"}
    assert is_moved(before, {**BACK, "shapes/round.py": f"{before['shapes/round.py']}\n\n{CIRCLE}"})


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("shapes/round.py", "** 2", "** 3"),
        ("shapes/round.py", "import math", "from . import fake as math"),
        ("shapes/round.py", "import math", "import math\n\nmath.pi = 3"),
        ("shapes/round.py", "import math\n", "import math\nimport os\n"),
        ("shapes/round.py", "self.radius = radius", "self.radius = radius or 1"),
        ("shapes/round.py", "What is round.", ">>> 1\n2\n"),
        ("shapes/area.py", "self.side = side", "self.side = side + 1"),
        ("shapes/area.py", "from .round import Circle", "from .square import Circle"),
        ("shapes/area.py", "from .round import Circle", "from .round import Circle, Square"),
        ("shapes/area.py", "import Circle\n", "import Circle\n\nCircle.radius = 1\n"),
        ("shapes/area.py", "import Circle\n", "import Circle\n\nCircle = None\n"),
        ("tests/test_area.py", "== 0", ">= 0"),
        ("tests/test_area.py", "from shapes.area", "from shapes.fake"),
        ("shapes/__init__.py", '"Circle", ', ""),
    ],
)
def test_anything_else_is_more_than_a_move(path: str, old: str, new: str) -> None:
    extra = {"shapes/fake.py": "pi = 3\n", "shapes/square.py": CIRCLE}
    assert is_moved({**BASE, **extra}, {**BACK, **extra})
    assert not is_moved({**BASE, **extra}, but({**BACK, **extra}, path, old, new))


@pytest.mark.parametrize(
    "text",
    [
        "import shapes.area\n\nprint(shapes.area.Circle.__module__)\n",
        "import pickle\n\npickle.loads(b'')\n",
        "from shapes.area import math\n",
        "import shapes\n\nprint(shapes.area.math)\n",
        "import shapes.area\n\nshapes.area.math = None\n",
        "from unittest.mock import patch\n\npatch('shapes.area.math')\n",
    ],
)
def test_where_code_stands_may_matter_to_others(text: str) -> None:
    assert not is_moved({**BASE, "shapes/use.py": text}, {**BACK, "shapes/use.py": text})


def test_names_of_the_new_home_may_mean_something_else() -> None:
    using = CIRCLE.replace("math.pi", "factor()")
    before = {"a.py": f"def factor():\n    return 3\n\n\n{using}", "b.py": ""}
    after = {"a.py": "from b import Circle\n\n\ndef factor():\n    return 3\n", "b.py": using}
    assert not is_moved(before, after)
    own = {"a.py": using.replace("factor()", "len(())"), "b.py": "len = print\n"}
    assert not is_moved(own, {"a.py": "from b import Circle\n", "b.py": own["b.py"] + "\n\n" + own["a.py"]})
    trying = "try:\n    from fast import len\nexcept ImportError:\n    pass\n\n\n"
    found = {"a.py": "from b import Circle\n", "b.py": trying + own["a.py"]}
    assert not is_moved({"a.py": own["a.py"], "b.py": trying}, found)
    free = {"a.py": own["a.py"] + "\n\nSIZE = 1\n", "b.py": "\n"}
    assert is_moved(free, {"a.py": "from b import Circle\n\nSIZE = 1\n", "b.py": own["a.py"]})


def test_a_new_module_stands_in_front_of_no_other() -> None:
    assert not is_moved(BASE, {**BACK, "shapes/area.py": "from math import Circle\n", "math.py": ROUND})
    before = {**BASE, "shapes/use.py": "import round\n"}
    assert not is_moved(before, {**BACK, "shapes/use.py": "import round\n"})
    before = {**BASE, "shapes/round/__init__.py": CIRCLE}
    assert not is_moved(before, {**BACK, "shapes/round/__init__.py": CIRCLE})


@pytest.mark.parametrize("name", ["test_area", "pytest_configure", "__getattr__", "setup_module"])
def test_what_programs_look_for_by_its_name_is_no_move(name: str) -> None:
    code = f"def {name}(other):\n    return 1\n"
    assert not is_moved({"a.py": code + "\n\nA = 1\n", "b.py": ""}, {"a.py": "A = 1\n", "b.py": code})
    code = code.replace(name, "find")
    assert is_moved({"a.py": code + "\n\nA = 1\n", "b.py": ""}, {"a.py": "A = 1\n", "b.py": code})
