import shlex
import subprocess
import time
from pathlib import Path

import pytest

from agentflow.permissions.shell import MAX_CHARS, dangerous_argument, plain_words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ("ls",)),
        ("  ls\t-la  ", ("ls", "-la")),
        ("ruff check .", ("ruff", "check", ".")),
        ("git log --oneline -5 HEAD~1 main@2", ("git", "log", "--oneline", "-5", "HEAD~1", "main@2")),
        ("git diff main..HEAD -- src/a.py", ("git", "diff", "main..HEAD", "--", "src/a.py")),
        ("rg -n 'a|b; $(x) `y` > z & ~ * \\n' src", ("rg", "-n", "a|b; $(x) `y` > z & ~ * \\n", "src")),
        ('rg "a|b\\bfoo\\" x" .', ("rg", 'a|b\\bfoo" x', ".")),
        ("rg 'two\nlines' .", ("rg", "two\nlines", ".")),
        ('grep "two\nlines" x', ("grep", "two\nlines", "x")),
        ("pytest tests/test_a.py::test_b -q", ("pytest", "tests/test_a.py::test_b", "-q")),
        ("pytest -k 'a and not b'", ("pytest", "-k", "a and not b")),
        ("wc -l src/*.py", ("wc", "-l", "src/*.py")),
        ("ls ./*", ("ls", "./*")),
        ("ls src/[ab]?.py", ("ls", "src/[ab]?.py")),
        ("ls a\\ b \\*", ("ls", "a b", "*")),
        ("ls '' \"\"", ("ls", "", "")),
        ("ls a#b x=1 --opt=v", ("ls", "a#b", "x=1", "--opt=v")),
        ("./run.sh", ("./run.sh",)),
        ("grep -e é ünï.txt", ("grep", "-e", "é", "ünï.txt")),
    ],
)
def test_one_plain_command_has_words(command: str, words: tuple[str, ...]) -> None:
    assert plain_words(command) == words


ATTACKS = (
    "ls ; touch x",
    "ls;touch x",
    "ls\ntouch x",
    "ls\r\ntouch x",
    "ls && touch x",
    "ls || touch x",
    "ls | tee x",
    "ls |& tee x",
    "ls & touch x",
    "ls &",
    "ls > x",
    "ls>x",
    "ls >> x",
    "ls 2> x",
    "ls >| x",
    "ls <> x",
    "ls &> x",
    "ls < a.txt",
    "ls << E\nE",
    "ls <<< a",
    "ls $(touch x)",
    "ls `touch x`",
    'ls "$(touch x)"',
    'ls "`touch x`"',
    'ls "${a:=`touch x`}"',
    'ls "\\$(touch x)"',
    "ls <(touch x)",
    "ls >(touch x)",
    "(touch x)",
    "{ touch x; }",
    "ls ${HOME}",
    "ls $HOME",
    "ls $'a\\nb'",
    'ls $"a"',
    "ls $((1))",
    "ls ~",
    "ls ~/x",
    "ls x=~",
    "ls {a,b}",
    "ls {1..3}",
    "ls *",
    "ls *.py",
    "ls ?",
    "ls -*",
    "ls --f*",
    "ls [ab]",
    "ls ''*",
    'ls "-"*',
    "ls \\-*",
    "ls # touch x",
    "# ls",
    "ls \\\n-la",
    "ls 'open",
    'ls "open',
    "ls \\",
    "ls \x1b[0m",
    "ls \0",
    "A=1 ls",
    "PATH=. ls",
    "A+=1 ls",
    "a[0]=1 ls",
    "! ls",
    "[ -v 'a[$(touch x)]' ]",
    "test -v 'a[$(touch x)]'",
    "[[ -f x ]]",
    "let 'a[$(touch x)]=1'",
    "printf -v 'a[$(touch x)]' y",
    "compgen -C 'touch x'",
    "jobs -x touch x",
    "if true",
    "time ls",
    "env touch x",
    "env",
    "/usr/bin/env touch x",
    "e'n'v touch x",
    'e"nv" touch x',
    "\\env touch x",
    "xargs touch",
    "sh -c 'touch x'",
    "bash -c 'touch x'",
    "/bin/bash x.sh",
    "eval 'touch x'",
    "exec touch x",
    "command touch x",
    "builtin eval 'touch x'",
    "nohup touch x",
    "timeout 5 touch x",
    "nice touch x",
    "sudo touch x",
    "setsid touch x",
    "busybox touch x",
    "awk 'BEGIN { system(\"touch x\") }'",
    ". ./x.sh",
    "source x.sh",
    "./ x",
    "'' x",
    "'touch x'",
    "*",
    "src/*",
    "%1",
    "",
    "   ",
    "ls\u00a0-la",
)


