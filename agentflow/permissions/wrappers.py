"""Every command that a shell command would run, those of programs that run other programs included.

A command that runs text which is not in it is refused.
"""

import re
from collections.abc import Iterator, Mapping

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.permissions.shell_parser import (
    MAX_COMMANDS,
    UNKNOWN_TEXT,
    Redirection,
    ShellScript,
    ShellWord,
    SimpleCommand,
    TooComplex,
    join_words,
    parse_command,
)

_DEPTH = 4
_MAX_WORDS = 200
"""Of a program that runs others; each word may be the one that is run."""


class Wrapper(Record):
    """The command line of a program that only runs another one."""

    flags: str = "(?!)"
    """Options that stand alone."""
    valued: str = "(?!)"
    """Options that are followed by a value."""
    operands: int = 0
    """Words before the program that is run."""


_WRAPPERS: Mapping[str, Wrapper] = {
    "builtin": Wrapper(),
    "command": Wrapper(flags="-p"),
    "env": Wrapper(flags=r"-i|-|\w+=.*", valued="-u"),
    "nice": Wrapper(flags=r"-\d+|-n-?\d+|--adjustment=-?\d+", valued="-n"),
    "nohup": Wrapper(),
    "stdbuf": Wrapper(flags=r"-[ioe]\w+|--(?:input|output|error)=\w+", valued="-[ioe]"),
    "time": Wrapper(flags="-p"),
    "timeout": Wrapper(
        flags=r"-v|--(?:verbose|foreground|preserve-status)|-[ks]\w+|--(?:kill-after|signal)=\w+",
        valued="-k|-s",
        operands=1,
    ),
    "xargs": Wrapper(flags=r"-[0rtx]+|-[anPLsIdE].+|--null|--no-run-if-empty", valued="-[anPLsIdE]"),
}
"""Wrappers with known options: the command inside is judged in their place."""
RUNS_OTHERS = frozenset(
    {
        *("sudo", "doas", "su", "runuser", "exec", "setsid", "ionice", "chrt", "taskset"),
        *("flock", "watch", "busybox", "toybox", "strace", "ltrace", "gdb", "parallel", "chroot"),
        *("unshare", "nsenter", "ssh", "script", "unbuffer", "systemd-run", "fakeroot"),
        *("xvfb-run", "entr", "rlwrap", "find"),
        *_WRAPPERS,
    }
)
"""Any later word of these may be a program; a wildcard never allows them."""
LAUNCHERS = frozenset(
    {
        *("npx", "bunx", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "rye", "tox", "docker"),
        *("podman", "yarn", "pnpm", "bundle", "conda", "mise", "direnv", "fd"),
    }
)
"""Any later word of these may be a program too, but a rule may name what they run: `uv run pytest *`."""


def unwrap_command(command: str) -> ShellScript:
    """Return all that a shell command would run, wrappers opened. Raises TooComplex."""
    script = parse_command(command)
    commands: list[SimpleCommand] = []
    redirections: list[Redirection] = [*script.redirections]
    for simple in script.commands:
        _open(simple, commands, redirections, _DEPTH)
    for at, simple in enumerate(tuple(commands)):
        if name_program(simple.words) in SHELLS and is_reading_program(simple):
            commands[at] = simple.replace(is_opened=True)
            found = _read_document(simple, script)
            redirections.extend(found.redirections)
            for each in found.commands:
                _open(each, commands, redirections, _DEPTH)
    return script.replace(commands=tuple(commands), redirections=tuple(redirections))


def _open(
    simple: SimpleCommand, commands: list[SimpleCommand], redirections: list[Redirection], depth: int
) -> None:
    if depth == 0:
        raise TooComplex("commands are nested too deeply")
    if len(commands) >= MAX_COMMANDS:
        raise TooComplex(f"it has more than {MAX_COMMANDS} commands")
    require_clear(simple)
    inner, texts = list(_run_by(simple)), list(_texts_of(simple))
    for text in texts:
        script = parse_command(text)
        redirections.extend(script.redirections)
        inner.extend(script.commands)
    is_wrapper = name_program(simple.words) in _WRAPPERS and bool(inner)
    commands.append(simple.replace(is_opened=is_wrapper or bool(texts)))
    for found in inner:
        _open(found, commands, redirections, depth - 1)


