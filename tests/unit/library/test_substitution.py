"""Placeholders of commands and skills: what is replaced, what stays, and what a shell gets."""

import shlex
import subprocess

import pytest

from agentflow.library.substitution import (
    Arguments,
    PartKind,
    is_using,
    split_arguments,
    split_body,
    substitute,
    substitute_in_shell,
)

TEXT = '12 "a b" c'


def given(text: str = TEXT, first: int = 0) -> Arguments:
    return Arguments(
        text=text,
        words=split_arguments(text),
        names=("issue", "who"),
        first=first,
        places={"CLAUDE_SKILL_DIR": "/skills/x"},
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("all: $ARGUMENTS.", 'all: 12 "a b" c.'),
        ("$ARGUMENTS[1] of $ARGUMENTS[0]", "a b of 12"),
        ("$0, $1, $2, $3|", "12, a b, c, |"),
        ("issue $issue for $who", "issue 12 for a b"),
        ("in ${CLAUDE_SKILL_DIR}/x.py with $0", "in /skills/x/x.py with 12"),
        (r"\$0 costs $0", "$0 costs 12"),
        ("$0 $PATH ${HOME} $ARGUMENTSX $1st $$", "12 $PATH ${HOME} $ARGUMENTSX $1st $$"),
    ],
)
def test_placeholders_are_replaced_and_other_text_stays(body: str, expected: str) -> None:
    assert substitute(body, given()) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("do it", False),
        (r"costs \$0", False),
        ("in ${CLAUDE_SKILL_DIR}", False),
        ("fix $0", True),
        ("$issue", True),
    ],
)
def test_a_body_uses_its_arguments_where_it_names_one(body: str, *, expected: bool) -> None:
    assert is_using(body, given()) is expected


def test_the_first_argument_has_the_number_that_the_body_counts_from() -> None:
    assert substitute("$1 $2", given(first=1)) == "12 a b"


def test_what_is_put_in_is_not_read_again() -> None:
    assert substitute("$0|$1", given("'$1 $ARGUMENTS' x")) == "$1 $ARGUMENTS|x"


EVIL = ("x; echo PWNED", "$(echo PWNED)", "`echo PWNED`", "'; echo PWNED; '", '"; echo PWNED; "', "a\\", "&&")


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize(
    "body", ["echo $0", 'echo "$0"', "echo '$0'", 'echo "a\'$0"', r"echo \"$0", "echo a$0"]
)
def test_an_argument_stays_one_word_of_the_shell(body: str, evil: str) -> None:
    line = substitute_in_shell(body, given(shlex.quote(evil)))
    said = subprocess.run(("sh", "-c", line), capture_output=True, text=True, check=True).stdout
    assert evil in said.rstrip("\n")
    assert len(said.splitlines()) == 1
    assert said != "PWNED\n"


def test_all_arguments_stay_words_of_the_shell() -> None:
    assert substitute_in_shell("git log $ARGUMENTS", given("main; rm x")) == "git log 'main;' rm x"


def test_a_body_is_split_into_text_shell_lines_and_files() -> None:
    body = (
        "Status: !`git status`\nSee @src/a.py, @$1 and me@x.org, `@no` or `run !`.\n"
        "```sh\n!`no`\n@no\n```\n```!\ngit log\nls\n```\nx!`no` end"
    )
    found = [(part.kind, part.text) for part in split_body(body) if part.kind is not PartKind.TEXT]
    assert found == [
        (PartKind.COMMAND, "git status"),
        (PartKind.FILE, "src/a.py"),
        (PartKind.FILE, "$1"),
        (PartKind.COMMAND, "git log\nls"),
    ]
    texts = "".join(part.text for part in split_body(body) if part.kind is PartKind.TEXT)
    assert all(text in texts for text in ("!`no`\n@no", "me@x.org", "`@no`", "x!`no` end"))
