"""Which role files are sub-agents, and whether those that other files name are there."""

from collections.abc import Iterator

from agentflow.core.errors import InvalidFile
from agentflow.core.fold import DELEGATE
from agentflow.core.role import Role
from agentflow.core.tool import Effect, Tool


def subagents(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Return the roles that play no part of the pipeline, by name."""
    return tuple(sorted((role for role in roles if role.part is None), key=lambda role: role.name))


def require_known(role: Role, known: tuple[Role, ...]) -> None:
    """Raise InvalidFile for a role that names a sub-agent which does not exist."""
    names = {each.name for each in known}
    listed = [name for rule in role.rules_for(DELEGATE) for name in rule.names]
    for key, wanted in (("tools", (*listed, *role.handoffs)), ("metadata", role.direct)):
        if missing := sorted(set(wanted) - names):
            raise InvalidFile(
                role.source,
                f"{key}: there is no sub-agent {missing[0]}",
                line=role.lines.get(key),
                hint=f"sub-agents are {', '.join(sorted(names))}" if names else "no role file is a sub-agent",
            )


def direct_problems(role: Role, tools: tuple[Tool, ...]) -> Iterator[str]:
    """Yield what is wrong with whom a role lets answer in its place."""
    if not role.direct:
        return
    if len(role.direct) > 1 and not role.concatenates:
        yield (
            f"direct: the answers of {', '.join(role.direct)} have to be put together; "
            "name one, or say agentflow-merge: concatenate"
        )
    changing = [tool.name for tool in tools if tool.effect is Effect.WRITE and role.rules_for(tool.name)]
    if changing:
        yield f"direct: only a role that reads can be answered for, and {role.name} has {', '.join(changing)}"
