import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from agentflow.core.errors import InvalidInput, OutsideWorkspace
from agentflow.core.regex import compile_glob
from agentflow.tools.search import (
    ENGINES,
    GLOB,
    GREP,
    Engine,
    Query,
    compile_regex,
    find_lines,
    run_git_grep,
    run_python_re,
    run_ripgrep,
    split_batches,
)
from agentflow.workspace.path_guard import PathGuard
from tests.unit.tools.bench import Bench

needs_ripgrep = pytest.mark.skipif(which("rg") is None, reason="ripgrep is not installed")
FAST = (pytest.param(run_ripgrep, marks=needs_ripgrep), pytest.param(run_git_grep))


@pytest.fixture
def tree(bench: Bench) -> Bench:
    contents: dict[str, str | bytes] = {
        "a.py": "def foo():\n    return 'foo'\n\nx = foo\n",
        "src/b.py": "FOO = 1\n# no more\n",
        "src/deep/c.ts": "const foo = 1;\n",
        "src-2/d.py": "foo\n",
        "crlf.txt": "foo\r\nbar\r\nfoo bar\r\n\r\nlast foo\r",
        "latin.txt": b"caf\xe9 foo\n",
        "utf.txt": "café foo\nÉCOLE\n\u00a0foo\n",
        "bom.txt": "\ufefffoo\n",
        "empty.txt": "",
        "blank.txt": "\n\n",
        "noeol.txt": "a\nfoo",
        "brackets.txt": "x[0] {1,2} a.b a+b $foo ^foo \\d foo|bar (foo) -foo --foo\n",
        "bin.dat": b"foo\0foo\n",
        "late.dat": b"foo\n" * 3000 + b"\0foo\n",
        ".hidden/e.py": "foo\n",
        "odd names/a b.txt": "foo\n",
        "odd names/co:lon:1:.txt": "foo\n",
        "odd names/-dash.txt": "foo\n",
        "odd names/qu\"o'te\\.txt": "foo\n",
        "odd names/ünï.txt": "foo\n",
        "odd names/*.txt": "foo\n",
        "-": "foo\n",
        "--pre=x": "foo\n",
        "tab\there.txt": "foo\n",
        "ignored/f.py": "foo\n",
        "tracked.log": "foo\n",
        ".gitattributes": "*.ts binary\n*.py -diff\n",
        "long.txt": "y" * 3000 + "foo\n",
    }
    for path, content in contents.items():
        bench.file(path, content)
    (bench.root / "link.py").symlink_to("a.py")
    (bench.root / "broken").symlink_to("nowhere")
    (bench.root / "folder").symlink_to("src")
    subprocess.run(["git", "add", "-A"], cwd=bench.root, check=True)
    bench.file(".gitignore", "ignored/\n*.log\n")
    bench.file("ignored/g.py", "foo\n")
    bench.file(".ignore", "a.py\n")
    bench.file(".rgignore", "src/\n")
    bench.file("untracked.py", "foo\n")
    bench.file(".claude/agentflow/t/brief.md", "foo\n")
    (bench.root / "tracked gone.py").write_text("foo\n")
    subprocess.run(["git", "add", "tracked gone.py"], cwd=bench.root, check=True)
    (bench.root / "tracked gone.py").unlink()
    for setting in (
        "color.grep=always",
        "grep.column=true",
        "grep.fullName=true",
        "grep.patternType=fixed",
        "core.quotePath=true",
        "grep.lineNumber=false",
    ):
        subprocess.run(["git", "config", *setting.split("=")], cwd=bench.root, check=True)
    return bench


def query(bench: Bench, pattern: str, *, ignore_case: bool = False, **changes: Any) -> Query:
    regex = compile_regex(pattern, ignore_case=ignore_case, multiline=changes.get("multiline", False))
    return Query(workspace=PathGuard(bench.root), regex=regex, **changes)


PATTERNS = (
    "foo",
    "^foo",
    "foo$",
    "^foo$",
    "^$",
    "^",
    "bar$",
    r"\bfoo\b",
    r"caf\w",
    r"^\s+foo",
    r"^\Sfoo$",
    r"\d+",
    "[a-c]+[^a-z]",
    "foo|bar",
    "(?:foo) bar",
    "(?P<name>fo+)",
    "(?i)FOO",
    "fo{2}",
    "a.b",
    r"a\.b",
    r"x\[0\]",
    r"\$foo",
    "-foo",
    "--foo",
    "--pre=cat",
    "-e",
    "é",
    "y{2999}foo",
    "no such text anywhere",
    ".",
    "[^x]$",
    r"\W$",
)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_engines_find_the_same_lines(tree: Bench, engine: Engine, *, ignore_case: bool) -> None:
    asked = {pattern: query(tree, pattern, ignore_case=ignore_case) for pattern in PATTERNS}
    found = {pattern: engine(each) for pattern, each in asked.items()}
    assert [pattern for pattern, lines in found.items() if lines is None] == []
    assert found == {pattern: run_python_re(each) for pattern, each in asked.items()}


