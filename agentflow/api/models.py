"""From a model's name to the model, its tiers and its limits."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.core.errors import ConfigError, ModelRejected, UsageError
from agentflow.core.evidence import By
from agentflow.core.messages import ContextLimits, Reply
from agentflow.core.pending import Budget
from agentflow.core.ports import Model, Observer
from agentflow.core.role import Role
from agentflow.loop.history import request_of
from agentflow.model import tiers
from agentflow.model.scripted import Exchange, ReplayModel, load_script
from agentflow.redact import keep_secret
from agentflow.sandbox.run import Sandbox
from agentflow.settings import PROVIDERS, Deadlines, Settings
from agentflow.store.journal import RecordedRequest, read_exchanges
from agentflow.store.reading import find, read_evidence

if TYPE_CHECKING:
    from agentflow.model.endpoint import Endpoint
    from agentflow.model.live import LiveModel
    from agentflow.model.retry import Throttle
    from agentflow.model.wire import Api, ProviderLine, Source


NO_MODEL = "No model is configured."
_NO_KEY = "set ANTHROPIC_API_KEY, or name a server of your own that needs none with ANTHROPIC_BASE_URL"


def advise_on_no_model(environ: Mapping[str, str]) -> str:
    """Return what to set, or how to name a model of a provider whose variables are set."""
    for name, provider in PROVIDERS.items():
        variables = (provider.api_key_env, provider.endpoint_env)
        if found := next((each for each in variables if each and environ.get(each)), None):
            return f"{found} is set: name one of its models with --model {name}/ID or AGENTFLOW_MODEL."
    return "Set ANTHROPIC_API_KEY to do other tasks, or name a model with --model or AGENTFLOW_MODEL."


def choose_model(name: str, sandbox: Sandbox, settings: Settings, environ: Mapping[str, str]) -> Model:
    chosen = tiers.parse_choice(name)
    if name == tiers.REPAIR:
        from agentflow.repair.policy import Repair

        return Repair()
    if chosen.kind == "script":
        return load_script(name.removeprefix("script:"))
    if chosen.kind == "replay":
        return _load_recorded(name, sandbox.root)
    return _open_live(name, settings, environ)


def choose_tiers(settings: Settings, name: str) -> Settings:
    """Return settings with the tiers that a model's name says. Raises ConfigError."""
    chosen = tiers.parse_choice(name)
    models = {**settings.models, **chosen.models}
    if chosen.kind not in PROVIDERS:
        return settings.replace(models=models)
    if lacking := [tier for tier in (tiers.DEEP, tiers.FAST) if tier not in models]:
        raise ConfigError(
            f"{name} has no model for {' and '.join(lacking)}",
            hint=f"write --model {name}/ID, or models: {{deep: {name}/ID, fast: {name}/ID}} in config.yaml",
        )
    return settings.replace(models=tiers.qualify_models(models, chosen.kind, settings))


def _open_live(name: str, settings: Settings, environ: Mapping[str, str]) -> Model:
    """Return a live model; in a batch it keeps to the limits that all its tasks share at an endpoint."""
    from agentflow.model.live import LiveModel

    model = LiveModel(name, lambda provider: _connect(provider, name, settings, environ), settings)
    model.open_lines()
    return model


def _connect(provider: str, name: str, settings: Settings, environ: Mapping[str, str]) -> "ProviderLine":
    from agentflow.model.wire import ProviderLine

    api = _choose_api(provider, settings)
    if provider in tiers.CLOUDS:
        from agentflow.model.sdk import open_cloud

        source: Source = open_cloud(provider, environ, settings.deadlines)
        return ProviderLine(api=api, source=source, throttle=_share_limits(provider, environ))
    found = find_endpoint(provider, settings, environ).replace(path=api.path)
    keep_secret(found.secrets)
    if found.lacks and provider == tiers.ANTHROPIC:
        taken = "" if name in tiers.LIVE else f", where the model {name!r} would be"
        raise ModelRejected(f"no credentials for the Messages API{taken}", hint=_NO_KEY)
    if found.lacks:
        hint = f"set {found.lacks}; the address of another server is {found.place}"
        raise ModelRejected(f"no key for {provider}", hint=hint)
    if settings.transport == "sdk" and provider == tiers.ANTHROPIC:
        from agentflow.model.sdk import open_direct

        source = open_direct(found, settings.deadlines)
    else:
        source = _open_source(found, settings.deadlines, environ)
    return ProviderLine(
        api=api, source=source, place=found.place, throttle=_share_limits(found.address, environ)
    )


def _choose_api(provider: str, settings: Settings) -> "Api":
    if provider in tiers.MESSAGES:
        from agentflow.model.messages import MessagesApi

        return MessagesApi()
    from agentflow.model.chat import ChatApi

    return ChatApi(provider, settings.find_provider(provider))


