"""The part of a request that stays the same for a whole run."""

from pathlib import Path

from agentflow.core.role import Role


def prompt_text(name: str) -> str:
    """Return one of the texts that the program adds, from `prompts/`."""
    return (Path(__file__).parent / "prompts" / name).read_text("utf-8").strip()


def system_prompt(role: Role, submit: str | None) -> str:
    """Return the role's prompt with its submission protocol, which no replaced prompt can lose."""
    if submit is None:
        return role.prompt
    return f"{role.prompt}\n\n{prompt_text('protocol.md').format(submit=submit)}"
