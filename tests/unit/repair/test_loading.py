"""Whatever of an edit is loaded already, and whoever reads its file, each test meets the edited code."""

from pathlib import Path

import pytest

from tests.support.boxes import boxed
from tests.unit.repair.stage import PYTEST, Stage

CODE = "LIMIT = 4\n\n\ndef is_full(count):\n    return count >= LIMIT\n"
FULL = """from shop.core import is_full


def test_full():
    assert [is_full(each) for each in (2, 3, 4)] == [False, True, True]
"""
READING = """import subprocess
import sys
from pathlib import Path

import shop.core

NUMBERS = "import shop.core; print([shop.core.is_full(each) for each in (3, 4, 5)])"


def test_full():
    assert [shop.core.is_full(each) for each in (3, 4, 5)] == [False, True, True]


def test_process():
    said = subprocess.run([sys.executable, "-c", NUMBERS], capture_output=True, check=True, text=True).stdout
    assert said == "[False, True, True]\\n"


def test_text():
    names = {}
    exec(Path(shop.core.__file__).read_text(), names)
    assert [names["is_full"](each) for each in (3, 4, 5)] == [False, True, True]
"""


@pytest.mark.parametrize("conftest", ["", "import shop.core\n"], ids=["alone", "loaded by a conftest"])
def test_an_edit_outside_of_functions_is_tried_whatever_is_loaded(tmp_path: Path, conftest: str) -> None:
    files = {"shop/__init__.py": "", "shop/core.py": CODE, "tests/test_core.py": FULL}
    stage = Stage(tmp_path, {**files, "conftest.py": conftest}, PYTEST)
    stage.mend(boxed(tmp_path))
    assert set(stage.changed()) == {"shop/core.py"}
    assert stage.changed()["shop/core.py"][1] in (["LIMIT = 3"], ["return count + 1 >= LIMIT"])


def test_an_edit_of_a_loaded_function_is_there_for_all_that_read_its_file(tmp_path: Path) -> None:
    wrong = CODE.replace(">=", ">")
    files = {"shop/__init__.py": "", "shop/core.py": wrong, "tests/test_core.py": READING, "conftest.py": ""}
    stage = Stage(tmp_path, files, PYTEST)
    stage.mend(boxed(tmp_path))
    assert stage.changed() == {"shop/core.py": (["return count > LIMIT"], ["return count >= LIMIT"])}


WORDS = """MARKS = {"low": 1, "mid": 2, "high": 7}
TOP = 5
BOTH = (TOP, 2)


class Scale:
    def __init__(self, top=TOP):
        self.top = top

    def mark(self, name):
        return min(MARKS[name], self.top)
"""
MARKS = """from shop import core
from shop.core import MARKS as marks
from shop.core import *


def test_marks():
    assert [Scale(9).mark(name) for name in ("low", "mid", "high")] == [1, 2, 6]
    assert (marks["high"], MARKS["high"], core.MARKS["high"]) == (6, 6, 6)


def test_top():
    assert (Scale().top, core.BOTH) == (4, (4, 2))
"""


def test_a_constant_is_edited_for_all_that_took_it_also_while_the_code_was_loaded(tmp_path: Path) -> None:
    files = {"shop/__init__.py": "", "shop/core.py": WORDS, "tests/test_core.py": MARKS, "conftest.py": ""}
    stage = Stage(tmp_path, files, PYTEST)
    stage.mend(boxed(tmp_path))
    assert stage.changed() == {
        "shop/core.py": (
            ['MARKS = {"low": 1, "mid": 2, "high": 7}', "TOP = 5"],
            ['MARKS = {"low": 1, "mid": 2, "high": 6}', "TOP = 4"],
        )
    }
