"""The hooks that roles and skills bring in their frontmatter."""

from collections.abc import Iterable
from pathlib import Path

from agentflow.api.trust import load_trusted_hooks
from agentflow.api.trust_items import place_role, place_skill
from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Hook, Origin
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.hooks.entries import HookFile, load_hooks
from agentflow.library.skill_file import Skill


class FrontmatterHooks(Record):
    """The hooks of roles and skills, and those roles and skills whose hooks can be read."""

    roles: tuple[Role, ...]
    skills: tuple[Skill, ...]
    all: tuple[Hook, ...] = ()
    warnings: tuple[str, ...] = ()


def load_frontmatter_hooks(root: Path, roles: Iterable[Role], skills: Iterable[Skill]) -> FrontmatterHooks:
    """Return the hooks that count; a repository's only where file and scripts are trusted.

    A role or skill with hooks that are wrong is left out with a warning, as it would run without its guard;
    that of a role of the pipeline raises InvalidFile.
    """
    hooks: list[Hook] = []
    warnings: list[str] = []

    def keeps(place: HookFile | None, *, is_needed: bool) -> bool:
        if place is None:
            return True
        try:
            found, notes = _load(place, root)
        except InvalidFile as error:
            if is_needed:
                raise
            warnings.append(f"left out because of its hooks: {error}")
            return False
        hooks.extend(found)
        warnings.extend(notes)
        return True

    left = tuple(role for role in roles if keeps(place_role(role), is_needed=role.part is not None))
    used = tuple(skill for skill in skills if keeps(place_skill(skill), is_needed=False))
    return FrontmatterHooks(roles=left, skills=used, all=tuple(hooks), warnings=tuple(warnings))


def _load(place: HookFile, root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    if place.origin is Origin.PLUGIN:
        return (), (f"{place.path}: hooks: those in a plugin's agents and skills have no effect",)
    if place.origin is Origin.PROJECT:
        return load_trusted_hooks((place,), root)
    return load_hooks((place,))