def _read_document(simple: SimpleCommand, script: ShellScript) -> ShellScript:
    if len(script.commands) > 1 or not script.document:
        name = name_program(simple.words)
        raise TooComplex(f"{name} runs what it reads from its input; write it to a file and run that")
    found = parse_command(script.document)
    if any(map(is_reading_program, found.commands)):
        raise TooComplex("commands are nested too deeply")
    return found


def _run_by(simple: SimpleCommand) -> Iterator[SimpleCommand]:
    name = name_program(simple.words)
    if name == "find":
        yield from _list_found_commands(simple)
    wrapper = _WRAPPERS.get(name)
    at = None if wrapper is None else _program_at(simple.words, wrapper)
    if at is None or at >= len(simple.words):
        return
    given = [word.text.partition("=") for word in simple.words[1:at] if name == "env" and "=" in word.text]
    assigned = tuple((key, ShellWord(text=value)) for key, _, value in given)
    read = (ShellWord(text=UNKNOWN_TEXT, loose=True),) if name == "xargs" else ()
    yield SimpleCommand(
        words=(*simple.words[at:], *read), source=simple.source, assigned=(*simple.assigned, *assigned)
    )


def _program_at(words: tuple[ShellWord, ...], wrapper: Wrapper) -> int | None:
    """Return where the program stands that a wrapper runs; None when its options are not known."""
    at = 1
    while (
        at < len(words) and (text := words[at].text) and (text[0] == "-" or re.fullmatch(wrapper.flags, text))
    ):
        if text == "--":
            at += 1
            break
        if re.fullmatch(wrapper.valued, text):
            at += 1
        elif not re.fullmatch(wrapper.flags, text, re.DOTALL):
            return None
        at += 1
    return at + wrapper.operands


def _list_found_commands(simple: SimpleCommand) -> Iterator[SimpleCommand]:
    words = simple.words
    for begin, word in enumerate(words):
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((at for at in range(begin, len(words)) if words[at].text in (";", "+")), len(words))
            inner = tuple(
                ShellWord(text=each.text.replace("{}", UNKNOWN_TEXT), loose=True)
                if "{}" in each.text
                else each
                for each in words[begin + 1 : end]
            )
            yield SimpleCommand(words=inner, source=simple.source)


def _texts_of(simple: SimpleCommand) -> Iterator[str]:
    words, name = simple.words, name_program(simple.words)
    if name in SHELLS:
        flags = [at for at, word in enumerate(words) if re.fullmatch(r"-[a-z]*c[a-z]*", word.text)]
        if flags:
            text = next((word for word in words[flags[0] + 1 :] if not word.text.startswith("-")), None)
            if text is None or not text.is_known:
                raise TooComplex("what a shell runs is known only when it runs")
            yield text.text
        elif len(words) > 1 and not words[1].is_known:
            raise TooComplex(f"what {name} runs is known only when it runs")


def list_possible_commands(simple: SimpleCommand) -> Iterator[tuple[ShellWord, ...]]:
    """Yield a command's words, and those of every command that its arguments may turn out to be."""
    yield simple.words
    name = name_program(simple.words)
    rest = simple.words[1:]
    if name in RUNS_OTHERS | LAUNCHERS:
        if len(rest) > _MAX_WORDS:
            raise TooComplex(f"{name} has more than {_MAX_WORDS} words")
        more = (ShellWord(text=UNKNOWN_TEXT, loose=True),) if name == "xargs" else ()
        for at, word in enumerate(rest):
            if word.is_known:
                yield (*rest[at:], *more)
            if word.is_known and re.search(r"\s", word.text):  # it may be a command line
                for inner in unwrap_command(word.text).commands:
                    yield from list_possible_commands(inner)
    elif rest and rest[0].text.startswith("-"):  # options before what they belong to, as in `git -C x push`
        for at in range(1, min(len(rest), 8)):
            yield (simple.words[0], *rest[at:])


