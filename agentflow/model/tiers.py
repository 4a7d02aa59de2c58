"""Tiers to model ids, what these cost, and what is left of a task's budget."""

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

from agentflow.core.errors import ConfigError, Exit, ModelRejected
from agentflow.core.messages import Reply, Request, ServerToolPart, Usage
from agentflow.core.pending import Budget
from agentflow.core.record import Record
from agentflow.frontmatter import read_yaml
from agentflow.settings import PROVIDERS, Price, Settings

DEEP = "deep"
FAST = "fast"
ALIASES: Mapping[str, str] = {"opus": DEEP, "sonnet": FAST, "haiku": FAST}
"""Names of public role files, to our tiers."""
MODELS: Mapping[str, str] = {DEEP: "claude-opus-5-5", FAST: "claude-sonnet-5-5"}
"""The shipped table; the `models` setting overrides it."""
ANTHROPIC = "anthropic"
CLOUDS = ("bedrock", "vertex", "foundry")
MESSAGES = (ANTHROPIC, *CLOUDS)
"""The providers of the Messages API."""
LIVE = (*MESSAGES, *PROVIDERS)
REPAIR = "repair"
_PLAYED = ("script", "replay")
"""The names before a colon, which is followed by what is played."""
_NAMES = (REPAIR, *MESSAGES, "script:FILE", "replay:TASK")
_ID = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,199}", re.ASCII)
_SEES = re.compile(
    r"claude|gemini|gpt-(?:4o|4\.|[5-9])|\bo[34]\b|pixtral|mistral-(?:small|medium)|llava|vision|gemma-?3|-?vl\b",
    re.IGNORECASE,
)
"""Models that see images, by their names; `limits: {shows: [image]}` says so of others."""
_NEAR = 0.75
"""How similar to one of our names a word must be to be taken for a misspelling of it."""
MODEL_ADVICE = (
    f"models: {', '.join(_NAMES)}, a model's id, PROVIDER/ID ({', '.join(PROVIDERS)}), or deep=ID,fast=ID"
)

Ids = str | tuple[str, ...]
"""A model id, or several: the first one answers, the next where it fails."""


class Choice(Record):
    """The meaning of a model's name: the kind of model, and the id of each tier."""

    kind: str
    """One of our names, up to the colon; `anthropic` for an id. It has the ids that name no provider."""
    models: dict[str, str] = {}
    """Tier to the id that was named for it."""

    @property
    def is_live(self) -> bool:
        return self.kind in LIVE


def parse_choice(name: str) -> Choice:
    """Return the choice that a name means: our name, an id, or ids by tier. Raises ConfigError."""
    kind, _, played = name.partition(":")
    if name == REPAIR or name in LIVE or (kind in _PLAYED and played):
        return Choice(kind=kind)
    if "=" not in name:
        return Choice(kind=ANTHROPIC, models=dict.fromkeys((DEEP, FAST), _check_id(name)))
    pairs = [part.strip().partition("=") for part in name.split(",")]
    models = {key: _check_id(value) for key, _, value in pairs if key in (DEEP, FAST)}
    if len(models) < len(pairs):
        raise ConfigError(
            f"cannot read the models {name!r}", hint="write deep=ID, fast=ID, or deep=ID,fast=ID"
        )
    return Choice(kind=ANTHROPIC, models=models)


def _check_id(name: str) -> str:
    kind = name.partition(":")[0]
    if name in (f"{played}:" for played in _PLAYED):
        raise ConfigError(f"{name!r} does not say what to play", hint=MODEL_ADVICE)
    if name in PROVIDERS or name.endswith("/") or kind in (REPAIR, *MESSAGES, *_PLAYED):
        raise ConfigError(f"{name!r} is not a model id", hint=MODEL_ADVICE)
    if name in (DEEP, FAST, *ALIASES):
        raise ConfigError(
            f"{name!r} is a tier, not a model id", hint=f"such as --model {MODELS[find_tier(name)]}"
        )
    if not _ID.fullmatch(name):
        raise ConfigError(f"unknown model {name!r}", hint=MODEL_ADVICE)
    from difflib import get_close_matches  # noqa: PLC0415  # only an unknown word is compared

    names = {each.partition(":")[0]: each for each in _NAMES}
    if kind.isalpha() and (near := get_close_matches(kind.lower(), names, 1, _NEAR)):
        raise ConfigError(f"unknown model {name!r}; did you mean {names[near[0]]}?", hint=MODEL_ADVICE)
    return name


