"""How lists read in one line of text."""

from collections.abc import Iterable

PLAUSIBLE = "plausible: it passes these checks"
"""What a change by the built-in repair engine is called."""


def list_some(names: Iterable[str], most: int = 5, between: str = ", ") -> str:
    """Return names in one line: the first few, and how many more there are."""
    found = tuple(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{between.join(found[:most])}{more}"