def test_the_answer_itself_is_right(tree: Bench) -> None:
    found = {line.path for line in find_lines(query(tree, "^foo"))}
    assert found == {
        *("crlf.txt", "noeol.txt", ".hidden/e.py", "src-2/d.py", "-", "--pre=x", "untracked.py"),
        *("odd names/a b.txt", "odd names/co:lon:1:.txt", "odd names/-dash.txt", "odd names/*.txt"),
        *("odd names/qu\"o'te\\.txt", "odd names/ünï.txt", "tracked.log", "ignored/f.py", "late.dat"),
    }
    crlf = [line.text for line in find_lines(query(tree, "foo$")) if line.path == "crlf.txt"]
    assert crlf == ["foo", "last foo"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"below": "src"}, ["src/deep/c.ts"]),
        ({"below": "src/deep/c.ts"}, ["src/deep/c.ts"]),
        ({"below": "odd names/*.txt"}, ["odd names/*.txt"]),
        ({"paths": compile_glob("*.ts")}, ["src/deep/c.ts"]),
        ({"paths": compile_glob("src/**"), "below": "src"}, ["src/deep/c.ts"]),
        ({"below": "ignored/g.py"}, ["ignored/g.py"]),
        ({"below": ".claude/agentflow/t/brief.md"}, [".claude/agentflow/t/brief.md"]),
        ({"below": ".claude"}, []),
        ({"below": "bin.dat"}, []),
    ],
)
def test_engines_look_in_the_same_places(
    tree: Bench, engine: Engine, where: dict[str, Any], found: list[str]
) -> None:
    answer = engine(query(tree, "foo", **where))
    assert answer is None or [line.path for line in answer] == found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"foo(?!\s)", ["a.py", "noeol.txt"]),
        (r"(?<!\w)x = ", ["a.py"]),
        (r"\Aa$", ["noeol.txt"]),
        (r"(a)\1", []),
        (r"foo\nbar", []),
        (r"foo\r", []),
        ("[&&x]oo", []),
        (r"\<foo", []),
        ("x{,1}y{2999}", ["long.txt"]),
    ],
)
def test_what_engines_read_differently_is_left_to_python(
    tree: Bench, pattern: str, expected: list[str]
) -> None:
    asked = query(tree, pattern)
    assert run_ripgrep(asked) is None
    assert run_git_grep(asked) is None
    assert {*expected} <= {line.path for line in find_lines(asked)}
    assert find_lines(asked) == run_python_re(asked)


