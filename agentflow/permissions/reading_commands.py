"""Commands that only read, for a role that no sandbox holds, and files that a command only writes."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from agentflow.core.regex import regex
from agentflow.permissions.shell_parser import (
    UNKNOWN_TEXT,
    ShellWord,
    SimpleCommand,
    TooComplex,
    join_words,
    parse_command,
)

_READING = frozenset(
    {
        *("ls", "cat", "echo", "pwd", "head", "tail", "grep", "egrep", "fgrep", "rg", "find", "wc"),
        *("which", "type", "diff", "stat", "du", "df", "cd", "true", "false", ":", "test", "[", "printf"),
        *("basename", "dirname", "realpath", "cut", "tr", "nl", "seq", "sleep", "sort", "uniq", "jq", "od"),
    }
)
"""Programs that only read, save with an argument of `_DANGERS`; any other needs a rule."""
_GIT_READING = frozenset(
    {
        *("status", "diff", "log", "show", "blame", "ls-files", "ls-tree", "rev-parse", "rev-list"),
        *("cat-file", "describe", "shortlog", "grep", "merge-base", "version"),
    }
)
_PRINTING_SED = regex(r"-n (?:\d+|\$)(?:,(?:\d+|\$))?p(?: [\w./][^ ]*)*")
"""Lines by number; other scripts of sed can write files and run commands."""
_GIT_GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks"})
_HARMLESS = regex(r"LANG|LC_\w+|TZ|NO_COLOR|CI|TERM|FORCE_COLOR|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE)")
"""Variables that may be set for a command that a rule allows."""
_OBEYED = regex(
    r"PATH|HOME|IFS|SHELL|ENV|SHELLOPTS|CDPATH|GLOBIGNORE|FIGNORE|PS\d|PROMPT_\w+|PAGER|EDITOR|VISUAL|BROWSER|LESS\w*"
    r"|(?:BASH|LD_|DYLD_|GIT_|PYTHON|NODE_|XDG_|RUFF|MYPY|PERL|RUBY|JAVA|VIRTUAL_|RIPGREP|OPENSSL|SSL)\w*"
    r"|(?:GREP|AWK|GAWK)\w*"
)
"""Variables that programs or the shell obey, so that they change what a command does."""


def find_bad_assignment(simple: SimpleCommand) -> str | None:
    """Return a variable that is set and could change what a command does."""
    if simple.words:
        return next((name for name, _ in simple.assigned if not _HARMLESS.fullmatch(name)), None)
    return next((name for name, _ in simple.assigned if _OBEYED.fullmatch(name)), None)


def is_reading(simple: SimpleCommand) -> bool:
    """Return whether a command is one that only reads, so that it needs no rule."""
    if not simple.words or simple.words[0].text == "[":
        return True
    program, *arguments = simple.words
    if program.text == "cd":
        return len(arguments) == 1 and arguments[0].is_known and arguments[0].text != "-"
    if program.text == "git":
        words = [word for word in arguments if word.text not in _GIT_GLOBAL]
        return bool(words) and words[0].text in _GIT_READING
    if program.text == "sed":
        return _PRINTING_SED.fullmatch(join_words(tuple(arguments))) is not None
    if program.text in ("find", "uniq") and any(word.loose for word in arguments):
        return False
    operands = [word for word in arguments if not word.text.startswith("-")]
    return program.text in _READING and not (program.text == "uniq" and len(operands) > 1)


_DANGERS: Mapping[str, str] = {
    "cargo": "--config",
    "find": "-delete -ok -okdir -fls -fprint -fprint0 -fprintf -files0-from",
    "git": (
        "-c -C --config-env --exec-path --git-dir --work-tree --exec --output --ext-diff --textconv "
        "--open-files-in-pager --filters --show-signature --paginate *O"
    ),
    "go": "-exec -toolexec -vettool --toolexec --vettool -fix --fix -w -o",
    "mypy": (
        "--install-types --python-executable --cache-dir --junit-xml --config-file --shadow-file --write "
        "--any-exprs-report --cobertura-xml-report --html-report --linecount-report --linecoverage-report "
        "--lineprecision-report --txt-report --xml-report --xslt-html-report --xslt-txt-report"
    ),
    "pytest": (
        "--basetemp --junitxml --junit-xml --log-file --debug --override-ini --pastebin --confcutdir "
        "--rootdir --config-file --cache-clear --pdb *opc"
    ),
    "rg": "--pre --hostname-bin --search-zip *z",
    "ruff": "--fix --fix-only --unsafe-fixes --add-noqa --output-file --config --cache-dir *o",
    "sort": "--output --compress-program --temporary-directory *oT",
}
"""Arguments with which programs that only read, and those of the shipped roles' lists, run, write or delete.

They count only where no sandbox holds the role. A long flag counts also by any beginning of it, as many
programs take it; a letter after `*` also among others behind one dash.
"""


def find_dangerous_argument(words: tuple[ShellWord, ...]) -> str | None:
    """Return the first argument with which a usual program would run, write or delete something.

    One that may turn out to be any flag counts, unless it stands behind `--`.
    """
    # `python -m tool …` is the tool's own command line
    is_module = re.fullmatch(r"python[\d.]*", PurePosixPath(words[0].text).name) and len(words) > 2
    program, *arguments = words[2:] if is_module and words[1].text == "-m" else words
    flags = _DANGERS.get(PurePosixPath(program.text).name, "").split()
    ends = next((at for at, word in enumerate(arguments) if word.text == "--"), len(arguments))
    given = (word for word in arguments[:ends] if word.loose or word.text.startswith("-"))
    found = next((word for word in given if flags and (word.loose or _is_among(word.text, flags))), None)
    return None if found is None else found.text.replace(UNKNOWN_TEXT, "…")


def _is_among(word: str, flags: list[str]) -> bool:
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and any(flag.startswith(name) for flag in flags)
    letters = flags[-1] if flags[-1].startswith("*") else ""
    return name in flags or any(letter in letters for letter in name[1:])


_KEPT = frozenset({".log", ".txt", ".out", ".json", ".jsonl", ".csv"})
"""What programs write for people or for later, and do not obey."""


def find_outputs(command: str) -> frozenset[str]:
    """Return the paths, as they stand in a command, of the files that it only writes.

    Only files for people, which nothing else in the command names; a command that cannot be judged has none.
    What a pattern or a variable brings in is not looked for: no file that only they name is sealed either.
    """
    try:
        script = parse_command(command)
    except TooComplex:
        return frozenset()
    targets = [one.target for one in script.redirections if one.writes]
    for simple in script.commands:
        if simple.words and simple.words[0].text == "tee":
            targets += [word for word in simple.words[1:] if not word.text.startswith("-")]
    named = {word.text: PurePosixPath(word.text) for word in targets if word.is_known}
    return frozenset(
        text for text, path in named.items() if path.suffix in _KEPT and command.count(path.name) == 1
    )
