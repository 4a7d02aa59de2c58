"""The exit codes of the command."""

from enum import IntEnum


class Exit(IntEnum):
    """What the process ends with; fixed, scripts rely on it."""

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
