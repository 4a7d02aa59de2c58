import subprocess
import time
from pathlib import Path

import pytest

from agentflow.permissions.reading_commands import find_dangerous_argument
from agentflow.permissions.shell_parser import (
    MAX_COMMAND_CHARS,
    MAX_COMMANDS,
    ShellWord,
    TooComplex,
    parse_command,
)
from agentflow.permissions.wrappers import unwrap_command


def known(command: str) -> tuple[ShellWord, ...]:
    (simple,) = parse_command(command).commands
    return simple.words


def texts(command: str) -> list[str]:
    return [
        " ".join(word.text.replace("\0", "?") for word in simple.words)
        for simple in unwrap_command(command).commands
    ]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("ls -la; cat 'a b' && wc x | tee y &", ["ls -la", "cat a b", "wc x", "tee y"]),
        ('l\\s "-la"', ["ls -la"]),
        ("echo $(git status) `pwd`", ["git status", "pwd", "echo ? ?"]),
        ("if [ -f x ]; then rm x; fi", ["[", "rm x"]),
        ("for f in *; do rm $f; done", ["", "rm ?"]),
        ("f() { rm x; }; f", ["rm x", "f"]),
        ("diff <(sort a) b", ["sort a", "diff ? b"]),
        ("timeout -k 3 5 nice -n 2 rm x", ["timeout -k 3 5 nice -n 2 rm x", "nice -n 2 rm x", "rm x"]),
        ("env -i A=1 rm x", ["env -i A=1 rm x", "rm x"]),
        ("bash -lc 'rm x; ls'", ["bash -lc rm x; ls", "rm x", "ls"]),
        ("ls | xargs -n1 rm", ["ls", "xargs -n1 rm", "rm ?"]),
        ("find . -exec rm {} +", ["find . -exec rm {} +", "rm ?"]),
    ],
)
def test_a_command_is_all_that_it_would_run(command: str, found: list[str]) -> None:
    assert texts(command) == found


MESSAGE = 'fix: it\'s\n\nBody $x `y` (a) "b" << c'
DOCUMENT = f"\"$(cat <<'EOF'\n{MESSAGE}\nEOF\n)\""


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (f"git commit -m {DOCUMENT}", [f"git commit -m {MESSAGE}"]),
        (f"git add x && git commit -m {DOCUMENT}; gh pr create -b {DOCUMENT}", None),
        (f"git commit -m {DOCUMENT.replace(chr(39) + 'EOF' + chr(39), chr(92) + 'EOF')}", None),
        (f"bash -c {DOCUMENT.replace(MESSAGE, 'rm x')}", ["bash -c rm x", "rm x"]),
        (f"rm {DOCUMENT.replace(MESSAGE, '-rf')}", ["rm -rf"]),
        ("echo \"$(cat <<'E'\nE\nrm x\nE\n)\"", ["cat", "rm x", "E", "echo ?"]),
        ("echo \"$(cat <<'E'\nx\n E\nrm x\nE\n)\"", ["cat", "rm x", "E", "echo ?"]),
        (f"git commit -m {DOCUMENT[1:-1]}", ["cat", "git commit -m ?"]),
        (f"cat() {{ echo -n; }}; git commit -m {DOCUMENT}", ["echo -n", "cat", "git commit -m ?"]),
        (f"PATH=. ; git commit -m {DOCUMENT}", ["", "cat", "git commit -m ?"]),
        (f". ./x; git commit -m {DOCUMENT}", [". ./x", "cat", "git commit -m ?"]),
        (f"git commit -m {DOCUMENT.replace(chr(39) + 'EOF' + chr(39), 'EOF').replace(MESSAGE, 'a')}", None),
    ],
)
def test_a_quoted_here_document_in_quotes_is_fixed_text(command: str, found: list[str] | None) -> None:
    assert found is None or texts(command) == found
    assert is_judged(command)


@pytest.mark.parametrize(
    "command",
    [
        f"git commit -m {DOCUMENT} <<A <<B\nA\nB",
        "# $(cat <<'X'\nbash <<A <<B\nA\nB\nX\n)",
    ],
)
def test_a_here_document_whose_end_is_not_clear_is_no_fixed_text(command: str) -> None:
    assert not is_judged(command)


@pytest.mark.parametrize(
    ("command", "operators"),
    [
        ("ls > x 2>&1", [">"]),
        ("ls &>> x < y", ["&>>"]),
        ("ls 2>/dev/null", []),
        ("bash -c 'ls >| x'", [">|"]),
    ],
)
def test_the_files_that_are_written_are_seen(command: str, operators: list[str]) -> None:
    assert [each.operator for each in unwrap_command(command).redirections if each.writes] == operators


