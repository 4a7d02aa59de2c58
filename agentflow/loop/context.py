"""The part of a request that stays the same for a whole run."""

from importlib.resources import files

from agentflow.core.role import Role
from agentflow.redact import redacted


def prompt_text(name: str) -> str:
    """Return one of the texts that the program adds, from `prompts/`."""
    return files("agentflow.loop").joinpath("prompts", name).read_text("utf-8").strip()


def system_prompt(role: Role, submit: str | None) -> str:
    """Return the role's prompt with its submission protocol, which no replaced prompt can lose."""
    prompt = redacted(role.prompt)
    if submit is None:
        return prompt
    return f"{prompt}\n\n{prompt_text('protocol.md').format(submit=submit)}"
