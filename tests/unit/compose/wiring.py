"""How an agent is put together, in names only: to compare two builds, and to print one."""

import hashlib
from typing import Any

from agentflow.compose.builder import Audience
from agentflow.core.ports import Observer
from agentflow.loop.agent import Agent


def wiring(agent: Agent) -> dict[str, Any]:
    """Return what is wired into an agent; the system prompt stands as its digest."""
    observe = agent.observe
    audience = observe if isinstance(observe, Audience) else Audience((), (observe,))
    return {
        "role": agent.role.name,
        "model": agent.model.name,
        "model_id": agent.model_id,
        "system": hashlib.sha256(agent.system.encode()).hexdigest()[:12],
        "tools": [tool.name for tool in agent.tools],
        "submit": agent.submit.name if agent.submit else None,
        "hooks": [hook.name for hook in agent.hooks.hooks],
        "records": [name_of(record) for record in audience.records],
        "observers": [name_of(observer) for observer in audience.observers],
    }


def name_of(observer: Observer) -> str:
    return str(getattr(observer, "__qualname__", type(observer).__name__))
