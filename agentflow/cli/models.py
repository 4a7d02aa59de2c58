"""`models`: the models of the tiers, what they cost, and the providers that are set up."""

import os
import socket
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection, HTTPException
from threading import Thread
from urllib.parse import urlsplit

from agentflow.api.models import NO_MODEL, advise_on_no_model, choose_tiers, find_endpoint
from agentflow.cli.arguments import JSON, MODEL
from agentflow.cli.printing import tell_result
from agentflow.core.errors import AgentflowError
from agentflow.core.record import Record
from agentflow.model.endpoint import KEY, TOKEN
from agentflow.model.tiers import (
    ANTHROPIC,
    CLOUDS,
    DEEP,
    FAST,
    REPAIR,
    find_price,
    find_window,
    list_ids,
    list_providers,
    load_price_lists,
    parse_choice,
    split_id,
)
from agentflow.parse import decode_or_none
from agentflow.settings import PROVIDERS, Price, Settings, choose_model_name, load_settings
from agentflow.view.text import BLANK, Line, Style, label_row, span

_REACH_SECONDS = 2.0
_MOST_BYTES = 1_000_000
_OWN = "config.yaml"


class ModelState(Record):
    """A model that may answer for a tier."""

    tier: str
    model: str
    provider: str
    window: int | None
    """Tokens of its context window; None where that is unknown."""
    price: Price | None
    as_of: str
    """The day of the price list, where the price is of one."""
    source: str
    """Where the price comes from; empty where it is unknown."""


class ProviderState(Record):
    """A provider that is set up or asked."""

    name: str
    endpoint: str
    key: str
    """Whether there is one, and in which variable."""
    models: tuple[str, ...]
    """What the tiers ask it for; what it has itself, where nobody named it."""
    reachable: bool | None
    """None where there is no address that could be tried."""


class ModelReport(Record):
    """The model of tasks, with all that it needs; without the value of any secret."""

    model: str
    models: tuple[ModelState, ...]
    providers: tuple[ProviderState, ...]
    advice: str
    """What to set; empty where there is a model."""


def models(model: str | None = MODEL, json: bool = JSON) -> None:
    """Show the model of each tier and its price, and which providers can be reached.

    Servers of this machine that list their models are offered too. No model is asked.
    """
    found = find_models(model, load_settings(os.environ))
    tell_result(found, _draw_report(found), json=json)


def find_models(named: str | None, settings: Settings) -> ModelReport:
    """Return the models and providers of a name, or of the settings. Raises ConfigError."""
    name = choose_model_name(named, settings, os.environ)
    settings, kind = choose_tiers(settings, name), parse_choice(name).kind
    tiers = (DEEP, FAST) if parse_choice(name).is_live else ()
    states = tuple(
        _find_model(tier, id_, kind, settings) for tier in tiers for id_ in list_ids(tier, settings.models)
    )
    providers = _reach(_list_providers(name, settings, states))
    advice, otherwise = "", advise_on_no_model(os.environ)
    if name == REPAIR:
        here = (f"{each.name}/{model}" for each in providers for model in each.models)
        advice = f"Name a model, such as --model {one}" if (one := next(here, "")) else otherwise
    return ModelReport(model=name, models=states, providers=providers, advice=advice)


def _find_model(tier: str, id_: str, kind: str, settings: Settings) -> ModelState:
    provider, bare = split_id(id_, kind, settings)
    price = find_price(id_, kind, settings)
    is_own = bool({id_, bare} & settings.prices.keys())
    lists = (each for each in load_price_lists() if bare in each.prices)
    shipped = next(lists, None) if price and not is_own else None
    return ModelState(
        tier=tier,
        model=bare,
        provider=provider,
        window=find_window(id_, settings),
        price=price,
        as_of=shipped.as_of.isoformat() if shipped else "",
        source=shipped.source if shipped else _OWN if price else "",
    )


def _list_providers(
    name: str, settings: Settings, states: tuple[ModelState, ...]
) -> Iterator[tuple[ProviderState, bool]]:
    """Yield each provider that could be asked here, and whether somebody named it.

    Those are whoever the tiers ask, the settings name or a variable sets up, and servers of this machine.
    """
    asked = list_providers(name, settings)
    for provider in dict.fromkeys((*asked, *settings.providers, ANTHROPIC, *PROVIDERS)):
        known = settings.find_provider(provider)
        variables = (KEY, TOKEN, "ANTHROPIC_BASE_URL") if provider == ANTHROPIC else ()
        variables = (known.api_key_env or "", known.endpoint_env or "", *variables)
        is_local = provider in PROVIDERS and not known.api_key_env
        is_named = {provider} & {*asked, *settings.providers} or any(map(os.environ.get, variables))
        if is_named or is_local:
            shown, key = _find_access(provider, settings)
            named = dict.fromkeys(each.model for each in states if each.provider == provider)
            state = ProviderState(name=provider, endpoint=shown, key=key, models=tuple(named), reachable=None)
            yield state, bool(is_named)


