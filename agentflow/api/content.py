"""The role and skill files that count in a folder, and what is odd about them."""

import os
from pathlib import Path

from agentflow.api.trusting import trusted_roles
from agentflow.core.errors import UnknownRole, UnknownSkill, UnknownTool
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.library.roles import Roles, load_roles
from agentflow.library.skills import Place, Skills, load_skills, skill_places, unknown
from agentflow.library.subagents import require_known, subagents
from agentflow.settings import Settings, folders, load_settings, model_name
from agentflow.tools.registry import Toolbox, opened


class Content(Record):
    """What people have written for the crew."""

    roles: Roles
    skills: Skills
    warnings: tuple[str, ...]

    def role(self, name: str) -> Role:
        """Return the role of a name. Raises UnknownRole."""
        found = next((role for role in self.roles.all if role.name == name), None)
        if found is None:
            raise UnknownRole(f"there is no role {name}", hint="agentflow agents list shows them")
        return found


def toolbox_here(root: Path, model: str | None = None) -> Toolbox:
    """Return the tools that there are: what the user's settings open, and what the model's provider runs."""
    settings = load_settings(os.environ)
    box = opened(settings.network)
    if box.find("WebFetch") is None or not _searches(model_name(model, settings, os.environ), settings, root):
        return box
    from agentflow.tools.web import WEB_SEARCH

    return Toolbox.of(*box.tools, WEB_SEARCH)


def _searches(model: str, settings: Settings, root: Path) -> bool:
    """Return whether a model comes with a search; a replayed one as far as it was offered then."""
    if model.startswith("replay:"):
        from agentflow.api.recorded import was_offered_search

        return was_offered_search(model, root)
    from agentflow.model.credentials import searches

    return searches(model, settings, os.environ)


def load_content(root: Path, toolbox: Toolbox) -> Content:
    """Return the roles and skills that count here. Raises InvalidFile, UnknownTool or UnknownSkill.

    A file that plays no part of the pipeline was written for other tools too: it is left out with a warning.
    """
    roles = load_roles(
        folders(os.environ).claude, trusted_roles(root), load_settings(os.environ).limits.calls
    )
    skills = load_skills(places(root))
    used, warnings = [], [*roles.warnings, *skills.warnings]
    for role in roles.all:
        try:
            toolbox.offered(role)
        except UnknownTool as error:
            if role.part:
                raise
            warnings.append(f"role left out: {error}")
            continue
        used.append(role)
        warnings.extend(_unknown_skill(role, skills))
    for role in used:
        if role.part:
            require_known(role, subagents(tuple(used)))
    return Content(roles=roles.replace(all=tuple(used)), skills=skills, warnings=tuple(warnings))


def places(root: Path) -> tuple[Place, ...]:
    """Return where skills are looked for here."""
    found = folders(os.environ)
    return skill_places(found.claude, found.config.parent, root)


def _unknown_skill(role: Role, skills: Skills) -> tuple[str, ...]:
    missing = unknown(role, skills)
    if missing and role.part:
        raise UnknownSkill(f"{role.place('skills')}: {missing}", hint="agentflow skills list shows them")
    return (f"{role.place('skills')}: {missing}",) if missing else ()
