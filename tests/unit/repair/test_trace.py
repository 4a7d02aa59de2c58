import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agentflow.repair.watch import Tracer

CODE = """def total(n):
    found = 0
    for i in range(n):
        found += i
    return found


is_even = lambda n: n % 2 == 0
"""
HEAD, LOOP = {1, 2, 3, 5}, {1, 2, 3, 4, 5}


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "sums.py"
    path.write_text(CODE)
    spec = importlib.util.spec_from_file_location("sums", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def tracer(module: ModuleType) -> Iterator[Tracer]:
    tracer = Tracer(lambda path: "sums.py" if path == module.__file__ else None)
    yield tracer
    tracer.end()


def test_each_test_has_the_lines_it_runs(module: ModuleType, tracer: Tracer) -> None:
    for name, number in (("first", 3), ("second", 0), ("third", 2)):
        tracer.begin(name)
        module.total(number)
        tracer.end()
    tracer.begin("short")
    module.is_even(2)
    tracer.end()
    module.total(5)
    lines = {name: {line for _, line in found} for name, found in tracer.report()["lines"].items() if name}
    assert lines == {"first": LOOP, "second": HEAD, "third": LOOP, "short": {8}}


def test_values_have_their_types(module: ModuleType, tracer: Tracer) -> None:
    tracer.begin("first")
    module.total(1)
    tracer.end()
    assert tracer.report()["types"]["sums.py:1"] == {
        "n": ["int"],
        "found": ["int"],
        "i": ["int"],
        "return": ["int"],
    }
