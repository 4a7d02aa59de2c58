"""Tiers to model ids: the one table that names models."""

from collections.abc import Mapping

DEEP = "deep"
FAST = "fast"
ALIASES: Mapping[str, str] = {"opus": DEEP, "sonnet": FAST, "haiku": FAST}
"""Names of public role files, to our tiers."""
MODELS: Mapping[str, str] = {DEEP: "claude-opus-5-5", FAST: "claude-sonnet-5-5"}
"""The shipped table; the `models` setting overrides it."""


Ids = str | tuple[str, ...]
"""A model id, or several: the first one answers, the next where it fails."""


def tier(name: str) -> str:
    """Return the tier a role file's `model` means; a full id stands for itself."""
    return ALIASES.get(name, name)


def model_id(named: str, overrides: Mapping[str, str]) -> str:
    wanted = tier(named)
    return {**MODELS, **overrides}.get(wanted, wanted)


def first_ids(models: Mapping[str, Ids]) -> dict[str, str]:
    """Return the id that each tier stands for as long as nothing fails."""
    return {name: _listed(ids)[0] for name, ids in models.items()}


def ids_of(named: str, models: Mapping[str, Ids]) -> tuple[str, ...]:
    """Return all ids that may answer for a role file's `model`."""
    first = model_id(named, first_ids(models))
    return fallbacks(models).get(first, (first,))


def fallbacks(models: Mapping[str, Ids]) -> dict[str, tuple[str, ...]]:
    """Return the list of each tier by its first id; of two that begin alike, the one named first."""
    lists = [_listed(ids) for ids in models.values()]
    return {ids[0]: ids for ids in reversed(lists)}


def _listed(ids: Ids) -> tuple[str, ...]:
    return (ids,) if isinstance(ids, str) else ids
