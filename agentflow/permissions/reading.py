"""Commands that only read and need no rule, and variables that may be set for a command."""

import re
from collections.abc import Iterator

from agentflow.permissions.words import Simple, Word, spelled

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
"""Programs that only read, with the arguments that reading() lets through."""
_FIND = re.compile(
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
_GIT_LISTING = re.compile(
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
_HARMLESS = re.compile(
    r"LANG|LC_\w+|TZ|NO_COLOR|CI|TERM|COLUMNS|LINES|FORCE_COLOR|CLICOLOR\w*|NODE_ENV|RUST_BACKTRACE|TMPDIR"
    r"|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|WARNINGS=(?:default|error|ignore)|UTF8)|PYTEST_DISABLE_PLUGIN_AUTOLOAD"
)
"""Variables that may be set for a command that a rule allows."""
_OBEYED = re.compile(
    r"PATH|HOME|IFS|SHELL|ENV|SHELLOPTS|CDPATH|GLOBIGNORE|FIGNORE|PS\d|PROMPT_\w+|PAGER|EDITOR|VISUAL|BROWSER|LESS\w*"
    r"|(?:BASH|LD_|DYLD_|GIT_|PYTHON|NODE_|XDG_|RUFF|MYPY|PERL|RUBY|JAVA|VIRTUAL_|RIPGREP|OPENSSL|SSL)\w*"
    r"|(?:GREP|AWK|GAWK)\w*"
)
"""What programs and the shell itself obey: set first, they change what later words mean."""
_VERSIONED = re.compile(r"(?:python[\d.]*|node|npm|cargo|rustc|gcc|make|pip|uv|ruff|mypy|java|git|bash|tsc)")


def bad_assignment(simple: Simple) -> str | None:
    """Return a variable that is set and could change what a command does."""
    if simple.words:
        return next((name for name, _ in simple.assigned if not _HARMLESS.fullmatch(name)), None)
    return next((name for name, _ in simple.assigned if _OBEYED.fullmatch(name)), None)


def is_obeyed(name: str) -> bool:
    """Tell whether programs or the shell obey a variable of this name, and not only in how they print."""
    return _OBEYED.fullmatch(name) is not None and not _HARMLESS.fullmatch(name)


def is_reading(simple: Simple) -> bool:
    """Tell whether a command is one that only reads, so that it needs no rule."""
    if not simple.words or simple.words[0].text == "[":
        return True
    program, *rest = (word.text for word in simple.words)
    if _VERSIONED.fullmatch(program) and rest in (["--version"], ["-V"]):
        return True
    if program == "git":
        return is_reading_git(simple.words)
    if program == "command":
        return bool(rest) and rest[0] in ("-v", "-V")
    return program in _READING and _reads(program, simple.words[1:])


def _reads(program: str, arguments: tuple[Word, ...]) -> bool:
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


def _without_runs(arguments: tuple[Word, ...]) -> Iterator[Word]:
    """Yield find's words without the commands it runs, which are judged by themselves."""
    is_inside = False
    for word in arguments:
        if not is_inside:
            yield word
        is_inside = word.text not in (";", "+") if is_inside else word.text in ("-exec", "-execdir")


def is_reading_git(words: tuple[Word, ...]) -> bool:
    rest = list(words[1:])
    while rest and rest[0].text in _GIT_GLOBAL:
        rest.pop(0)
    if not rest or not rest[0].is_known:
        return False
    return rest[0].text in _GIT_READING or _GIT_LISTING.fullmatch(spelled(tuple(rest))) is not None
