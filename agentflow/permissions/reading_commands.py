"""Commands that only read or only write, and the arguments with which they would do more."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.regex import regex
from agentflow.permissions.shell_parser import (
    UNKNOWN_TEXT,
    ShellScript,
    ShellWord,
    SimpleCommand,
    TooComplex,
    join_words,
    parse_command,
)
from agentflow.permissions.wrappers import RUNS_OTHERS, SHELLS

_READING = frozenset(
    {
        *("ls", "cat", "echo", "pwd", "head", "tail", "grep", "egrep", "fgrep", "find", "wc"),
        *("which", "diff", "stat", "du", "df", "cd", "true", "false", ":", "test", "["),
        *("basename", "dirname", "realpath", "readlink", "cut", "tr", "nl", "tac", "rev"),
        *("paste", "join", "comm", "fold", "column", "seq", "cmp", "md5sum", "sha1sum"),
        *("sha256sum", "cksum", "strings", "file", "type", "printf", "expr", "date", "sleep"),
        *("id", "whoami", "uname", "uniq", "sort", "rg", "tree", "jq", "awk", "sed", "read"),
        *("break", "continue", "exit", "return", "shift", "od", "hexdump", "nproc", "expand"),
        *("unexpand", "fmt", "tsort"),
    }
)
"""Programs that only read, with the arguments that `_reads` lets through."""
_FIND = regex(
    r"-(?:i?name|i?path|i?wholename|i?regex|regextype|x?type|maxdepth|mindepth|size|[acm]time|[acm]?newer\w*|[acm]min"
    r"|print0?|printf|not|o|a|or|and|prune|empty|perm|user|group|nouser|links|ls|L|H|P|depth|xdev|mount|quit|readable"
    r"|executable|writable|true|false|follow|exec|execdir|samefile|inum|lname|daystart|\d+)|[^-].*|-",
    re.DOTALL,
)
_GIT_READING = frozenset(
    {
        *("status", "diff", "log", "show", "blame", "ls-files", "ls-tree", "rev-parse"),
        *("rev-list", "cat-file", "describe", "shortlog", "grep", "merge-base", "name-rev"),
        *("diff-tree", "diff-index", "diff-files", "for-each-ref", "count-objects"),
        *("check-ignore", "whatchanged", "version", "cherry", "range-diff", "show-ref"),
        *("check-attr", "var", "show-branch", "annotate"),
    }
)
_GIT_LISTING = regex(
    r"branch(?: (?:-[arvl]+"
    r"|--(?:list|all|remotes|show-current|verbose|merged|no-merged|contains)(?:[ =]\S+)?))*"
    r"|tag(?: (?:-l|--list)(?: \S+)*| -n\d*)*|remote(?: -v| get-url \S+)?|stash (?:list|show(?: -p| --stat)*)"
    r"|config (?:--(?:local|global) )?(?:--get(?:-all|-regexp)?|--list|-l|get|list)(?: [^-]\S*)*"
    r"|worktree list(?: --porcelain)?|reflog(?: show.*| -\d+)?|symbolic-ref (?:--short )?\S+"
    r"|submodule(?: status)?"
    r"|notes (?:list|show)(?: \S+)*|bisect log|remote show -n \S+"
    r"|apply (?:--(?:check|stat|numstat|summary) )+\S+"
)
_GIT_GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_HARMLESS = regex(
    r"LANG|LC_\w+|TZ|NO_COLOR|CI|TERM|COLUMNS|LINES|FORCE_COLOR|CLICOLOR\w*|NODE_ENV|RUST_BACKTRACE|TMPDIR"
    r"|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|WARNINGS=(?:default|error|ignore)|UTF8)|PYTEST_DISABLE_PLUGIN_AUTOLOAD"
)
"""Variables that may be set for a command that a rule allows."""
_OBEYED = regex(
    r"PATH|HOME|IFS|SHELL|ENV|SHELLOPTS|CDPATH|GLOBIGNORE|FIGNORE|PS\d|PROMPT_\w+|PAGER|EDITOR|VISUAL|BROWSER|LESS\w*"
    r"|(?:BASH|LD_|DYLD_|GIT_|PYTHON|NODE_|XDG_|RUFF|MYPY|PERL|RUBY|JAVA|VIRTUAL_|RIPGREP|OPENSSL|SSL)\w*"
    r"|(?:GREP|AWK|GAWK)\w*"
)
"""Variables that programs or the shell obey, so that they change what a command does."""
_VERSIONED = regex(r"(?:python[\d.]*|node|npm|cargo|rustc|gcc|make|pip|uv|ruff|mypy|java|git|bash|tsc)")


def find_bad_assignment(simple: SimpleCommand) -> str | None:
    """Return a variable that is set and could change what a command does."""
    if simple.words:
        return next((name for name, _ in simple.assigned if not _HARMLESS.fullmatch(name)), None)
    return next((name for name, _ in simple.assigned if _OBEYED.fullmatch(name)), None)


def is_reading(simple: SimpleCommand) -> bool:
    """Return whether a command is one that only reads, so that it needs no rule."""
    if not simple.words or simple.words[0].text == "[":
        return True
    program, *rest = (word.text for word in simple.words)
    if _VERSIONED.fullmatch(program) and rest in (["--version"], ["-V"]):
        return True
    if program == "git":
        return _is_reading_git(simple.words)
    if program == "command":
        return bool(rest) and rest[0] in ("-v", "-V")
    return program in _READING and _reads(program, simple.words[1:])


def _reads(program: str, arguments: tuple[ShellWord, ...]) -> bool:
    texts = [word.text for word in arguments]
    operands = [text for text in texts if not text.startswith("-")]
    if program == "find":
        return all(_FIND.fullmatch(word.text) and not word.loose for word in _without_runs(arguments))
    meant = {
        "uniq": len(operands) < 2 and not any(word.loose for word in arguments),
        "date": all(text.startswith(("+", "-")) for text in texts),
        "cd": len(arguments) == 1 and arguments[0].is_known and texts[0] != "-",
        "read": not any(_OBEYED.fullmatch(text) for text in texts),
    }
    return meant.get(program, True)


def _without_runs(arguments: tuple[ShellWord, ...]) -> Iterator[ShellWord]:
    is_inside = False
    for word in arguments:
        if not is_inside:
            yield word
        is_inside = word.text not in (";", "+") if is_inside else word.text in ("-exec", "-execdir")


def _is_reading_git(words: tuple[ShellWord, ...]) -> bool:
    rest = list(words[1:])
    while rest and rest[0].text in _GIT_GLOBAL:
        rest.pop(0)
    if not rest or not rest[0].is_known:
        return False
    return rest[0].text in _GIT_READING or _GIT_LISTING.fullmatch(join_words(tuple(rest))) is not None


_DANGERS: Mapping[str, str] = {
    "awk": "--file --include --load --exec --inplace *fEilI",
    "cargo": "--fix --config",
    "date": "--set *s",
    "file": "--compile *C",
    "git": (
        "-c -C --config-env --exec-path --git-dir --work-tree --exec --output --ext-diff --textconv "
        "--open-files-in-pager --upload-pack --receive-pack --filters --show-signature --edit-description "
        "--paginate *O"
    ),
    "go": "-exec -toolexec -vettool --toolexec --vettool -fix --fix -w -o",
    "mypy": (
        "--install-types --python-executable --cache-dir --junit-xml --config-file --any-exprs-report "
        "--cobertura-xml-report --html-report --linecount-report --linecoverage-report "
        "--lineprecision-report --txt-report --xml-report --xslt-html-report --xslt-txt-report "
        "--shadow-file --write"
    ),
    "pytest": (
        "--basetemp --junitxml --junit-xml --log-file --debug --override-ini --pastebin --confcutdir "
        "--rootdir --config-file --cache-clear --pdb *opc"
    ),
    "rg": "--pre --hostname-bin --search-zip *z",
    "ruff": "--fix --fix-only --unsafe-fixes --add-noqa --output-file --config --cache-dir *o",
    "sed": "--in-place --file --expression *if",
    "sort": "--output --compress-program --temporary-directory *oT",
    "tree": "--output *oR",
}
"""Arguments with which programs that only read, and those of the shipped roles' lists, run, write or delete.

