"""Changed code of other languages tells which of its conditions and arms are tried."""

import os
import subprocess
from pathlib import Path

import pytest

from agentflow.verdict.probes.recording import record_change
from agentflow.workspace.mixed_tree import ChangedTexts
from tests.support.toolchains import NOT_RUN, can_build

SCRIPT = "function pages(total, size) {{\n{}}}\n\nmodule.exports = {{ pages }};\n"
PROGRAM = "int left = 40;\n\nint pages(int total, int size) {{\n{}}}\n"
MAIN = "int pages(int, int);\nint main(void) {{ {} return 0; }}\n"
GO = "package main\n\nfunc pages(total, size int) int {{\n{}}}\n"
CRATE = "pub fn pages(total: i64, size: i64) -> i64 {{\n{}}}\n"
SHELL = "pages() {{\n{}}}\n"
COMMANDS = {
    "a.js": "node -e \"const {{ pages }} = require('./a.js'); {}\"",
    "a.c": "cc -Wall -Wextra -Werror -o main a.c main.c && ./main",
    "a.go": "go run a.go main.go",
    "a.rs": "rustc --edition 2021 -o main main.rs && ./main",
    "a.sh": "sh -euc '. ./a.sh; {}'",
}


def untried(folder: Path, path: str, after: str, calls: str, before: str = "") -> list[str]:
    """Return what calls of the changed code leave untried; the code does what it did."""
    watched = record_change(ChangedTexts(path=path, before=before, after=after), "kwq", 1)
    if watched is None:
        return []
    (folder / path).write_text(watched.text)
    (folder / "main.c").write_text(MAIN.format(calls))
    (folder / "main.go").write_text(f"package main\n\nfunc main() {{ {calls} }}\n")
    (folder / "main.rs").write_text(f"mod a;\nuse a::pages;\nfn main() {{ {calls} }}\n")
    command = COMMANDS[path].format(calls)
    program = command.split()[0]
    if not can_build(program):
        pytest.skip(NOT_RUN.format(program))
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    subprocess.run(["sh", "-c", command], cwd=folder, env=env, check=True)
    left = [each.name for each in folder.iterdir()]
    assert watched.is_loaded(left)
    return [f"{hunk.line}: {hunk.wanted}" for hunk in watched.list_untried(left)]


def lines(frame: str, *rows: str) -> str:
    return frame.format("".join(f"    {row}\n" for row in rows))


