import subprocess
from pathlib import Path

import pytest

from agentflow.verdict.probes.breaking import Marks
from agentflow.verdict.probes.other_results import find_new_functions
from agentflow.workspace.mixed_tree import ChangedTexts

MARKS = Marks(word="kwq", loaded="kwq", reached="kreached")
HEAD = """package main

import "errors"

var bad = errors.New("bad")

type P struct {
	X int
	name string
}

"""


def a_change(after: str, before: str = "") -> ChangedTexts:
    return ChangedTexts(path="a.go", before=HEAD + before, after=HEAD + after, modes=("100644", "100644"))


def wanted(after: str, before: str = "") -> list[str]:
    return [each.hunk.wanted for each in find_new_functions((a_change(after, before),))]


def run(folder: Path, code: str, call: str) -> str:
    (new,) = find_new_functions((a_change(code),))
    folder.joinpath("a.go").write_text(new.make_other(MARKS))
    main = f'package main\n\nimport "fmt"\n\nfunc main() {{ fmt.Printf("%v", fmt.Sprint({call})) }}\n'
    folder.joinpath("main.go").write_text(main)
    words = ["go", "run", "a.go", "main.go"]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    ("code", "call", "found"),
    [
        ("func f(a int) int { return a }\n", "[]int{f(2), f(0), f(-9)}", "[4 1 1]"),
        ('func f(a bool) (\n\tbool, // whether\n\tstring,\n) {\n\treturn a, "a"\n}\n', "f(true)", "falsea~"),
        ("func f(a int) (b, _ []byte, m map[int]bool) {\n\treturn []byte{1}, nil, map[int]bool{2: true}\n}\n",
         "f(1)", "[2 0] [0] map[0:false 2:false]"),
        ("func (p *P) f() P { return *p }\n", '(&P{1, "a"}).f()', "{2 a~}"),
        ("func f[T any](a T) (*T, func(T) T, map[int]struct{}) { return &a, nil, map[int]struct{}{1: {}} }\n",
         "f(1)", "<nil> <nil> map[]"),
        ("func f(a error) error { return a }\n", "f(nil), f(bad)", "<nil> <nil>"),
        ("func f(a int) (int, error) {\n\tif a > 1 {\n\t\treturn 3, bad\n\t}\n\treturn a, nil\n}\n",
         "func() int { a, _ := f(2); return a }(), func() int { a, _ := f(1); return a }()", "3 2"),
    ],
)  # fmt: skip
def test_a_new_function_returns_something_else_of_its_kind(
    tmp_path: Path, code: str, call: str, found: str
) -> None:
    assert run(tmp_path, code, call).replace(" ", "") == found.replace(" ", "")
    assert tmp_path.joinpath("kreached").exists()


@pytest.mark.needs("go")
def test_what_has_no_other_result_of_its_kind_is_not_marked(tmp_path: Path) -> None:
    assert run(tmp_path, "func f(a *int) (*int, chan int) { return a, nil }\n", "f(nil)") == "<nil> <nil>"
    assert not tmp_path.joinpath("kreached").exists()


def test_new_functions_and_methods_are_found() -> None:
    before = "func f() int { return 0 }\n\nfunc g(a int) int { return a }\n"
    after = "func f() int { return bad }\n\nfunc (s *Stack[T]) g() (T, bool) {\n\treturn s.at, true\n}\n"
    assert wanted(after, before) == ["that checks what `Stack.g` returns"]


@pytest.mark.parametrize(
    "code",
    [
        "func f() {}\n",
        'func f(a int) string {\n\tif a > 1 {\n\t\treturn "a"\n\t}\n\treturn "a"\n}\n',
        "func f(a int) (int, error) { return 0, nil }\n",
        "func (p *P) Error() string { return p.name }\n",
        "func (p *P) f() *P {\n\tp.X++\n\treturn p\n}\n",
        "func f(a int) int\n",
        "var f = func(a int) int { return a }\n",
    ],
)
def test_functions_without_a_result_that_tells_are_left_alone(code: str) -> None:
    assert wanted(code) == []


def test_a_function_that_moved_is_not_new() -> None:
    code = "func f(a int) int {\n\treturn a\n}\n"
    moved = (a_change("", code), a_change(code).replace(path="new.go"))
    assert list(find_new_functions(moved)) == []
