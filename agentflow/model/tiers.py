"""Tiers to model ids: the one table that names models."""

import re
from collections.abc import Mapping

from agentflow.core.errors import ConfigError
from agentflow.core.record import Record

DEEP = "deep"
FAST = "fast"
ALIASES: Mapping[str, str] = {"opus": DEEP, "sonnet": FAST, "haiku": FAST}
"""Names of public role files, to our tiers."""
MODELS: Mapping[str, str] = {DEEP: "claude-opus-5-5", FAST: "claude-sonnet-5-5"}
"""The shipped table; the `models` setting overrides it."""
CLOUDS = ("bedrock", "vertex", "foundry")
LIVE = ("anthropic", *CLOUDS)
REPAIR = "repair"
_PLAYED = ("script", "replay")
"""Each stands before a colon and what is played."""
_NAMES = (REPAIR, *LIVE, "script:FILE", "replay:TASK")
_ID = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,199}", re.ASCII)
_NEAR = 0.75
"""How like a name of ours a word is that is taken for a slip of it."""
MODEL_ADVICE = f"models: {', '.join(_NAMES)}, a model's id, or deep=ID,fast=ID"

Ids = str | tuple[str, ...]
"""A model id, or several: the first one answers, the next where it fails."""


class Choice(Record):
    """What the name of a model says: who is asked, and which ids the tiers stand for."""

    kind: str
    """One of our names, up to the colon; `anthropic` for an id."""
    models: dict[str, str] = {}
    """Tier to the id that was named for it."""

    @property
    def is_live(self) -> bool:
        return self.kind in LIVE


def choice_of(name: str) -> Choice:
    """Return what is chosen by a name of ours, a model's id, or ids by tier. Raises ConfigError."""
    kind = name.partition(":")[0]
    if name == REPAIR or name in LIVE or (kind in _PLAYED and kind != name):
        return Choice(kind=kind)
    if "=" in name:
        return Choice(kind="anthropic", models=_by_tier(name))
    return Choice(kind="anthropic", models=dict.fromkeys((DEEP, FAST), _check_id(name)))


def _by_tier(name: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in name.split(",")]
    models = {key: _check_id(value) for key, _, value in pairs if key in (DEEP, FAST)}
    if len(models) < len(pairs):
        raise ConfigError(
            f"cannot read the models {name!r}", hint="write deep=ID, fast=ID, or deep=ID,fast=ID"
        )
    return models


def _check_id(name: str) -> str:
    """Return a model's id. Raises ConfigError for what is none, and for a slip of one of our names."""
    kind = name.partition(":")[0]
    if kind in (REPAIR, *LIVE, *_PLAYED):
        raise ConfigError(f"{name!r} is no id of a model", hint=MODEL_ADVICE)
    if name in (DEEP, FAST, *ALIASES):
        raise ConfigError(
            f"{name!r} is a tier, no id of a model", hint=f"such as --model {MODELS[tier(name)]}"
        )
    if not _ID.fullmatch(name):
        raise ConfigError(f"unknown model {name!r}", hint=MODEL_ADVICE)
    if kind.isalpha() and (near := _near(kind)):
        raise ConfigError(f"unknown model {name!r}; did you mean {near}?", hint=MODEL_ADVICE)
    return name


def _near(word: str) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415  # only an unknown word is compared

    names = {each.partition(":")[0]: each for each in _NAMES}
    return next((names[found] for found in get_close_matches(word.lower(), names, 1, _NEAR)), None)


def tier(name: str) -> str:
    """Return the tier a role file's `model` means; a full id stands for itself."""
    return ALIASES.get(name, name)


def model_id(named: str, overrides: Mapping[str, str]) -> str:
    wanted = tier(named)
    return {**MODELS, **overrides}.get(wanted, wanted)


def first_ids(models: Mapping[str, Ids]) -> dict[str, str]:
    """Return the id that each tier stands for as long as nothing fails."""
    return {name: _to_tuple(ids)[0] for name, ids in models.items()}


def ids_of(named: str, models: Mapping[str, Ids]) -> tuple[str, ...]:
    """Return all ids that may answer for a role file's `model`."""
    first = model_id(named, first_ids(models))
    return fallbacks(models).get(first, (first,))


def fallbacks(models: Mapping[str, Ids]) -> dict[str, tuple[str, ...]]:
    """Return the list of each tier by its first id; of two that begin alike, the one named first."""
    lists = [_to_tuple(ids) for ids in models.values()]
    return {ids[0]: ids for ids in reversed(lists)}


def _to_tuple(ids: Ids) -> tuple[str, ...]:
    return (ids,) if isinstance(ids, str) else ids