They count only where no sandbox holds the role. A long flag counts also by any beginning of it, as many
programs take it; a letter after `*` also among others behind one dash.
"""
_VARIANTS: Mapping[str, str] = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed"}
"""Programs that take the arguments of another."""
_PRINTING_SED = regex(
    r"""(?:(?:(?:\d+|\$|/[^/\n]*/)?(?:,(?:\d+|\$|/[^/\n]*/))?!?[pdq=]
    |s([/|\#,:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpIi\d]*)(?:;\s*|$))+""",
    re.VERBOSE,
)
"""The scripts of sed that only select and print lines; others can write files and run commands."""
_PRINTING_AWK = regex(r"(?!.*(?:system|getline|close|fflush))[^|>@`]*", re.DOTALL)


def find_dangerous_argument(words: tuple[ShellWord, ...]) -> str | None:
    """Return the first argument with which a usual program would run, write or delete something.

    One that may turn out to be any flag counts, unless it stands behind `--`.
    """
    # `python -m tool …` is the tool's own command line
    is_module = re.fullmatch(r"python[\d.]*", PurePosixPath(words[0].text).name) and len(words) > 2
    program, *arguments = words[2:] if is_module and words[1].text == "-m" else words
    name = PurePosixPath(program.text).name
    name = _VARIANTS.get(name, name)
    if name not in _DANGERS:
        return None
    flags = _DANGERS[name].split()
    found = next(
        (word for word in _flags(name, arguments) if word.loose or _is_among(word.text, flags)), None
    )
    if found is None and name in ("sed", "awk"):
        found = _find_bad_script(name, arguments)
    return None if found is None else found.text.replace(UNKNOWN_TEXT, "…")


def _flags(name: str, arguments: list[ShellWord]) -> Iterator[ShellWord]:
    for word in arguments:
        if word.text == "--" and name not in ("find", "tar"):
            return
        if word.loose or word.text.startswith("-"):
            yield word


def _find_bad_script(name: str, arguments: list[ShellWord]) -> ShellWord | None:
    texts = [at for at, word in enumerate(arguments) if word.text in ("-e", "--expression")]
    scripts = [arguments[at + 1] for at in texts if at + 1 < len(arguments)]
    skipped = {at + 1 for at, word in enumerate(arguments) if name == "awk" and word.text in ("-F", "-v")}
    first = [word for at, word in enumerate(arguments) if not word.text.startswith("-") and at not in skipped]
    wanted = _PRINTING_SED if name == "sed" else _PRINTING_AWK
    return next(
        (word for word in scripts or first[:1] if not (word.is_known and wanted.fullmatch(word.text))), None
    )


def _is_among(word: str, flags: list[str]) -> bool:
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and any(flag.startswith(name) for flag in flags)
    letters = flags[-1] if flags[-1].startswith("*") else ""
    return name in flags or any(letter in letters for letter in name[1:])


_WRITERS = frozenset({"tee", "touch"})
"""Every file that one of these is given is written."""
_PRINTERS = _WRITERS | {
    *("echo", "printf", "cat", "date", "jq", "true", ":", "[", "test", "mkdir", "head", "tail", "wc", "sort"),
    *("cut", "tr", "grep", "basename", "dirname", "hostname", "whoami", "id", "pwd", "uname", "read", "exit"),
}
"""Programs that run none of their arguments, so that an argument with unknown text is harmless."""
_INTERPRETERS = SHELLS | {"python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "source", "."}
"""Programs that run the file in their first argument."""
_OBEYED_FILES = frozenset(
    {".py", ".sh", ".js", ".ts", ".rb", ".pl", ".toml", ".cfg", ".ini", ".yaml", ".yml"}
)
_OBEYED_NAMES = frozenset({"makefile", "gnumakefile", "package.json"})
"""Files that programs obey without being told."""
_PIECES = regex(r"[\s;|&()<>=\"'`$]+")


def find_outputs(command: str) -> frozenset[str]:
    """Return the paths, as they stand in a command, of the files that it only writes.

    A command that cannot be judged has none, and neither has one that may run what only the shell knows.
    """
    try:
        script = parse_command(command)
    except TooComplex:
        return frozenset()
    if any(_may_run_unknown(simple) for simple in script.commands):
        return frozenset()
    others = frozenset(_other_paths(script))
    return frozenset(path for path in _targets(script) if not _may_be_used(PurePosixPath(path), others))


def _may_be_used(path: PurePosixPath, others: frozenset[PurePosixPath]) -> bool:
    """Return whether programs obey a file untold, or another word may name it or a folder that it lies in."""
    is_obeyed = path.suffix.lower() in _OBEYED_FILES or path.name.lower() in _OBEYED_NAMES
    return is_obeyed or any(other.name == path.name or other in path.parents for other in others)


def _program(simple: SimpleCommand) -> str:
    return simple.words[0].text.rpartition("/")[2] if simple.words else ""


def _may_run_unknown(simple: SimpleCommand) -> bool:
    program, words = _program(simple), simple.words
    if not words or program in _PRINTERS:
        return False
    if program in _INTERPRETERS and (len(words) == 1 or words[1].text.startswith("-")):
        return len(words) == 1 or words[1].text != "-m"
    return program in RUNS_OTHERS or program == "eval" or not all(word.is_known for word in words)


def _targets(script: ShellScript) -> Iterator[str]:
    targets = [one.target for one in script.redirections if one.writes]
    for simple in script.commands:
        if _program(simple) in _WRITERS:
            targets += [word for word in simple.words[1:] if not word.text.startswith("-")]
    return (word.text for word in targets if word.is_known)


def _other_paths(script: ShellScript) -> Iterator[PurePosixPath]:
    words: list[ShellWord] = [one.target for one in script.redirections if not one.writes]
    for simple in script.commands:
        words += [value for _, value in simple.assigned]
        words += simple.words[:1] if _program(simple) in _WRITERS | {"mkdir"} else simple.words
    for word in words:
        for piece in {word.text, *_PIECES.split(word.text)} - {"", ".", "/"}:
            yield PurePosixPath(piece)
