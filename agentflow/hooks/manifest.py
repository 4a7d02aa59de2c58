"""Which files hold hooks, and whose they are."""

import os
from collections.abc import Iterable
from pathlib import Path

from agentflow.core.errors import InvalidFile
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
    """Return a repository's files; they count only where the user says so."""
    names = ("settings.json", "settings.local.json")
    return tuple(Place(path=root / ".claude" / name, origin=Origin.PROJECT) for name in names)


def is_listed(root: Path, listed: Iterable[str]) -> bool:
    """Return whether a repository is one of those that the user named."""
    return root.resolve() in {Path(each).expanduser().resolve() for each in listed}


def withheld(root: Path) -> str | None:
    """Return the line that says that a repository's hooks are not used, if it has any."""
    try:
        hooks, _ = load_hooks(project_places(root))
    except InvalidFile as error:
        return f"hooks of this repository are not used: {error}"
    return f"hooks of this repository are not used: {len(hooks)}" if hooks else None
