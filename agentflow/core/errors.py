"""Every exit code of the command, and every error of the package as one tree.

AgentflowError            has .hint and the exit code of CONTRACT section 2
  UsageError              the command line asks for something impossible
  ConfigError             InvalidFile, UnknownRole, UnknownTool, UnknownSkill
  ModelError              ModelUnavailable (ModelRefused), ModelRejected (PromptTooLong)
  NoSandbox               there is no sandbox, and nobody allowed commands to run without one
  Halted                  a hook ended the whole task
  StateError              CorruptState, TaskNotFound, TaskLocked, TaskOver, Suspended
  ToolError               InvalidInput, NotAllowed, OutsideWorkspace

A ToolError becomes a tool result for the model; all others end the command.
"""

import errno
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of the command; they are fixed, since scripts rely on them."""

    VERIFIED = 0
    NOT_VERIFIED = 1
    CONFIG = 2
    LIMIT = 3
    CAVEAT = 4
    BLOCKED = 5
    NO_MODEL = 6
    NO_SANDBOX = 7
    TAMPERED = 8
    INTERNAL = 70
    SUSPENDED = 75
    INTERRUPTED = 130
    TERMINATED = 143


class AgentflowError(Exception):
    """Anything the package raises on purpose."""

    exit_code: Exit = Exit.CONFIG

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        """Advice for the person, or empty."""


def describe_os_error(error: OSError) -> str:
    place = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{place}"


def advise_on_os_error(error: OSError, otherwise: str = "") -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some disk space, then run the command again; what was done so far is kept"
    return otherwise


class UsageError(AgentflowError):
    """The command line asks for something impossible."""


class ConfigError(AgentflowError):
    """A file or setting is wrong."""


class InvalidFile(ConfigError):
    """A file is not valid; the message names file, line and key."""

    def __init__(self, source: str, message: str, *, line: int | None = None, hint: str = "") -> None:
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {message}", hint=hint)
        self.source = source
        self.line = line
        self.problem = message


class UnknownRole(ConfigError):
    """A role is asked for that no file defines."""


class UnknownTool(ConfigError):
    """A tool or category is named that does not exist."""


class UnknownSkill(ConfigError):
    """A skill is named that no folder holds."""


class ModelError(AgentflowError):
    """The model gave no usable reply."""

    exit_code = Exit.NO_MODEL


class ModelUnavailable(ModelError):
    """The model may answer later."""

    def __init__(self, message: str, *, hint: str = "", is_settled: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_settled = is_settled
        """All tries that the settings allow were made; another one now would fail too."""


class ModelRefused(ModelUnavailable):
    """The server refuses it until a person corrects the key, the account or the settings."""

    def __init__(self, message: str, *, hint: str = "", is_settled: bool = True) -> None:
        super().__init__(message, hint=hint, is_settled=is_settled)


PASSING_STATUSES = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))
"""The HTTP statuses that pass by themselves."""


class ModelRejected(ModelError):
    """The model cannot do this; asking again changes nothing."""


class PromptTooLong(ModelRejected):
    """The request does not fit into the model's window; a shorter one may."""


class NoSandbox(AgentflowError):
    """There is no sandbox, and nobody allowed commands to run without one."""

    exit_code = Exit.NO_SANDBOX


class Halted(AgentflowError):
    """A hook or a permission rule ended the whole task."""

    exit_code = Exit.BLOCKED


class StateError(AgentflowError):
    """Saved state cannot be used."""


class CorruptState(StateError):
    """A state file is damaged; nothing was overwritten."""


class TaskNotFound(StateError):
    """No task with that id is in this repository."""


class TaskLocked(StateError):
    """Another process is working on it."""


class TaskOver(StateError):
    """The task has come to its end and cannot go on."""


class Suspended(StateError):
    """The task waits for a person."""

    exit_code = Exit.SUSPENDED


class ToolError(AgentflowError):
    """A tool call failed; the model is told why."""


class InvalidInput(ToolError):
    """The input of a tool call is not valid."""


class NotAllowed(ToolError):
    """The role may not make this call; `by` names the list, rule or hook that says so."""

    def __init__(self, message: str, by: str = "") -> None:
        super().__init__(message)
        self.by = by


class OutsideWorkspace(ToolError):
    """A path leads out of the repository, or to a place no tool may touch."""