_RESERVED = frozenset(
    {
        *("{", "}", "!", "[[", "]]", "if", "then", "else", "elif", "fi", "for", "while", "until"),
        *("do", "done", "case", "esac", "function", "select", "in"),
    }
)
"""Words of the shell's grammar; in the place of a program they show that the parser misread it."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "ash"})
INTERPRETERS = regex(r"(?:python|pypy)[\d.]*|node|perl|ruby|php|lua|deno|bun|R|Rscript|tclsh")
_OPAQUE = frozenset({"eval", "alias", "enable", "hash", "fc", "bind", "compgen", "complete", "coproc", "let"})
_OPAQUE_WITH = {
    "trap": regex(r".*\s.*|[^-\s]\S*"),
    "mapfile": regex("-C.*"),
    "readarray": regex("-C.*"),
    "printf": regex("-v.*"),
    "test": regex("-[vR]"),
    "[": regex("-[vR]"),
    "wait": regex("-p.*"),
    "jobs": regex("-x.*"),
    "env": regex("-S.*|--split-string.*|-[a-z]*S.*"),
    "set": regex(r"[-+][a-zA-Z]*[akv][a-zA-Z]*|allexport"),
    "shopt": regex("expand_aliases|extglob"),
}
"""Arguments with which a program runs or evaluates text that is not looked at."""
_EVALUATED = regex(r".*\[.*")
_NAMING = frozenset({"declare", "typeset", "local", "export", "readonly", "read", "unset", "getopts"})
_GIT_SETTING = regex(
    r"(?:user\.(?:name|email)|color\.[\w.]+|advice\.\w+|core\.quotepath|init\.defaultbranch"
    r"|commit\.gpgsign|diff\.(?:renames|algorithm|noprefix))=[^!]*|core\.pager=(?:cat)?",
    re.IGNORECASE,
)
_GIT_RUNS = regex(
    r"git (?:.* )?(?:foreach|filter-branch|bisect (?:.* )?run|--exec\b.*|--exec-path=.*)(?: .*)?"
)


def name_program(words: tuple[ShellWord, ...]) -> str:
    return words[0].text.rpartition("/")[2] or words[0].text if words else ""


def require_clear(simple: SimpleCommand) -> None:
    """Raise TooComplex for a command that runs text which is not in it."""
    words = simple.words
    if not words:
        return
    if not words[0].is_known:
        raise TooComplex("which program it runs is known only when it runs")
    if words[0].text in _RESERVED:
        raise TooComplex(f"where {words[0].text} begins or ends is not clear")
    name, texts = name_program(words), [word.text for word in words[1:]]
    opaque = _OPAQUE_WITH.get(name)
    if (name in _OPAQUE and texts) or (opaque and any(map(opaque.fullmatch, texts))):
        raise TooComplex(f"{name} evaluates text")
    if name in _NAMING and any(map(_EVALUATED.fullmatch, texts)):
        raise TooComplex("an index is evaluated")
    if name in (".", "source") and not (len(words) > 1 and words[1].is_known):
        raise TooComplex(f"{name} of a file that is known only when it runs")
    if name == "git":
        _require_plain_git(words)


def _require_plain_git(words: tuple[ShellWord, ...]) -> None:
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        is_setting = words[at].text == "-c" and at + 1 < len(words)
        if words[at].text.startswith("-c") and not (
            is_setting and _GIT_SETTING.fullmatch(words[at + 1].text)
        ):
            raise TooComplex("git -c sets what can run programs")
        at += 2 if words[at].text in ("-c", "-C", "--git-dir", "--work-tree") else 1
    if _GIT_RUNS.fullmatch(join_words(words)):
        raise TooComplex("git runs a command line of its own")


def is_reading_program(simple: SimpleCommand) -> bool:
    """Return whether a shell or interpreter is called without a program, so that its input is one."""
    name, texts = name_program(simple.words), [word.text for word in simple.words[1:]]
    if name not in SHELLS and not INTERPRETERS.fullmatch(name):
        return False
    return not texts or texts[0] == "-" or all(re.fullmatch("-[silu]+", text) for text in texts)