ONE_WAY = {
    "a number in JavaScript": (
        "a.js",
        lines(SCRIPT, "return total * size ** +(size > 1);"),
        "pages(7, 3)",
        "2: in which `size > 1` is false",
    ),
    "a key in JavaScript": (
        "a.js",
        lines(SCRIPT, "return { true: total, false: size }[total > 3];"),
        "pages(7, 3)",
        "2: in which `total > 3` is false",
    ),
    "a variable in JavaScript": (
        "a.js",
        lines(SCRIPT, "const few = size < 9", "const all = total", "return [all, size][few - 0]"),
        "pages(7, 3)",
        "2: in which `size < 9` is false",
    ),
    "a feature in JavaScript": (
        "a.js",
        lines(SCRIPT, "if (process.env.PAGER_WIDE === 'yes') return total;", "return size;"),
        "pages(7, 3)",
        "2: in which `process.env.PAGER_WIDE === 'yes'` is true",
    ),
    "what is negated in JavaScript": (
        "a.js",
        lines(SCRIPT, "return total ** !process.stdout.isTTY - 0;"),
        "pages(7, 3)",
        "2: in which `!process.stdout.isTTY` is false",
    ),
    "what becomes a number in JavaScript": (
        "a.js",
        lines(SCRIPT, "return total ** Number(require('fs').existsSync('a.js'));"),
        "pages(7, 3)",
        "2: in which `require('fs').existsSync('a.js')` is false",
    ),
    "the highest of one in JavaScript": (
        "a.js",
        lines(SCRIPT, "const all = total", "Math.max(...[size], ...[1])", "return Math.max(...[all])"),
        "pages(7, 3)",
        "4: in which `Math.max(...[all])` has several values",
    ),
    "a cut in JavaScript": (
        "a.js",
        lines(SCRIPT, "const all = Array(total)", "all.slice(0, 9).at(-1)", "return all.slice(0, size)"),
        "pages(7, 3)",
        "3: in which `all.slice(0, 9)` cuts something off",
    ),
    "the end of a loop in JavaScript": (
        "a.js",
        lines(SCRIPT, "for (let at = 0; at < 9; at++) {", "    if (at === total) break;", "}"),
        "pages(7, 3)",
        "2: in which `at < 9` is false",
    ),
    "a default that is spread over in JavaScript": (
        "a.js",
        lines(SCRIPT, "const all = { total: 2, ...{ total } };", "return { ...all, ...{ size } };"),
        "pages(7, 3)",
        "2: in which `{ total: 2, ...{ total } }` takes a default",
    ),
    "behind a brace in JavaScript": (
        "a.js",
        lines(SCRIPT, "if (size) {size > 2 && total}"),
        "pages(7, 3); pages(7, 0)",
        "2: in which `size > 2` is false",
    ),
    "a factor in C": (
        "a.c",
        lines(PROGRAM, "return total * (total > 3) + size;"),
        "pages(7, 3);",
        "4: in which `total > 3` is false",
    ),
    "a joined condition in C": (
        "a.c",
        lines(PROGRAM, "if (total > 3 && left-- > 0) return size;", "return total;"),
        "pages(7, 3); pages(1, 3);",
        "4: in which `left-- > 0` is false",
    ),
    "a question in C": (
        "a.c",
        lines(PROGRAM, "return total ? size : 0;"),
        "pages(7, 3);",
        "4: in which `total` is false",
    ),
    "bits that are asked in C": (
        "a.c",
        lines(PROGRAM, "return total & 2 ? size : 0;"),
        "pages(7, 3);",
        "4: in which `total & 2` is false",
    ),
    "an arm in C": (
        "a.c",
        lines(PROGRAM, "switch (total) {", "case 1: return size;", "default: return 0;", "}"),
        "pages(7, 3);",
        "5: that runs this",
    ),
    "a joined condition in Go": (
        "a.go",
        lines(GO, "if left := size; total > 3 && left > 0 {", "    return left", "}", "return total"),
        "pages(7, 3); pages(1, 3)",
        "4: in which `left > 0` is false",
    ),
    "a value that is asked in Go": (
        "a.go",
        lines(GO, "a := map[int]int{7: 3}", "if _, ok := a[total]; ok {", "    return 1", "}", "return 0"),
        "pages(7, 3)",
        "5: in which `ok` is false",
    ),
    "an operand in brackets in Go": (
        "a.go",
        lines(GO, "a := map[int]bool{1: true}", "if a[total] || a[size] {", "    return 1", "}", "return 0"),
        "pages(7, 3); pages(1, 3)",
        "5: in which `a[size]` is true",
    ),
    "a kind of function in Go": (
        "a.go",
        lines(GO, "switch any(total).(type) {", "case func():", "    return []int{1}[0]", "}", "return size"),
        "pages(7, 3)",
        "5: that runs this",
    ),
    "an arm in Go": (
        "a.go",
        lines(GO, "switch total {", "case 1, 2:", "    return size", "default:", "    return 0", "}"),
        "pages(7, 3)",
        "5: that runs this",
    ),
    "a loop in Go": (
        "a.go",
        lines(GO, "for at := range make([]int, total) {", "    size += at", "}", "return size"),
        "pages(0, 3)",
        "4: that runs this",
    ),
    "a function in Go": (
        "a.go",
        lines(GO, "go func() {", "    println(size)", "}", "return total").replace("go func", "_ = func"),
        "pages(0, 3)",
        "4: that runs this",
    ),
    "a bound in Go": (
        "a.go",
        lines(GO, "return min(max(total, 0), size)"),
        "pages(-1, 3); pages(2, 3)",
        "4: in which `min(max(total, 0), size)` is `size`",
    ),
    "a fault in Go": (
        "a.go",
        lines(GO, "defer func() { _ = recover() }()", "return size / total"),
        "pages(7, 3)",
        "4: in which `recover()` stops a fault",
    ),
    "an index in Rust": (
        "a.rs",
        lines(CRATE, "[total, size][usize::from(size > 2)]"),
        "pages(7, 3);",
        "2: in which `size > 2` is false",
    ),
    "a branch in Rust": (
        "a.rs",
        lines(CRATE, "if size < 9 || total == 0 {", "    return 0;", "}", "total"),
        "pages(7, 3); pages(0, 10);",
        "2: in which `total == 0` is false",
    ),
    "an arm in Rust": (
        "a.rs",
        lines(CRATE, "match size {", "    1 | 2 => total,", "    _ => { 0 }", "}"),
        "pages(7, 3);",
        "3: that runs this",
    ),
    "a pattern in Rust": (
        "a.rs",
        lines(CRATE, "if let Some(it) = total.checked_div(size) { it } else { 0 }"),
        "pages(7, 3);",
        "2: that runs this",
    ),
    "an if in a shell": (
        "a.sh",
        lines(SHELL, 'if [ "$1" -gt 3 ]; then', "    echo many", "fi"),
        "pages 7",
        '2: in which `[ "$1" -gt 3 ]` is false',
    ),
    "an if beside texts in a shell": (
        "a.sh",
        lines(
            SHELL,
            "text='it\nif # there'",
            'place="$(dirname "$(echo "/$1/$2" `echo a`)")" # it\'s there',
            'if [ "$1" -gt 3 ]; then echo `expr "$1" + "$2"` "$text" "$place"; fi',
        ),
        "pages 7 3",
        '5: in which `[ "$1" -gt 3 ]` is false',
    ),
    "an else in a shell": (
        "a.sh",
        lines(SHELL, "if false; then echo a", 'elif [ "$1" -gt 3 ]; then echo b', "else echo c", "fi"),
        "pages 1; false || pages 7",
        "2: in which `false` is true",
    ),
    "an or in a shell": (
        "a.sh",
        lines(SHELL, "[ -t 1 ] || set -- 1", 'echo "$1"'),
        "pages 7 | cat",
        "2: in which `[ -t 1 ]` is true",
    ),
    "a default in a shell": (
        "a.sh",
        lines(SHELL, "echo '${x-1}'", r'echo "${1:-none} \${z:-1} ${2-}"; echo "$((${2-0} + 1))"'),
        "pages 7; pages 7 8",
        "3: in which `${1:-none}` takes its default",
    ),
    "what stands for a value in a shell": (
        "a.sh",
        lines(SHELL, "cat <<X", "${1:+some}", "X", "cat <<'X'", "${1:+some}", "X").replace("    X", "X"),
        "pages 7",
        "3: in which `${1:+some}` is not set",
    ),
    "a filter in a shell": (
        "a.sh",
        lines(SHELL, 'yes "$1" | head -n 2 | uniq | cut -c 1-9', "case $1 in head|tail | sort) ;; esac"),
        "pages 7; pages head",
        "2: in which `cut -c 1-9` changes something",
    ),
    "an arm in a shell": (
        "a.sh",
        lines(SHELL, "case $1 in", "7 | 8) echo a ;;", "*) echo b ;;", "esac"),
        "pages 7",
        "4: that runs this",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "after", "calls", "told"), ONE_WAY.values(), ids=ONE_WAY.keys())