@pytest.mark.parametrize("command", ATTACKS)
def test_anything_more_is_not_plain(command: str) -> None:
    assert plain_words(command) is None


def test_a_very_long_command_is_not_plain() -> None:
    assert plain_words("ls " + "a" * (MAX_CHARS - 3)) is not None
    assert plain_words("ls " + "a" * (MAX_CHARS - 2)) is None


@pytest.mark.parametrize("piece", ["a ", "'a' ", "\\a", '"a"', "a*", "ab "])
def test_judging_takes_no_time_whatever_is_asked(piece: str) -> None:
    begin = time.monotonic()
    assert plain_words(piece * (MAX_CHARS // len(piece) - 1) + ";") is None
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize(
    "arguments",
    [
        "a\\ b c",
        "'a b' \"c d\" e\\'f",
        '"\\d \\\\ \\" \\x" \'\\\'',
        "a#b HEAD~1 x==y a:b",
        "\"two\nlines\" 'more\nlines' \t end",
        "é \\é '' \"\" ''x\"\"",
        "a^b %x @y +z ,q ]r !s -t",
    ],
)
def test_the_words_are_those_that_bash_makes(tmp_path: Path, arguments: str) -> None:
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {arguments}"], cwd=tmp_path, capture_output=True, check=True
    )
    words = plain_words(f"show {arguments}")
    assert words is not None
    assert [word.encode() for word in words[1:]] == shown.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("rg --pre ./x a", "--pre"),
        ("rg --pre=./x a", "--pre=./x"),
        ("/usr/bin/rg --pre=./x a", "--pre=./x"),
        ("git -c core.pager=x log", "-c"),
        ("git -C sub log", "-C"),
        ("git diff --ext-diff", "--ext-diff"),
        ("git diff --outp=x", "--outp=x"),
        ("git grep -Ox y", "-Ox"),
        ("git grep -nO y", "-nO"),
        ("git --exec-path=. log", "--exec-path=."),
        ("find . -name x -exec touch {} +", "-exec"),
        ("find . -delete", "-delete"),
        ("find . -fprintf x y", "-fprintf"),
        ("fd . -x touch", "-x"),
        ("fd . -Hx touch", "-Hx"),
        ("sed -i s/a/b/ x", "-i"),
        ("sed -ni.bak 1p x", "-ni.bak"),
        ("sed -n 1p x --in-place", "--in-place"),
        ("sed -n 1p x --in-pl", "--in-pl"),
        ("sed -f x y", "-f"),
        ("sed 's/a/b/e' x", "s/a/b/e"),
        ("sed 'sxaxbxe' x", "sxaxbxe"),
        ("sed '1e touch x' y", "1e touch x"),
        ("sed 'w out' y", "w out"),
        ("sed -n '/a/w out' y", "/a/w out"),
        ("sed -n '1p;w out' y", "1p;w out"),
        ("ruff check . --fix", "--fix"),
        ("ruff check --unsafe-fixes .", "--unsafe-fixes"),
        ("ruff check -o x .", "-o"),
        ("sort -o x y", "-o"),
        ("sort --comp=./x y", "--comp=./x"),
        ("mypy --install-types", "--install-types"),
        ("pytest --basetemp=src", "--basetemp=src"),
        ("go vet -vettool=./x", "-vettool=./x"),
        ("tar -tf a.tar --to-command=x", "--to-command=x"),
    ],
)
def test_arguments_that_execute_or_write_are_found(command: str, found: str) -> None:
    assert dangerous_argument(shlex.split(command)) == found


@pytest.mark.parametrize(
    "command",
    [
        "rg -n --hidden foo src",
        "git log --oneline -20",
        "git diff -U5 --stat main -- src",
        "find . -name '*.py' -type f",
        "sed -n 1,40p src/engine.py",
        "sed -n '/begin/,/end/p' x.txt",
        "sed -n '$p' x",
        "ruff check . --output-format concise",
        "mypy --strict src",
        "pytest -q -x tests",
        "sort -u -k2 x",
        "ls --fix -o",
        "grep -rn --include '*.py' foo .",
    ],
)
def test_everyday_arguments_are_fine(command: str) -> None:
    words = plain_words(command)
    assert words is not None
    assert dangerous_argument(words) is None