def test_an_engine_that_is_absent_is_passed_over(
    tree: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(str(which("git")))
    expected = find_lines(query(tree, "foo"))
    monkeypatch.setenv("PATH", str(programs))
    assert run_ripgrep(query(tree, "foo")) is None
    assert find_lines(query(tree, "foo")) == expected


def test_names_are_handed_over_in_batches_and_never_as_options() -> None:
    names = ["-", "--pre=x", *(f"{number}é.txt" for number in range(1000))]
    handed = list(split_batches(names, 500))
    assert [name for batch in handed for name in batch] == [f"./{name}" for name in names]
    assert max(len(os.fsencode("\0".join(batch))) for batch in handed) < 600
    assert list(split_batches([])) == []


def test_multiline_matches_show_all_their_lines(bench: Bench) -> None:
    bench.file("a.txt", "x\r\nbegin\r\nmiddle\r\nend\r\ny\r\nbegin end\n")
    output = bench(GREP, pattern="begin.*?end$", multiline=True, output_mode="content").content
    assert output.splitlines() == ["a.txt:2:begin", "a.txt:3:middle", "a.txt:4:end", "a.txt:6:begin end"]
    assert bench(GREP, pattern=r"\Z", multiline=True).content == "a.txt"


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2,1}", r"\q", "(?P<x", "[[:alpha:]]"])
def test_a_pattern_that_is_none_gives_one_clear_error(bench: Bench, pattern: str) -> None:
    with pytest.raises(InvalidInput, match=r"^pattern"):
        bench(GREP, pattern=pattern)


def test_grep_shows_files_counts_or_lines(bench: Bench) -> None:
    bench.file("b.txt", "Foo\nfoo\nbar\n")
    bench.file("a/c.txt", "foo\n")
    assert bench(GREP, pattern="foo").content == "a/c.txt\nb.txt"
    assert bench(GREP, pattern="foo", output_mode="count", **{"-i": True}).content == "a/c.txt:1\nb.txt:2"
    assert bench(GREP, pattern="foo", output_mode="content").content == "a/c.txt:1:foo\nb.txt:2:foo"
    assert bench(GREP, pattern="ba", output_mode="content", **{"-n": False}).content == "b.txt:bar"
    assert bench(GREP, pattern="foo", path="a").content == "a/c.txt"
    assert bench(GREP, pattern="foo", path="b.txt", output_mode="count").content == "b.txt:1"
    assert bench(GREP, pattern="foo", glob="a/**").content == "a/c.txt"
    assert bench(GREP, pattern="quux").content == "no matches"


def test_grep_says_how_many_results_it_left_out(bench: Bench) -> None:
    bench.file("a.txt", "foo\n" * 250)
    shown = bench(GREP, pattern="foo", output_mode="content").content.splitlines()
    assert len(shown) == 101
    assert shown[-2:] == ["a.txt:100:foo", "[150 more left out; narrow the search]"]
    assert len(bench(GREP, pattern="foo", output_mode="content", head_limit=250).content.splitlines()) == 250


def test_grep_sorts_lines_by_number_not_by_text(bench: Bench) -> None:
    bench.file("a.txt", "foo\n" * 11)
    shown = bench(GREP, pattern="foo", output_mode="content").content.splitlines()
    assert [int(line.split(":")[1]) for line in shown] == list(range(1, 12))


def test_grep_cuts_long_lines(bench: Bench) -> None:
    bench.file("a.txt", "x" * 5000)
    assert bench(GREP, pattern="x", output_mode="content").content == f"a.txt:1:{'x' * 500}…"


@pytest.mark.parametrize("tool", [GREP, GLOB])
def test_places_outside_or_missing_are_refused(bench: Bench, tool: Any) -> None:
    with pytest.raises(OutsideWorkspace):
        bench(tool, pattern="x", path="..")
    with pytest.raises(OutsideWorkspace):
        bench(tool, pattern="x", path=".git")
    with pytest.raises(InvalidInput, match="no such file or folder"):
        bench(tool, pattern="x", path="missing")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"pattern": "**/*.ts"}, ["src/deep/c.ts"]),
        ({"pattern": "*.ts"}, ["src/deep/c.ts"]),
        ({"pattern": "*.ts", "path": "src"}, ["src/deep/c.ts"]),
        ({"pattern": "deep/*.ts", "path": "src"}, ["src/deep/c.ts"]),
        ({"pattern": "src/*"}, ["src/b.py"]),
        ({"pattern": "src/**"}, ["src/b.py", "src/deep/c.ts"]),
        ({"pattern": "d.py"}, ["src-2/d.py"]),
        ({"pattern": "e.*"}, [".hidden/e.py"]),
        ({"pattern": "g.py"}, []),
        ({"pattern": "tracked*.log"}, ["tracked.log"]),
        ({"pattern": "*gone*"}, []),
    ],
)
def test_glob_lists_files_that_git_does_not_ignore(
    tree: Bench, given: dict[str, str], found: list[str]
) -> None:
    assert tree(GLOB, **given).content.splitlines() == (found or ["no files match"])


def test_glob_takes_a_pattern_that_begins_with_the_root(tree: Bench) -> None:
    assert tree(GLOB, pattern=f"{tree.root}/src/*.py").content == "src/b.py"


def test_glob_stops_at_two_hundred(bench: Bench) -> None:
    for number in range(203):
        bench.file(f"{number:03}.txt")
    shown = bench(GLOB, pattern="*.txt").content.splitlines()
    assert shown[0] == "000.txt"
    assert shown[199:] == ["199.txt", "[3 more left out; narrow the search]"]


def test_searching_runs_no_program_of_the_repository(bench: Bench) -> None:
    script = bench.file("planted.sh", f"#!/bin/sh\ntouch '{bench.root}/ran'\n")
    script.chmod(0o755)
    bench.file(".gitattributes", "* diff=x\n")
    for key in ("core.fsmonitor", "diff.x.textconv", "core.pager"):
        subprocess.run(["git", "config", key, str(script)], cwd=bench.root, check=True)
    searches: list[Callable[[Query], Any]] = [run_ripgrep, run_git_grep, run_python_re]
    for search in searches:
        search(query(bench, "touch"))
    assert not (bench.root / "ran").exists()


def test_case_is_heeded_unless_told(bench: Bench) -> None:
    assert compile_regex("a").flags & re.IGNORECASE == 0
    bench.file("a.txt", "FOO\n")
    assert bench(GREP, pattern="foo").content == "no matches"
