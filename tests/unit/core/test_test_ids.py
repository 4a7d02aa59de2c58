import pytest

from agentflow.core.test_ids import match_cases

CASES = {
    "a clock": (
        {"t.py::a[1:02]": "passed", "t.py::b": "passed"},
        {"t.py::a[1:01]": "failed"},
        {"t.py::a[1:02]": "t.py::a[1:01]"},
    ),
    "the same outcome first": (
        {"t.py::a[x1]": "failed", "t.py::a[x2]": "passed"},
        {"t.py::a[y1]": "passed", "t.py::a[y2]": "failed"},
        {"t.py::a[x1]": "t.py::a[y2]", "t.py::a[x2]": "t.py::a[y1]"},
    ),
    "a fixed name beside": (
        {"t.py::a[x]": "passed", "t.py::a[2]": "failed"},
        {"t.py::a[x]": "failed", "t.py::a[1]": "passed"},
        {"t.py::a[2]": "t.py::a[1]"},
    ),
    "fixed names": ({"t.py::a[1]": "failed"}, {"t.py::a[1]": "passed"}, {}),
    "one case more": ({"t.py::a[2]": "passed", "t.py::a[3]": "passed"}, {"t.py::a[1]": "passed"}, {}),
    "a changed file": ({"new.py::a[2]": "passed"}, {"new.py::a[1]": "passed"}, {}),
}


@pytest.mark.parametrize(("now", "before", "found"), CASES.values(), ids=CASES)
def test_cases_without_a_fixed_name_are_known_by_their_number(
    now: dict[str, str], before: dict[str, str], found: dict[str, str]
) -> None:
    assert match_cases(now, before, ["new.py"]) == found