def split_id(model: str, kind: str, settings: Settings) -> tuple[str, str]:
    """Return who serves a model and its id there; an id that names no provider is of the chosen kind."""
    name, _, rest = model.partition("/")
    return (name, rest) if rest and (name in LIVE or name in settings.providers) else (kind, model)


def qualify_models(models: Mapping[str, Ids], kind: str, settings: Settings) -> dict[str, Ids]:
    """Return the tiers' models with the provider that was chosen before each id that names none."""

    def qualify(model: str) -> str:
        return "/".join(split_id(model, kind, settings))

    return {
        tier: qualify(ids) if isinstance(ids, str) else tuple(map(qualify, ids))
        for tier, ids in models.items()
    }


def list_providers(name: str, settings: Settings) -> tuple[str, ...]:
    """Return who serves the tiers of a model's name; nobody but for a live model."""
    chosen = parse_choice(name)
    if not chosen.is_live:
        return ()
    models = {**settings.models, **chosen.models}
    ids = (id_ for tier in (DEEP, FAST) for id_ in list_ids(tier, models))
    return tuple(dict.fromkeys(split_id(id_, chosen.kind, settings)[0] for id_ in ids))


def list_models(name: str, settings: Settings) -> tuple[str, ...]:
    """Return the ids that a model's name stands for, the deep tier's first; a played one is its own."""
    chosen = parse_choice(name)
    if not chosen.is_live:
        return (name,)
    models = {**settings.models, **chosen.models}
    return tuple(dict.fromkeys(list_ids(tier, models)[0] for tier in (DEEP, FAST)))


def find_tier(name: str) -> str:
    """Return the tier a role file's `model` means; a full id stands for itself."""
    return ALIASES.get(name, name)


def choose_model_id(named: str, overrides: Mapping[str, str]) -> str:
    wanted = find_tier(named)
    return {**MODELS, **overrides}.get(wanted, wanted)


def list_first_ids(models: Mapping[str, Ids]) -> dict[str, str]:
    """Return the id that each tier stands for as long as nothing fails."""
    return {name: _to_tuple(ids)[0] for name, ids in models.items()}


def list_ids(named: str, models: Mapping[str, Ids]) -> tuple[str, ...]:
    """Return all ids that may answer for a role file's `model`."""
    first = choose_model_id(named, list_first_ids(models))
    return list_fallbacks(models).get(first, (first,))


def list_fallbacks(models: Mapping[str, Ids]) -> dict[str, tuple[str, ...]]:
    """Return each tier's models by their first id; the first tier, if two begin with the same id."""
    lists = [_to_tuple(ids) for ids in models.values()]
    return {ids[0]: ids for ids in reversed(lists)}


def _to_tuple(ids: Ids) -> tuple[str, ...]:
    return (ids,) if isinstance(ids, str) else ids


_PER_MILLION = 1_000_000
_SHIPPED = "prices.yaml"


class PriceList(Record):
    as_of: date
    source: str
    prices: dict[str, Price]
    windows: dict[str, int] = {}
    """Tokens of a model's context window."""


@cache
def load_price_lists() -> tuple[PriceList, ...]:
    """Return the shipped lists; the file is read when the first price is asked for."""
    return read_yaml(tuple[PriceList, ...], Path(__file__).with_name(_SHIPPED).read_text("utf-8"), _SHIPPED)


def find_price(model: str, kind: str, settings: Settings) -> Price | None:
    """Return what a model costs, or None where that is unknown.

    The shipped prices are of the vendor's own API; a platform may have others.
    """
    provider, bare = split_id(model, kind, settings)
    own = settings.prices.get(model) or settings.prices.get(bare)
    if own is not None or provider != ANTHROPIC:
        return own
    return next((each.prices[bare] for each in load_price_lists() if bare in each.prices), None)