def _find_access(provider: str, settings: Settings) -> tuple[str, str]:
    """Return the address of a provider, empty for a cloud, and what is known of its key."""
    if provider in CLOUDS:
        return "", "the platform's own credentials"
    try:
        found = find_endpoint(provider, settings, os.environ)
    except AgentflowError as error:
        return "", str(error)
    variable = settings.find_provider(provider).api_key_env
    if provider == ANTHROPIC:
        variable = KEY if found.key else TOKEN
    key = f"{found.lacks} missing" if found.lacks else "no key"
    return _show_address(found.address), f"{variable or 'key'} present" if found.secrets else key


def _show_address(address: str) -> str:
    place = urlsplit(address)
    port = f":{place.port}" if place.port else ""
    return f"{place.scheme}://{place.hostname or ''}{port}{place.path}"


def _reach(listed: Iterable[tuple[ProviderState, bool]]) -> tuple[ProviderState, ...]:
    """Return the providers with what answers; one that nobody named only if it lists its models."""
    states = tuple(listed)
    found = dict[str, ProviderState]()

    def look(state: ProviderState, *, is_named: bool) -> None:
        if is_named:
            found[state.name] = state.replace(reachable=_is_reachable(state.endpoint))
        elif models := _ask_for_models(state.endpoint):
            found[state.name] = state.replace(reachable=True, models=models)

    asked = [(state, is_named) for state, is_named in states if state.endpoint]
    lookers = [
        Thread(target=look, args=(state,), kwargs={"is_named": is_named}, daemon=True)
        for state, is_named in asked
    ]
    for each in lookers:
        each.start()
    end = time.monotonic() + _REACH_SECONDS
    for each in lookers:
        each.join(max(0.0, end - time.monotonic()))  # a name may take longer to be found than to be reached
    late = {
        state.name: state.replace(reachable=False) if state.endpoint else state
        for state, is_named in states
        if is_named
    }
    return tuple({**late, **found}.values())


def _ask_for_models(address: str) -> tuple[str, ...]:
    """Return the ids of the models that a server of this machine lists; none for any other server."""
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=_REACH_SECONDS)
    try:
        connection.request("GET", f"{place.path}/models")
        listed = decode_or_none(connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace"))
    except (OSError, HTTPException):
        return ()
    finally:
        connection.close()
    rows = listed.get("data") if isinstance(listed, dict) else None
    return (
        tuple(str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row)
        if isinstance(rows, list)
        else ()
    )


def _is_reachable(address: str) -> bool:
    place = urlsplit(address)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        with socket.create_connection((place.hostname or "", port), _REACH_SECONDS):
            return True
    except OSError:
        return False


def _draw_report(found: ModelReport) -> Iterator[Line]:
    none = span(f"  {NO_MODEL}" if found.advice else "", Style.WARN)
    yield label_row("model", span(found.model, Style.BOLD), none)
    for before, each in zip((None, *found.models), found.models, strict=False):
        is_fallback = before is not None and before.tier == each.tier
        yield label_row("  then" if is_fallback else each.tier, span(f"{each.provider}/{each.model}"))
        window = f"{each.window:,} tokens" if each.window else "context window unknown"
        yield label_row("", span(f"{window} · {_tell_price(each.price)}", Style.DIM))
        if each.source:
            yield label_row(
                "", span(f"price: {' '.join(filter(None, (each.as_of, each.source)))}", Style.DIM)
            )
    yield from (BLANK, *draw_providers(found.providers)) if found.providers else ()
    if found.advice:
        yield label_row("next", span(found.advice))


def _tell_price(price: Price | None) -> str:
    if price is None:
        return "price unknown"
    return f"${price.input:g} in, ${price.output:g} out, ${price.cache_read:g} cached, per million tokens"


def draw_providers(providers: Iterable[ProviderState]) -> Iterator[Line]:
    """Yield for each provider where it is, whether it answers, its key, and its models."""
    for each in providers:
        answers = {None: "cannot be tried", True: "answers", False: "does not answer"}[each.reachable]
        style = Style.WARN if each.reachable is False else Style.PLAIN
        yield label_row(each.name, span(f"{each.endpoint}  ".lstrip()), span(answers, style))
        names = span("".join(f"  {model}" for model in each.models), Style.DIM)
        yield label_row(
            "", span(each.key, Style.WARN if each.key.endswith("missing") else Style.PLAIN), names
        )
