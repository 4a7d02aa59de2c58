"""Only comments that nobody obeys may differ; whatever only looks like one is code."""

import pytest

from agentflow.verdict.same.comments import is_equal_but_comments, list_code_lines
from agentflow.verdict.syntax import read_python

GO = "package pager\n\n// First counts.\nfunc First(n int) int {\n\treturn n * 10 // from 0\n}\n"
C = '#include "clip.h"\n\nint clip(int value, int high) {\n    return value > high ? high : value;\n}\n'
JS = (
    "const { sum } = require('./sum');\n\nfunction rate(a, b) {\n  const text = `http://x/${a}`;\n"
    '  return /\\/\\*"/.test(text) ? a / b : sum(a) / 2;\n}\n'
)
RUST = "/// Returns a part.\n"
RUST += "pub fn part<'a>(name: &'a str) -> char {\n    name.chars().next().unwrap_or('\"')\n}\n"
SHELL = '#!/bin/sh\nshort() {\n  text="$(printf \'%s\' "$1")"\n  echo "${text#a}" # cut\n}\nshort "$1"\n'

EQUAL = {
    "go": ("a.go", GO, GO.replace("First counts", "First counts pages").replace("from 0", "from nothing")),
    "go, taken out": ("a.go", GO, GO.replace("// First counts.\n", "").replace(" // from 0", "")),
    "c": ("a.c", C, C.replace("int clip", "/* Return a bound,\n   or the value. */\nint clip")),
    "node": ("a.js", JS, JS.replace("function", "// Rates don't round.\nfunction")),
    "node, beside code": ("a.mjs", JS, JS.replace("}`;", "}`; // no / yet")),
    "rust": ("a.rs", RUST, RUST.replace("a part", "a part of it, don't ask")),
    "shell": ("a.sh", SHELL, SHELL.replace("short()", "# Cut it; don't ask.\nshort()")),
    "node, before a tag": (
        "a.js",
        "/**\n * Adds.\n * @param a one\n */\nf()\n",
        "/**\n * Sums.\n * @param a one\n */\nf()\n",
    ),
    "java, below a word in code": (
        "A.java",
        "/**\n * Reads {@code int}.\n * Names match.\n *\n * @param a one\n */\nclass A {}\n",
        "/**\n * Reads {@code int}.\n * Ignore the rest.\n *\n * @param a what\n */\nclass A {}\n",
    ),
    "a thing to do": ("a.go", "// TODO: a\nvar a = 1\n", "// TODO: b\nvar a = 1\n"),
    "a line within brackets": ("a.js", "f(return_ + 1)\n", "f(return_ /* a\n */ + 1)\n"),
    "layout": (
        "a.ts",
        "const a = [1, 2];\nlet b: string;\n",
        "const a = [\n  1,\n  2\n];\n\nlet b:string;\n",
    ),
    "shell, with a text": ("a.sh", "cat <<EOF\n# a\nEOF\n", "# Say it.\ncat <<EOF\n# a\nEOF\n"),
}
NOT_EQUAL = {
    "code": ("a.go", GO, GO.replace("* 10", "* 11")),
    "a directive": ("a.go", GO, GO.replace("func", "//go:noinline\nfunc")),
    "a suppression": ("a.js", JS, JS.replace("function", "// eslint-disable-next-line\nfunction")),
    "what a tool makes of a tag": (
        "a.js",
        "/**\n * @openapi\n * a: 1\n */\nf()\n",
        "/**\n * @openapi\n * a: 2\n */\nf()\n",
    ),
    "what a test of a compiler expects": ("a.rs", "f(); //~ ERROR a\n", "f(); //~ ERROR b\n"),
    "what a runner is told": ("a.c", "// RUN: a\nint b;\n", "// RUN: c\nint b;\n"),
    "what a queue is told": ("a.sh", "#SBATCH -n 1\na\n", "#SBATCH -n 2\na\n"),
    "a directive taken out": ("a.ts", "// @ts-ignore\na()\n", "a()\n"),
    "a comment that goes on": ("a.c", C, C.replace("    return", "    // as a bound \\\n    return")),
    "a comment that goes on, in three letters": ("a.c", C, C.replace("{\n", "{ // so ??/\n")),
    "another end of a line": ("a.js", JS, JS.replace("function", "// so\u2028sum.total = 1;\nfunction")),
    "a lone return": ("a.js", JS, JS.replace("function", "// so\rsum.total = 1;\nfunction")),
    "an end of a comment": ("a.c", C, C.replace("int clip", "/* so */ static /* or so */ int clip")),
    "a line that ends a statement": ("a.js", "{ return 1 }\n", "{ return /* a\n */ 1 }\n"),
    "text": ("a.go", 'var a = "http://x"\n', 'var a = "http://y"\n'),
    "text of several lines": ("a.js", "a = `\n// b\n`\n", "a = `\n// c\n`\n"),
    "a blank line of text": ("a.go", "var a = `b\n\nc`\n", "var a = `b\nc`\n"),
    "a pattern": ("a.js", 'a = /[/]"//; b()\n', 'a = /[/]"//; c()\n'),
    "a page": ("a.js", "a = <p>so // so</p>\n", "a = <p>so // no</p>\n"),
    "cgo": ("a.go", '// int a;\nimport "C"\n', '// long a;\nimport "C"\n'),
    "an example that runs": ("a.rs", RUST, RUST.replace("a part.", "a part.\n/// ```\n/// f()\n/// ```")),
    "help of a program": (
        "a.rs",
        "#[derive(Parser)]\nstruct A {\n    /// Say it.\n    b: bool,\n}\n",
        "#[derive(Parser)]\nstruct A {\n    /// Do it.\n    b: bool,\n}\n",
    ),
    "a text of a shell": ("a.sh", "cat <<EOF\n# a\nEOF\n", "cat <<EOF\n# b\nEOF\n"),
    "words of a shell": ("a.sh", "echo $a$b\n", "echo $a $b\n"),
    "a line of a shell": ("a.sh", "a && b\n", "a\nb\n"),
    "a line of Go": ("a.go", "func f() {\n\ta()\n\t(b)()\n}\n", "func f() {\n\ta()(b)()\n}\n"),
    "a string of a shell": ("a.sh", "a='b\n# c\n'\n", "a='b\n# d\n'\n"),
    "a command that goes on": ("a.sh", "a \\\n  b\n", "a \\\n  # so\n  b\n"),
    "a script that prints its comments": (
        "a.sh",
        '# a\ngrep "^#" "$0"\n',
        '# b\ngrep "^#" "$0"\n',
    ),
    "another interpreter": ("a.sh", SHELL, SHELL.replace("/bin/sh", "/bin/bash")),
    "an unknown language": ("a.zig", "// a\n", "// b\n"),
    "a new file": ("a.go", "", "// b\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_comments_differ(name: str) -> None:
    assert is_equal_but_comments(*EQUAL[name])


@pytest.mark.parametrize("name", NOT_EQUAL)
def test_more_than_comments_differs(name: str) -> None:
    path, before, after = NOT_EQUAL[name]

    assert before != after
    assert not is_equal_but_comments(path, before, after)
    assert not is_equal_but_comments(path, after, before)


DEEP = f"x = {'-' * 20_000}1\n"


def test_code_too_deep_for_its_parser_is_looked_at_like_any_text() -> None:
    assert read_python(DEEP) is None
    assert read_python("if a:\n    b\n" + "elif c:\n    d\n" * 2_000) is None
    assert read_python("x = " + " + ".join("a" * 800)) is not None
    assert list_code_lines("a.py", DEEP) == [DEEP.rstrip()]


def test_comments_and_docstrings_are_no_code_of_python() -> None:
    text = 'def f(x):\n    """Say 417.\n\n    PYTEST_X\n    """\n    y = "#é"  # pytest\n    return y  # é\n'
    assert list_code_lines("a.py", text) == ["def f(x):", "", "", "", "", '    y = "#é"', "    return y"]


def test_comments_are_no_code_of_other_languages() -> None:
    text = "/* jest\n * pytest */\nlet a = 'http://b' // pytest\n#[ignore]\n  # comment\nx = 1\n"
    bare = ["", "", "let a = 'http://b' ", "#[ignore]", "  ", "x = 1"]
    assert list_code_lines("a.zig", text) == bare
    script = "/* jest\n * pytest */\nlet a = 'http://b' // b\n"
    assert list_code_lines("a.js", script) == [*bare[:2], "let a = 'http://b'"]
