import pytest

from agentflow.verdict.probes.breaking import give_defaults

PYTHON = """LIMIT = 3


def a():
    \"\"\"Say one.\"\"\"
    if LIMIT:
        return 1


class B:
    def b(self): return 2

    async def c(self):
        yield 3
"""


def test_each_function_of_python_gives_nothing_while_a_test_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = give_defaults("a.py", PYTHON)
    assert text is not None
    found: dict[str, object] = {}
    exec(text, found)  # code of this test
    for name in ("a", "B().b"):
        assert eval(f"{name}()", found) is None
        with monkeypatch.context() as context:
            context.delenv("PYTEST_CURRENT_TEST")
            assert eval(f"{name}()", found)
    assert give_defaults("a.py", "A = 1\n") is None


@pytest.mark.parametrize(
    ("path", "text", "broken"),
    [
        ("a.js", "function f(a) {\n  return 1\n}\n", "function f(a) {return; "),
        ("a.ts", "class A {\n  f(): number {\n    return 1\n  }\n}\n", "f(): number {return undefined!; "),
        ("a.go", "package a\n\nfunc F() int {\n\treturn 1\n}\n", "func F() int {return *new(int); "),
        (
            "a.go",
            "package a\n\nfunc F() (a, b *T, e error) {\n\tg()\n}\n",
            "return *new(*T), *new(*T), *new(error);",
        ),
        ("a.go", "package a\n\nfunc F() {\n\tg()\n}\n", "func F() {return ; "),
        (
            "a.rs",
            "impl A {\n    fn f(&self) -> i64 {\n        1\n    }\n}\n",
            "i64 {return unsafe { std::mem::zeroed() };",
        ),
        (
            "A.java",
            "class A {\n    int f() {\n        return 1;\n    }\n}\n",
            "{if (true) throw new RuntimeException();",
        ),
        ("a.rb", "def f(a)\n  a + 1\nend\n", "return nil; a + 1"),
        ("a.sh", "f() {\n  g\n}\n", "f() {return 0; "),
    ],
)
def test_each_function_of_another_language_gives_a_default(path: str, text: str, broken: str) -> None:
    found = give_defaults(path, text)
    assert found is not None
    assert broken in found


def test_an_unknown_language_is_left_alone() -> None:
    assert give_defaults("a.zig", "fn f() void {}\n") is None


@pytest.mark.parametrize(
    ("path", "text", "other"),
    [
        ("a.py", "def f(a):\n    return a\n", "return True"),
        ("a.js", "function f(a) {\n  return 1\n}\n", "{return true; "),
        (
            "a.go",
            "package a\n\nfunc F() (bool, string, error) {\n\treturn g()\n}\n",
            'return true, "other", *new(error);',
        ),
        ("a.rb", "def f(a)\n  a + 1\nend\n", "return true; "),
    ],
)
def test_what_expects_a_default_gets_another_result(path: str, text: str, other: str) -> None:
    assert other in (give_defaults(path, text, is_other=True) or "")
    assert (
        give_defaults("A.java", "class A {\n    int f() {\n        return 1;\n    }\n}\n", is_other=True)
        is None
    )
