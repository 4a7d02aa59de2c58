import pytest

from agentflow.core.test_ids import find_beside, is_test_in, match_cases

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


BESIDE = {
    "unittest": ("tests.m.Max.test_same", ["tests.m.Max.test_none"], "tests.m.Min.test_{}"),
    "JUnit": ("acme.MaxTest::same", ["acme.MaxTest::none"], "acme.MinTest::{}"),
    "jest": ("m.test.js::max > a > b. c", ["m.test.js::max > a > d"], "m.test.js::max > {}"),
    "Rust": ("acme::max::tests::same", ["acme::max::tests::none"], "acme::min::tests::{}"),
    "a class of which all are": ("t.M.test_1", [], "t.M.test_{}"),
    "nothing beside": ("t.M.test_1", [], "t.N.test_{}"),
}


@pytest.mark.parametrize(("test", "beside", "other"), BESIDE.values(), ids=BESIDE)
def test_the_tests_beside_one_are_those_of_its_class(test: str, beside: list[str], other: str) -> None:
    known = [test, *beside, *map(other.format, range(2, 6))]
    assert find_beside([test], known) == ({test, *beside} if beside else set())


@pytest.mark.parametrize(
    ("test", "path"),
    [
        ("tests/test_m.py::test_a", "tests/test_m.py"),
        ("tests.test_m.Max.test_a", "tests/test_m.py"),
        ("acme.MaxTest::same", "src/test/java/acme/MaxTest.java"),
        ("acme.MaxTest$Inner::same", "src/test/java/acme/MaxTest.java"),
    ],
)
def test_a_test_is_in_the_file_that_its_id_names(test: str, path: str) -> None:
    assert is_test_in(test, [path])
    assert not is_test_in(test, ["Makefile", "acme/Max.java", "tests/test_n.py"])
