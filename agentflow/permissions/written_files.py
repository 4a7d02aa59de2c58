"""The files that a shell command only writes: its output goes there, and nothing in it runs or reads them."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from agentflow.core.regex import regex
from agentflow.permissions.shell_command import ShellScript, ShellWord, SimpleCommand, TooComplex
from agentflow.permissions.shell_parser import parse_command
from agentflow.permissions.wrappers import RUNS_OTHERS, SHELLS

_WRITERS = frozenset({"tee", "touch"})
"""Every file that one of these is given is written."""
_PRINTERS = _WRITERS | {
    *("echo", "printf", "cat", "date", "jq", "true", ":", "[", "test", "mkdir", "head", "tail", "wc", "sort"),
    *("cut", "tr", "grep", "basename", "dirname", "hostname", "whoami", "id", "pwd", "uname", "read", "exit"),
}
"""Programs that run nothing that they are given, so that a word which only the shell knows does no harm."""
_INTERPRETERS = SHELLS | {"python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "source", "."}
"""What one of these runs is its first word, or is not known."""
_OBEYED = frozenset({".py", ".sh", ".js", ".ts", ".rb", ".pl", ".toml", ".cfg", ".ini", ".yaml", ".yml"})
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
    return frozenset(path for path in _targets(script) if not (_is_obeyed(path) or _is_used(path, others)))


def _program(simple: SimpleCommand) -> str:
    return simple.words[0].text.rpartition("/")[2] if simple.words else ""


def _may_run_unknown(simple: SimpleCommand) -> bool:
    program, words = _program(simple), simple.words
    if not words or program in _PRINTERS:
        return False
    if program in _INTERPRETERS and (len(words) == 1 or words[1].text.startswith("-")):
        return len(words) == 1 or words[1].text != "-m"
    return program in RUNS_OTHERS or program == "eval" or not all(word.is_known for word in words)


def _is_obeyed(path: str) -> bool:
    file = PurePosixPath(path.lower())
    return file.suffix in _OBEYED or file.name in _OBEYED_NAMES


def _targets(script: ShellScript) -> Iterator[str]:
    """Yield where output goes, as far as that is known."""
    targets = [one.target for one in script.redirections if one.writes]
    for simple in script.commands:
        if _program(simple) in _WRITERS:
            targets += [word for word in simple.words[1:] if not word.text.startswith("-")]
    return (word.text for word in targets if word.is_known)


def _other_paths(script: ShellScript) -> Iterator[PurePosixPath]:
    """Yield whatever in a command may name a file that is run or read."""
    words: list[ShellWord] = [one.target for one in script.redirections if not one.writes]
    for simple in script.commands:
        words += [value for _, value in simple.assigned]
        words += simple.words[:1] if _program(simple) in _WRITERS | {"mkdir"} else simple.words
    for word in words:
        for piece in {word.text, *_PIECES.split(word.text)} - {"", ".", "/"}:
            yield PurePosixPath(piece)


def _is_used(path: str, others: frozenset[PurePosixPath]) -> bool:
    """Return whether a file may be what another word names, or lie in a folder that one names."""
    file = PurePosixPath(path)
    return any(other.name == file.name or other in file.parents for other in others)