def test_what_comes_out_one_way_only_is_told_with_its_line(
    tmp_path: Path, path: str, after: str, calls: str, told: str
) -> None:
    assert untried(tmp_path, path, after, calls) == [told]


BOTH_WAYS = {
    "JavaScript": (
        "a.js",
        lines(
            SCRIPT,
            "const all = Array(total)",
            "all.slice(0, size)",
            "for (let at = 0; at < 2; at++) {",
            "    if (at === total) break",
            "}",
            "const of = { a: 2, ...{ b: Math.max(...[total, size]) } }",
            "return (total > size) - (total < size);",
        ),
        "pages(1, 2); pages(2, 1)",
    ),
    "C": ("a.c", lines(PROGRAM, "return total > size ? size : total;"), "pages(1, 2); pages(2, 1);"),
    "Go": (
        "a.go",
        lines(
            GO,
            "type flag bool",
            "const most = 3",
            'names := map[string]bool{"few": total < most, "many": total >= most}',
            'for range []string{"all"} {',
            "    size += 0",
            "}",
            "for at := 0; at < 2; at++ {",
            '    if flag(names["few"]) || total == size {',
            "        size = -size",
            "    } else if total == (struct{ a int }{4}).a {",
            "        size++",
            "    } else {",
            "        size--",
            "    }",
            "}",
            "done := make(chan error, 1)",
            "go func() { done <- nil }()",
            "fails := func() error {",
            "    if err := <-done; err != nil {",
            "        return err",
            "    }",
            "    return nil",
            "}",
            "_ = fails()",
            "func() {",
            "    defer func() { recover() }()",
            "    panic(max(total, min(size, 2)))",
            "}()",
            "switch {",
            "case size > 2:",
            "    return size",
            "}",
            "return total",
        ),
        "pages(1, 2); pages(3, 3); pages(4, 5); pages(9, 2)",
    ),
    "Rust": ("a.rs", lines(CRATE, "i64::from(total > size)"), "pages(1, 2); pages(2, 1);"),
    "shell": (
        "a.sh",
        lines(
            SHELL,
            '[ "$1" -gt 3 ] && echo many || echo few',
            "few=${few:-2}",
            r"printf '7\n2\n\000' | sort | grep $1 || echo none",
        ),
        "pages 1; pages 7",
    ),
}


@pytest.mark.parametrize(("path", "after", "calls"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_what_comes_out_both_ways_is_tried(tmp_path: Path, path: str, after: str, calls: str) -> None:
    assert untried(tmp_path, path, after, calls) == []


NOTHING = {
    "an assertion": ("a.rs", lines(CRATE, "assert!(total > 0);", "total")),
    "a type": ("a.rs", lines(CRATE, "let all: Vec<i64> = Vec::<i64>::new();", "all.len() as i64")),
    "a constant": ("a.rs", "pub const A: bool = 2 > 1;\n\npub const fn few(all: u8) -> bool { all < 3 }\n"),
    "what the linter of C reads": ("a.c", "#if LEFT > 1\n#endif\n"),
    "another language": ("a.rb", "def pages() 1 > 2 end\n"),
    "what cannot be read for certain": ("a.c", 'char *text = R"(a > b)"; int a() { return 1 > 2; }\n'),
}  # fmt: skip


@pytest.mark.parametrize(("path", "after"), NOTHING.values(), ids=NOTHING.keys())
def test_some_code_has_nothing_to_record(path: str, after: str) -> None:
    assert record_change(ChangedTexts(path=path, before="", after=after), "kwq", 1) is None


def test_a_condition_that_was_there_is_not_recorded() -> None:
    before = lines(SCRIPT, "return total * (size > 1);")
    after = lines(SCRIPT, "return 1 + total * (size > 1);")

    assert record_change(ChangedTexts(path="a.js", before=before, after=after), "kwq", 1) is None
