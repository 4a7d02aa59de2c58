"""How lists read in one line of text."""

from collections.abc import Sequence


def list_some(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """Return names in one line: the first few, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"
