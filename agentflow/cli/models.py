"""Which model a name stands for, and what the tiers stand for with it."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import anyio

from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.ports import Model, Observer
from agentflow.core.role import Role
from agentflow.model.tiers import DEEP, FAST, first_ids, ids_of, tier
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Deadlines, Settings

if TYPE_CHECKING:
    from agentflow.model.messages import Messages
    from agentflow.model.wire import Endpoint, Source

ADVICE = "for other tasks set ANTHROPIC_API_KEY, or name a model with --model or AGENTFLOW_MODEL"
_CLOSING_SECONDS = 0.1
_CLOUDS = ("bedrock", "vertex", "foundry")
_LIVE = ("anthropic", *_CLOUDS)
_NO_KEY = "set ANTHROPIC_API_KEY, or name a server of your own that needs none with ANTHROPIC_BASE_URL"


def choose_model(name: str, sandbox: Sandbox, settings: Settings, environ: Mapping[str, str]) -> Model:
    """Return the model of a name. Raises ConfigError, or ModelRejected without credentials."""
    if name == "repair":
        from agentflow.repair.policy import Repair

        return Repair(sandbox)
    if name.startswith("script:"):
        from agentflow.model.scripted import load_script

        return load_script(name.removeprefix("script:"))
    if name.startswith("replay:"):
        from agentflow.cli.recorded import recorded_model

        return recorded_model(name, sandbox.root)
    if name in _LIVE:
        return _live(name, settings, environ)
    known = ", ".join(("repair", *_LIVE, "script:FILE", "replay:TASK"))
    raise ConfigError(f"unknown model {name!r}", hint=f"models: {known}")


def _live(name: str, settings: Settings, environ: Mapping[str, str]) -> Model:
    from agentflow.model.credentials import endpoint
    from agentflow.model.messages import Messages
    from agentflow.model.wire import VENDOR

    if name in _CLOUDS:
        from agentflow.model.sdk import cloud

        return Messages(name, cloud(name, environ, settings.deadlines), settings)
    found = endpoint(environ, settings)
    if found.address == VENDOR and not found.secrets:
        raise ModelRejected("no credentials for the Messages API", hint=_NO_KEY)
    if settings.transport == "sdk":
        from agentflow.model.sdk import direct

        return Messages(name, direct(found, settings.deadlines), settings)
    return Messages(name, _source(found, settings.deadlines, environ), settings)


def _source(found: "Endpoint", deadlines: Deadlines, environ: Mapping[str, str]) -> "Source":
    """Return the way to a server; the library that knows proxies is loaded where one may be on it."""
    if _has_proxy(environ):
        from agentflow.model.http import Http

        return Http(found, deadlines)
    from agentflow.model.direct import Direct

    return Direct(found, deadlines)


def _has_proxy(environ: Mapping[str, str]) -> bool:
    if sys.platform == "linux":
        return any(name.lower().endswith("_proxy") for name in environ)
    from urllib.request import getproxies  # where the system itself may name one

    return bool(getproxies())


def streamed(model: Model, on_delta: Callable[[str], None]) -> Model:
    """Return a model that passes text on as it comes, where it can."""
    live = _live_one(model)
    return live.streamed(on_delta) if live else model


def observed(model: Model, observe: Observer) -> Model:
    """Return a model that tells an observer of its failed tries, where it can have some."""
    live = _live_one(model)
    return live.observed(observe) if live else model


async def close(model: Model) -> None:
    """Give up a live model's connection; nobody waits for a server that does not let go."""
    if live := _live_one(model):
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await live.close()


def _live_one(model: Model) -> "Messages | None":
    """Return the model if it is one that is asked over the network; for any other its code is not loaded."""
    if model.name not in _LIVE:
        return None
    from agentflow.model.messages import Messages

    return model if isinstance(model, Messages) else None


def tier_models(name: str, settings: Settings) -> dict[str, str]:
    """Return what the tiers stand for; the embedded model is the same in each."""
    return {DEEP: "repair", FAST: "repair"} if name == "repair" else first_ids(settings.models)


def refuse_without_tools(model: Model, roles: Iterable[Role], settings: Settings) -> None:
    """Refuse roles that may be played by a model that takes no tools. Raises ModelRejected."""
    if model.name not in _LIVE:
        return
    for role in roles:
        for named in ids_of(role.model, settings.models):
            if named in settings.without_tools:
                raise ModelRejected(
                    f"{named} takes no tools, so it cannot work as the {role.part or role.name}",
                    hint=f"give {tier(role.model)} another model under models in config.yaml",
                )
