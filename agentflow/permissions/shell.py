"""Which commands are one plain command, and which of their arguments run or write something else.

Everything that is not understood counts as not plain.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agentflow.core.record import Record

MAX_CHARS = 10_000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_PIECE = r"""
    '[^']*'
  | "(?:[^"\\$`] | \\[^$`\n])*"          # a $ or ` is refused even when escaped: shlex and bash differ there
  | \\[^\n]
  | [^\s'"\\;&|<>()$`{}\#~*?\[]
  | (?<=\S)\#                            # elsewhere it begins a comment
  | (?<=[^\s=:])~                        # elsewhere it is a home folder
"""
# A glob is taken only behind a literal first character that is no dash: `*` alone turns a file that somebody
# named `--fix` into a flag, `src/*.py` cannot.
_WORD = rf"(?> [A-Za-z0-9_./@%+,^] (?: {_PIECE} | [*?\[] )* | (?: {_PIECE} )+ )"
_PLAIN = re.compile(rf"[ \t]* {_WORD} (?: [ \t]+ {_WORD} )* [ \t]*", re.VERBOSE)
_PROGRAM = re.compile(r"[A-Za-z0-9_./][\w./+-]*", re.ASCII)
_NEVER_PLAIN = re.compile(
    r"""
    # programs that run others
    env|xargs|sh|bash|dash|zsh|ksh|fish|ash|busybox|nohup|timeout|time|nice|ionice|chrt|taskset|stdbuf|setsid
    |sudo|doas|su|watch|parallel|flock|script|unshare|nsenter|chroot|strace|ltrace|gdb|ssh|awk|gawk|mawk|nawk
    # builtins that run others, or evaluate what looks like a name
    |eval|exec|command|builtin|source|\.|alias|trap|set|shopt|enable|export|declare|typeset|local|readonly
    |unset|let|test|read|mapfile|readarray|printf|coproc|wait|jobs|fc|bind|compgen|complete|getopts|hash
    # words that begin something larger
    |if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|in
    """,
    re.VERBOSE,
)


class Danger(Record):
    """Arguments of a program that run, write or delete."""

    words: tuple[str, ...]
    """Whole words; a long flag also by any beginning of it, as many programs take it."""
    letters: str = ""
    """One-letter flags, also among others behind one dash."""


DANGERS: Mapping[str, Danger] = {
    "cargo": Danger(words=("--fix", "--config")),
    "eslint": Danger(
        words=("--fix", "--rulesdir", "--output-file", "--resolve-plugins-relative-to"), letters="o"
    ),
    "fd": Danger(words=("--exec", "--exec-batch"), letters="xX"),
    "find": Danger(
        words=("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf")
    ),
    "git": Danger(
        words=(
            *("-c", "-C", "--config-env", "--exec-path", "--git-dir", "--work-tree", "--exec", "--output"),
            *("--ext-diff", "--textconv", "--open-files-in-pager", "--upload-pack", "--receive-pack"),
        ),
        letters="O",
    ),
    "go": Danger(
        words=("-exec", "-toolexec", "-vettool", "--toolexec", "--vettool", "-fix", "--fix", "-w", "-o")
    ),
    "gofmt": Danger(words=(), letters="w"),
    "mypy": Danger(
        words=(
            *("--install-types", "--python-executable", "--cache-dir", "--junit-xml", "--config-file"),
            *("--any-exprs-report", "--cobertura-xml-report", "--html-report", "--linecount-report"),
            *("--linecoverage-report", "--lineprecision-report", "--txt-report", "--xml-report"),
            *("--xslt-html-report", "--xslt-txt-report", "--shadow-file", "--write"),
        )
    ),
    "prettier": Danger(words=("--write", "--plugin"), letters="w"),
    "pytest": Danger(
        words=(
            *("--basetemp", "--junitxml", "--junit-xml", "--log-file", "--debug", "--override-ini"),
            *("--pastebin", "--confcutdir", "--rootdir", "--config-file", "--cache-clear", "--pdb"),
        ),
        letters="opc",
    ),
    "rg": Danger(words=("--pre", "--hostname-bin", "--search-zip"), letters="z"),
    "ruff": Danger(
        words=(
            *("--fix", "--fix-only", "--unsafe-fixes", "--add-noqa", "--output-file", "--config"),
            "--cache-dir",
        ),
        letters="o",
    ),
    "sed": Danger(words=("--in-place", "--file", "--expression"), letters="ief"),
    "sort": Danger(words=("--output", "--compress-program"), letters="o"),
    "tar": Danger(words=("--to-command", "--checkpoint-action", "--use-compress-program"), letters="IF"),
    "tree": Danger(words=("--output",), letters="o"),
}
_PRINTING_SED = re.compile(r"(?:\d+|\$|/[^/\n]*/)?(?:,(?:\d+|\$|/[^/\n]*/))?[pdq=]")
"""The scripts of sed that only select lines; others can write files and run commands."""


def plain_words(command: str) -> tuple[str, ...] | None:
    """Return the words of one plain command, or None as soon as a shell would do more than run it."""
    if len(command) > MAX_CHARS or _CONTROL.search(command) or not _PLAIN.fullmatch(command):
        return None
    words = tuple(shlex.split(command))
    if not _PROGRAM.fullmatch(words[0]) or _NEVER_PLAIN.fullmatch(PurePosixPath(words[0]).name or "."):
        return None
    return words


def dangerous_argument(words: Sequence[str]) -> str | None:
    """Return the first argument with which a usual tool would run, write or delete something."""
    program, *arguments = _without_python(words)
    danger = DANGERS.get(PurePosixPath(program).name)
    if danger is None:
        return None
    flags = (word for word in arguments if word.startswith("-"))
    found = next((word for word in flags if _is_among(word, danger)), None)
    if found is None and PurePosixPath(program).name == "sed":
        script = next((word for word in arguments if not word.startswith("-")), "")
        return None if _PRINTING_SED.fullmatch(script) else script
    return found


def _without_python(words: Sequence[str]) -> Sequence[str]:
    """Return `python -m tool …` as the tool's own command line."""
    is_module = re.fullmatch(r"python[\d.]*", PurePosixPath(words[0]).name) and words[1:2] == ("-m",)
    return words[2:] if is_module and len(words) > 2 else words


def _is_among(word: str, danger: Danger) -> bool:
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and any(flag.startswith(name) for flag in danger.words)
    return name in danger.words or any(letter in danger.letters for letter in name[1:])
