import pytest

from agentflow.verdict.probes.breaking import break_functions

PYTHON = "LIMIT = 3\n\n\ndef a():\n    if LIMIT:\n        return 1\n\n\nclass B:\n    def b(self): return 2\n"


def test_each_function_of_python_raises_while_a_test_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = break_functions("a.py", PYTHON)
    assert text is not None
    found: dict[str, object] = {}
    exec(text, found)  # code of this test
    for name in ("a", "B().b"):
        with pytest.raises(RuntimeError, match="broken on purpose"):
            eval(f"{name}()", found)
        with monkeypatch.context() as context:
            context.delenv("PYTEST_CURRENT_TEST")
            assert eval(f"{name}()", found)
    assert break_functions("a.py", "A = 1\n") is None


@pytest.mark.parametrize(
    ("path", "text", "broken"),
    [
        ("a.js", "function f(a) {\n  return 1\n}\n", 'function f(a) { throw new Error("broken on purpose");'),
        ("a.ts", "class A {\n  f(): number {\n    return 1\n  }\n}\n", "f(): number { throw new Error"),
        (
            "a.go",
            "package a\n\nfunc F() int {\n\treturn 1\n}\n",
            'func F() int { panic("broken on purpose");',
        ),
        ("a.rs", "impl A {\n    fn f(&self) -> i64 {\n        1\n    }\n}\n", "fn f(&self) -> i64 { panic!"),
        ("a.java", "class A {\n    int f() {\n        return 1;\n    }\n}\n", "int f() { if (true) throw"),
    ],
)
def test_each_function_of_another_language_fails_first(path: str, text: str, broken: str) -> None:
    found = break_functions(path, text)
    assert found is not None
    assert broken in found


def test_an_unknown_language_is_left_alone() -> None:
    assert break_functions("a.zig", "fn f() void {}\n") is None
