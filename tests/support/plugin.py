"""A plugin in the shape that public ones have: six agents, eleven skills, five commands, hooks, servers."""

import shutil
from pathlib import Path

PLUGIN = Path(__file__).with_name("public_plugin")
AGENTS = tuple(sorted(path.stem for path in (PLUGIN / "agents").iterdir()))
SKILLS = tuple(sorted(path.name for path in (PLUGIN / "skills").iterdir()))
COMMANDS = tuple(sorted(path.stem for path in (PLUGIN / "commands").iterdir()))


def copy_plugin(to: Path) -> Path:
    """Copy the plugin, its hidden files included, and return the folder."""
    return Path(shutil.copytree(PLUGIN, to, dirs_exist_ok=True))


def copy_parts(to: Path, *parts: str) -> None:
    """Copy parts of the plugin, such as `agents` and `skills`, into a `.claude` folder."""
    for part in parts:
        shutil.copytree(PLUGIN / part, to / part, dirs_exist_ok=True)
