"""How much of a command is judged by its words, and how much is left to the operating system."""

from enum import StrEnum

from agentflow.core.ports import Runner
from agentflow.core.role import Role

_LOOKS, _VERIFIES, _SHIPPED = "explorer", "verifier", "bundled"
_UNCONFINED = "none"


class Scope(StrEnum):
    """What decides about a part of a command."""

    LISTED = "listed"
    """The role's list, and a list of programs and options that only read."""
    READING = "reading"
    """The same, but what a reading program could write or reach is kept in by the operating system."""
    LOOKING = "looking"
    """Any program runs but those that run what the repository holds."""
    ANYTHING = "anything"
    """Any command runs, also one that cannot be judged."""


def scope_of(role: Role, runner: Runner) -> Scope:
    """Return what decides about a role's commands.

    A role file of the user or of the repository means what it lists; only the shipped roles have more.
    """
    is_shipped = role.origin == _SHIPPED
    is_unbounded = any(rule.pattern is None for rule in (*role.rules_for("Bash"), *role.rules_for("shell")))
    if is_unbounded and runner.level != _UNCONFINED:
        return Scope.ANYTHING
    if not runner.is_sealed:
        return Scope.LISTED
    if is_shipped and role.part == _VERIFIES:
        return Scope.ANYTHING
    return Scope.LOOKING if is_shipped and role.part == _LOOKS else Scope.READING
