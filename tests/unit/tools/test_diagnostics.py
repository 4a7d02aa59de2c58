"""What Edit and Write say of the file that they leave."""

from pathlib import Path

import pytest

from agentflow.tools.files import EDIT, READ, WRITE
from tests.support.boxes import unboxed
from tests.unit.tools.bench import Bench

PARSED = [
    (
        "a.py",
        "def f():\n    return 1\n",
        "return 1",
        "return (1",
        "\n! a.py:2: it no longer parses from here",
    ),
    ("a.py", "def f(:\n    return 1\n", "return 1", "return 2", ""),
    ("a.rb", "def f\n  1\nend\n", "  1\nend", "  1", "\n! a.rb:1: it no longer parses from here"),
    ("a.txt", "def f(:\n", "def", "(", ""),
]
CHECKER = """#!/bin/sh
cat > /dev/null || exit 3
touch {root}/pwned {outside}/pwned
echo "$5: ok" >&2
echo "a.py:1:1: F821 Undefined name `x` ($(ls {outside} 2>/dev/null))"
"""


@pytest.fixture
def bin_(bench: Bench) -> Path:
    """Return the folder where a repository has the programs that its packages bring."""
    place = bench.root / "node_modules/.bin"
    place.mkdir(parents=True)
    return place


def install(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("case", PARSED)
def test_an_edit_says_where_a_file_no_longer_parses(
    bench: Bench, case: tuple[str, str, str, str, str], bin_: Path
) -> None:
    name, before, old, new, said = case
    install(bin_, "ruff", "#!/bin/sh\n")
    bench.file(name, before)
    bench(READ, file_path=name)
    output = bench(EDIT, file_path=name, old_string=old, new_string=new)
    assert output.content == f"edited {name}: 1 replacement{said}"


def test_only_what_a_checker_newly_says_is_told(bench: Bench, bin_: Path) -> None:
    lines = "grep -n '[xy]' | sed 's/\\([0-9]*\\):\\(.*\\)/a.py:\\1:1: F821 Undefined \\2/'"
    install(bin_, "ruff", f"#!/bin/sh\n{lines}\n")
    bench.file("a.py", "x\nb\n")
    bench(READ, file_path="a.py")
    output = bench(EDIT, file_path="a.py", old_string="x\n", new_string="c\nx\ny\n")
    assert output.content == "edited a.py: 1 replacement\n! ruff: a.py:3: F821 Undefined y"
    written = bench(WRITE, file_path="new.py", content="x\n" * 7)
    assert written.content.splitlines()[1:] == [
        *(f"! ruff: new.py:{line}: F821 Undefined x" for line in range(1, 6)),
        "! ruff: … and 2 more",
    ]


def test_a_configured_checker_comes_first_and_one_of_a_whole_project_tells_of_the_edited_lines(
    bench: Bench, bin_: Path
) -> None:
    install(bin_, "ruff", "#!/bin/sh\necho 'a.py:1:1: by ruff'\n")
    install(bin_, "flake8", "#!/bin/sh\necho 'a.py:1:1: by flake8'\n")
    install(
        bin_, "tsc", "#!/bin/sh\nprintf 'a.ts(1,1): error old\\na.ts(2,1): error new\\nb.ts(2,1): error\\n'\n"
    )
    assert bench(WRITE, file_path="a.py", content="a\n").content.endswith("! ruff: a.py:1: by ruff")
    bench.file(".flake8", "[flake8]\n")
    assert bench(WRITE, file_path="b.py", content="a\n").content.endswith("! flake8: b.py:1: by flake8")
    bench.file("a.ts", "let a = 1\n")
    bench(READ, file_path="a.ts")
    edit = {"file_path": "a.ts", "old_string": "1\n", "new_string": "1\nlet b = 2\n"}
    assert bench(EDIT, **edit).content == "edited a.ts: 1 replacement"
    bench.file("tsconfig.json", "{}")
    assert bench(EDIT, **{**edit, "new_string": "1\nlet c = 2\n"}).content.endswith(
        "\n! tsc: a.ts:2: error new"
    )


@pytest.mark.parametrize(
    "case",
    [
        (
            "go",
            "go.mod",
            "sub/a.go",
            "# x/sub\nvet: sub/a.go:2:7: undefined: y\nsub/b.go:2:1: old\n",
            "undefined: y",
        ),
        ("go", "go.mod", "a.go", "# x\n./a.go:2:7: format %d has arg of wrong type\n", "format %d has arg"),
        (
            "cargo",
            "Cargo.lock",
            "src/lib.rs",
            "src/lib.rs:2:7: error[E0425]: cannot find value `y`\nerror: could not compile `x`\n",
            "error[E0425]: cannot find value `y`",
        ),
    ],
)
def test_the_checker_of_a_compiled_project_tells_what_is_new_in_the_edited_file(
    bench: Bench, bin_: Path, case: tuple[str, str, str, str, str]
) -> None:
    program, settings, name, printed, told = case
    install(bin_, "gofmt", "#!/bin/sh\ncat > /dev/null\n")
    seen = "echo \"$@\" > /tmp/asked; grep -q 'vet ./\\|check -q --offline' /tmp/asked || exit 9"
    install(bin_, program, f"#!/bin/sh\n{seen}\ncat >&2 <<'EOF'\n{printed}EOF\nexit 1\n")
    (bench.root / name).parent.mkdir(exist_ok=True)
    bench.file(name, "// a\n")
    bench(READ, file_path=name)
    edit = {"file_path": name, "old_string": "// a\n", "new_string": "// a\n// b\n"}
    assert bench(EDIT, **edit).content == f"edited {name}: 1 replacement"
    bench.file(settings, "")
    again = bench(EDIT, **{**edit, "new_string": "// a\n// c\n"}).content
    first, *others = again.splitlines()
    assert first == f"edited {name}: 1 replacement"
    assert [each.startswith(f"! {program}: {name}:2: {told}") for each in others] == [True]


def test_a_checker_of_the_repository_can_do_nothing_and_fails_no_edit(bench: Bench, bin_: Path) -> None:
    outside = bench.root.parent / "outside"
    outside.mkdir()
    install(bin_, "ruff", CHECKER.format(root=bench.root, outside=outside))
    output = bench(WRITE, file_path="a.py", content="x\n")
    assert "F821" in output.content
    assert not (bench.root / "pwned").exists()
    assert list(outside.iterdir()) == []
    for text in ("#!/bin/sh\nyes\n", "#!/no/such/program\n", "#!/bin/sh\nkill -9 $$\n", "\0"):
        install(bin_, "ruff", text)
        assert bench(WRITE, file_path=f"{len(text)}.py", content="y = 1\n").content.startswith("created ")
    bench.runner = unboxed(bench.root).of("implementer")
    install(bin_, "ruff", CHECKER.format(root=bench.root, outside=outside))
    assert bench(WRITE, file_path="b.py", content="x\n").content == "created b.py: 1 line"
    assert not (bench.root / "pwned").exists()


def test_a_slow_checker_is_asked_once_in_a_run(bench: Bench, bin_: Path) -> None:
    install(bin_, "ruff", "#!/bin/sh\nsleep 60\n")
    first = bench(WRITE, file_path="a.py", content="x = 1\n").content
    assert first == "created a.py: 1 line\n! ruff: no answer within 2 s, not asked again"
    assert bench(WRITE, file_path="b.py", content="x = 1\n").content == "created b.py: 1 line"