def is_judged(command: str) -> bool:
    try:
        unwrap_command(command)
    except TooComplex:
        return False
    return True


@pytest.mark.parametrize(
    "command",
    [
        *(
            "ls 'open",
            'ls "open',
            "ls $(",
            "ls &&",
            "| ls",
            "ls )",
            "ls \\ x\u00a0\0",
            "ls \x1b[0m",
            "ls\r\ntouch x",
        ),
        *(
            "ls \u202e x",
            "ls \u200b",
            "l\\\ns\\\n-la",
            "ls <<A <<B\nA\nB",
            "ls <<$X\n$X",
        ),
        *("$X", "$(ls) x", "`ls`", "*", "~/x", "{a,b}", "'' ${x}y; ${x}y", "$'ls'"),
        *(
            "eval x",
            "source $X",
            ". <(ls)",
            "trap 'x' EXIT",
            "alias a=b",
            "coproc ls",
            "select a in b; do ls; done",
        ),
        *("sh", "cat x | bash", "x=1; bash <<E\n$x\nE", "bash -s <x", "bash -c $X", 'bash -c "$X"'),
        *("echo $((a[$(x)]))", "x='a[1]'; echo $((x))", "a[$(x)]=1", "[[ $x -gt 3 ]]", "test -v x"),
        *("git -c a.b=c log", "git submodule foreach x", "echo ${x@P}", "echo ${!x}", "cat <<E\n$(x)\nE"),
        *("set -a", "env -S 'x y'", "for ((;;)); do ls; done", "printf -v x y"),
    ],
)
def test_what_cannot_be_judged_is_refused(command: str) -> None:
    assert not is_judged(command)


def test_a_very_long_command_is_not_judged() -> None:
    assert is_judged("ls " + "a" * (MAX_COMMAND_CHARS - 3))
    assert not is_judged("ls " + "a" * (MAX_COMMAND_CHARS - 2))


def test_a_command_of_too_many_commands_is_not_judged() -> None:
    assert is_judged("; ".join(["ls"] * MAX_COMMANDS))
    assert not is_judged("; ".join(["ls"] * (MAX_COMMANDS + 1)))
    assert not is_judged(f"bash -c '{'; '.join(['ls'] * (MAX_COMMANDS + 1))}'")


@pytest.mark.parametrize("piece", ["a ", "'a' ", "\\a", '"a"', "a*", "(", "$(", "{ ", "a|", "sh -c ", "env "])
def test_judging_takes_no_time_whatever_is_asked(piece: str) -> None:
    begin = time.process_time()
    is_judged(piece * (MAX_COMMAND_CHARS // len(piece)))
    assert time.process_time() - begin < 2


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
        "a{b {} }c 'x{a,b}' --opt=v \\$x '$y'",
        "a \\\n b",
        '"a\\\nb" \\# x#',
    ],
)
def test_the_words_are_those_that_bash_makes(tmp_path: Path, arguments: str) -> None:
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {arguments}"], cwd=tmp_path, capture_output=True, check=True
    )
    words = known(f"show {arguments}")
    given = shown.stdout.split(b"\0")[:-1]
    assert [word.text.encode() for word in words[1:]] == given


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
        ("ruff check . --fix", "--fix"),
        ("ruff check --unsafe-fixes .", "--unsafe-fixes"),
        ("ruff check -o x .", "-o"),
        ("sort -o x y", "-o"),
        ("sort --comp=./x y", "--comp=./x"),
        ("mypy --install-types", "--install-types"),
        ("pytest --basetemp=src", "--basetemp=src"),
        ("go vet -vettool=./x", "-vettool=./x"),
    ],
)
def test_arguments_that_execute_or_write_are_found(command: str, found: str) -> None:
    assert find_dangerous_argument(known(command)) == found


@pytest.mark.parametrize(
    "command",
    [
        "rg -n --hidden foo src",
        "git log --oneline -20",
        "git diff -U5 --stat main -- src",
        "ruff check . --output-format concise",
        "mypy --strict src",
        "pytest -q -x tests",
        "sort -u -k2 x",
        "ls --fix -o",
        "grep -rn --include '*.py' foo .",
    ],
)
def test_everyday_arguments_are_fine(command: str) -> None:
    assert find_dangerous_argument(known(command)) is None
