"""Which files hold hooks, and whose they are."""

import os
from collections.abc import Iterable
from pathlib import Path

from agentflow.core.hook import Hook, Origin
from agentflow.hooks.entries import Place, read_hooks


def load_hooks(places: Iterable[Place]) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks of all files that exist, and warnings. Raises InvalidFile naming file and key."""
    hooks: list[Hook] = []
    warnings: list[str] = []
    for place in places:
        if os.path.lexists(place.path):
            hooks.extend(read_hooks(place, warnings.append))
    return tuple(hooks), tuple(warnings)


def user_places(bundled: Path, claude: Path) -> tuple[Place, ...]:
    """Return the files that always count: those shipped, and the user's own."""
    shipped = Place(path=bundled / "hooks.json", origin=Origin.BUILT_IN, plugin=bundled.parent)
    return shipped, Place(path=claude / "settings.json", origin=Origin.USER)


def project_places(root: Path) -> tuple[Place, ...]:
    """Return a repository's files; they count only once they are trusted."""
    names = ("settings.json", "settings.local.json")
    return tuple(Place(path=root / ".claude" / name, origin=Origin.PROJECT) for name in names)