def find_endpoint(provider: str, settings: Settings, environ: Mapping[str, str]) -> "Endpoint":
    from agentflow.model.endpoint import choose_endpoint, choose_provider_endpoint

    if provider in PROVIDERS or provider in settings.providers:
        return choose_provider_endpoint(provider, environ, settings)
    return choose_endpoint(environ, settings)


def _share_limits(address: str, environ: Mapping[str, str]) -> "Throttle | None":
    folder = environ.get("AGENTFLOW_LIMITS")
    if not folder:
        return None
    from agentflow.model.retry import Throttle

    return Throttle(Path(folder), address)


def _open_source(found: "Endpoint", deadlines: Deadlines, environ: Mapping[str, str]) -> "Source":
    """Return the connection to a server; the library for proxies is loaded only where there may be one."""
    if sys.platform == "linux":
        is_proxied = any(name.lower().endswith("_proxy") for name in environ)
    else:
        from urllib.request import getproxies  # the system itself may name one

        is_proxied = bool(getproxies())
    if is_proxied:
        from agentflow.model.http import Http

        return Http(found, deadlines)
    from agentflow.model.direct import Direct

    return Direct(found, deadlines)


def observe_model(model: Model, observe: Observer) -> Model:
    """Return a model that reports its tries to an observer, if it can have any."""
    live = find_live(model)
    return live.report_to(observe) if live else model


def require_price(model: Model, budget: Budget, roles: Iterable[Role], settings: Settings) -> None:
    """Refuse a cost limit for a model without a known price. Raises UsageError."""
    kind = tiers.parse_choice(model.name).kind
    if budget.cost is None or kind not in tiers.LIVE:
        return
    named = (id_ for role in roles for id_ in tiers.list_ids(role.model, settings.models))
    unknown = [id_ for id_ in dict.fromkeys(named) if tiers.find_price(id_, kind, settings) is None]
    if unknown:
        raise UsageError(
            f"--max-cost cannot be enforced: no price is known for {', '.join(unknown)}",
            hint="add it under prices in config.yaml, or use --max-tokens",
        )


def find_live(model: Model) -> "LiveModel | None":
    """Return the model if it is asked over the network, else None without loading that code."""
    if not tiers.parse_choice(model.name).is_live:
        return None
    from agentflow.model.live import LiveModel

    return model if isinstance(model, LiveModel) else None


def list_tier_models(name: str, settings: Settings) -> dict[str, str]:
    """Return the model id of each tier; the embedded engine is the same in each."""
    return (
        {tiers.DEEP: tiers.REPAIR, tiers.FAST: tiers.REPAIR}
        if name == tiers.REPAIR
        else tiers.list_first_ids(settings.models)
    )


def find_context_limits(model_id: str, settings: Settings) -> ContextLimits:
    """Return how long a conversation with a model may be; for the embedded engine there is no limit."""
    if model_id == tiers.REPAIR:
        return settings.limits.replace(context=sys.maxsize, trigger=None)
    limits = settings.limits.fit_window(tiers.find_window(model_id, settings))
    return (
        limits
        if limits.shows is not None
        else limits.replace(shows=tiers.find_shown_kinds(model_id, settings))
    )


def refuse_without_tools(model: Model, roles: Iterable[Role], settings: Settings) -> None:
    if not tiers.parse_choice(model.name).is_live:
        return
    for role in roles:
        for named in tiers.list_ids(role.model, settings.models):
            if tiers.takes_no_tools(named, settings):
                raise ModelRejected(
                    f"{named} takes no tools, so it cannot work as the {role.part or role.name}",
                    hint=f"give {tiers.find_tier(role.model)} another model under models in config.yaml",
                )


def _load_recorded(name: str, root: Path) -> ReplayModel:
    path = find(root, name.removeprefix("replay:"))
    known: dict[int, list[Exchange]] = {}
    summaries: dict[int, list[Reply | str]] = {}
    for file in (path / "runs").glob("*.jsonl"):
        number = int(file.name.split("-")[0])
        for one in read_exchanges(file):
            if isinstance(one, RecordedRequest):
                exchange = Exchange(
                    request=request_of(one.run, one.force) if one.run else None,
                    reply=one.reply,
                    refused=request_of(one.refused, one.force) if one.refused else None,
                )
                known.setdefault(number, []).append(exchange)
            elif end := one.reply or one.failure:
                summaries.setdefault(number, []).append(end)
    roots = {str(root), *(evidence.cwd for evidence in read_evidence(path) if evidence.by is By.PROGRAM)}
    return ReplayModel(name, known, tuple(roots), summaries)