def find_window(model: str, settings: Settings) -> int | None:
    """Return how many tokens a model's context window has, or None where that is unknown."""
    bare = split_id(model, ANTHROPIC, settings)[1]
    if own := settings.windows.get(model) or settings.windows.get(bare):
        return own
    known = model.removeprefix(f"{ANTHROPIC}/")
    return next((each.windows[known] for each in load_price_lists() if known in each.windows), None)


def find_shown_kinds(model: str, settings: Settings) -> tuple[str, ...]:
    """Return the kinds of files that a model sees, as far as its name tells."""
    provider, bare = split_id(model, ANTHROPIC, settings)
    if not _SEES.search(bare):
        return ()
    return ("image", "pdf") if provider in MESSAGES else ("image",)


def takes_no_tools(model: str, settings: Settings) -> bool:
    return bool({model, split_id(model, ANTHROPIC, settings)[1]} & set(settings.without_tools))


def count_searches(reply: Reply) -> int:
    served = (part for part in reply.parts if isinstance(part, ServerToolPart))
    return sum(part.is_result and not part.is_error for part in served)


def add_cost(usage: Usage, price: Price | None, searched: int = 0) -> Usage:
    """Return a usage with its cost; without a price for all of it the cost stays unknown."""
    if price is None or (searched and price.search is None):
        return usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    rates = price.longer if price.longer is not None and prompt > price.longer.above else price
    dollars = (
        usage.input * rates.input
        + usage.output * rates.output
        + usage.cache_read * rates.cache_read
        + usage.cache_write * rates.cache_write
    )
    return usage.replace(cost_usd=round(dollars / _PER_MILLION + searched * (price.search or 0), 8))


_TOKENS_A_BYTE = 0.25
"""Of a request, until the first reply has counted its tokens."""
_LEAST_REPLY = 100
"""Tokens below which a reply says nothing of use."""


class OverBudget(ModelRejected):
    """The next request does not fit into what is left of the task's budget."""

    exit_code = Exit.LIMIT


class Meter:
    """The count of one task, shared by all its runs."""

    def __init__(self, budget: Budget, used: Usage) -> None:
        self._budget = budget
        self._tokens = used.tokens
        self._cost = used.cost_usd or 0.0
        self._rate = _TOKENS_A_BYTE

    def estimate_tokens(self, size: int) -> int:
        return int(size * self._rate) + 1

    def compute_room(self, request: Request, size: int, price: Price | None, most: int) -> int:
        """Return the tokens that a reply may have, for a request of so many bytes. Raises OverBudget."""
        needed = self.estimate_tokens(size)
        room = most
        if self._budget.tokens is not None:
            room = min(room, self._budget.tokens - self._tokens - needed)
        if room < min(_LEAST_REPLY, most):
            raise OverBudget(
                f"the task's limit is reached: {self._tokens} of {self._budget.tokens} tokens used, "
                f"and the next request needs about {needed + _LEAST_REPLY} (--max-tokens)"
            )
        if self._budget.cost is None or price is None:
            return room
        return min(room, self._affordable(request, needed, price, min(_LEAST_REPLY, most)))

    def _affordable(self, request: Request, needed: int, price: Price, least: int) -> int:
        """Return the length of reply that the budget can pay; repeated input may cost a cache's price."""
        assert self._budget.cost is not None
        is_new = len(request.messages) == 1
        prompt = needed * (price.input if is_new else min(price.input, price.cache_read)) / _PER_MILLION
        left = self._budget.cost - self._cost - prompt
        room = int(left * _PER_MILLION / price.output) if price.output else (_PER_MILLION if left >= 0 else 0)
        if room < least:
            wanted = prompt + least * price.output / _PER_MILLION
            raise OverBudget(
                f"the task's limit is reached: {self._cost:.4f} of {self._budget.cost:g} USD used, "
                f"and the next request costs about {wanted:.4f} (--max-cost)"
            )
        return room

    def count(self, usage: Usage) -> None:
        """Add what a try used, a failed one too."""
        self._tokens += usage.tokens
        self._cost += usage.cost_usd or 0.0

    def learn(self, size: int, usage: Usage) -> None:
        """Note how many tokens a request of so many bytes had."""
        prompt = usage.input + usage.cache_read + usage.cache_write
        if prompt and size:
            self._rate = prompt / size
