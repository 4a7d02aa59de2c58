"""Tiers to model ids: the one table that names models."""

from collections.abc import Mapping
from types import MappingProxyType

DEEP = "deep"
FAST = "fast"
ALIASES: Mapping[str, str] = MappingProxyType({"opus": DEEP, "sonnet": FAST, "haiku": FAST})
"""Names of public role files, to our tiers."""
MODELS: Mapping[str, str] = MappingProxyType({DEEP: "claude-opus-5-5", FAST: "claude-sonnet-5-5"})
"""The shipped table; the `models` setting overrides it."""


def tier(name: str) -> str:
    """Return the tier a role file's `model` means; a full id stands for itself."""
    return ALIASES.get(name, name)


def model_id(named: str, overrides: Mapping[str, str]) -> str:
    """Return the model id for a role file's `model`."""
    wanted = tier(named)
    return {**MODELS, **overrides}.get(wanted, wanted)
