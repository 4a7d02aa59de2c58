"""The tests that changed are known by name."""

import pytest

from agentflow.verdict.changed_tests import changed_tests

KEPT = "LIMIT = 3\n\n\ndef good(x):\n    assert x\n\n\ndef test_a():\n    good(f())\n"


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("", "def test_a():\n    assert f()\n", {"test_a"}),
        ("", "LIMIT = 3\n\n\ndef test_a():\n    assert f() < LIMIT\n", {"test_a"}),
        (KEPT, f"import g\n{KEPT}\n\ndef test_b():\n    assert g()\n", {"test_b"}),
        (KEPT, KEPT.replace("good(f())", "good(f())\n    assert g()"), {"test_a"}),
        (KEPT, f"# said\n{KEPT}", set()),
        (
            "class A(B):\n    def test_a(self):\n        self.assertTrue(f())\n",
            (
                "class A(B):\n    def test_b(self):\n        self.assertTrue(g())\n\n"
                "    def test_a(self):\n        self.assertTrue(f())\n"
            ),
            {"test_b"},
        ),
        ("def test_a():\n    assert f()\n", "def test_b():\n    assert f()\n", {"test_b"}),
    ],
)
def test_the_tests_that_changed_are_named(before: str, after: str, names: set[str]) -> None:
    assert changed_tests(before, after) == names


NEW = "\n\ndef test_b():\n    assert g()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (KEPT, KEPT.replace("assert x", "pass") + NEW),
        (KEPT, KEPT.replace("LIMIT = 3", "LIMIT = 4") + NEW),
        (KEPT, KEPT + "\n\npytestmark = skip\n" + NEW),
        (KEPT, KEPT + "\n\ndef test_b():\n    g()\n"),
        (KEPT, KEPT + "\n\nclass A(B):\n    x = 1\n\n    def test_b(self):\n        assert g()\n"),
        (
            "class A(B):\n    def test_a(self):\n        assert f()\n",
            (
                "class A(C):\n    def test_a(self):\n        assert f()\n\n"
                "    def test_b(self):\n        assert g()\n"
            ),
        ),
        (KEPT, "def test_a(: pass\n"),
        ("def test_a(: pass\n", KEPT),
    ],
)
def test_tests_beside_another_change_are_not_named(before: str, after: str) -> None:
    assert changed_tests(before, after) == frozenset()
