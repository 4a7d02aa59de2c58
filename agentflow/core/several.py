"""Several shell commands as one that runs all of them and fails if any fails."""

from collections.abc import Sequence

from agentflow.core.regex import regex

_TOGETHER = regex(r"r=0; (.*); exit \$r")
_PART = regex(r"\{ (.*?); \} \|\| r=1")


def every(commands: Sequence[str]) -> str:
    """Return one shell command that runs all of them and fails if any fails."""
    if len(commands) == 1:
        return commands[0]
    runs = "; ".join(f"{{ {command}; }} || r=1" for command in commands)
    return f"r=0; {runs}; exit $r"


def split_several(command: str) -> tuple[str, ...]:
    """Return the commands of which `every` has made one; any other is the only one."""
    together = _TOGETHER.fullmatch(command)
    return tuple(_PART.findall(together[1])) if together else (command,)


def describe_several(command: str) -> str:
    """Return a command as people are shown it: those that run, without what joins their exit codes."""
    return "; ".join(split_several(command))
