"""A commented start for a new skill or role, written where such files are looked for."""

import os
import re
from pathlib import Path

from agentflow.core.errors import UsageError
from agentflow.core.regex import regex
from agentflow.settings import folders
from agentflow.workspace.git import open_repository

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = regex(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAME = 64


def find_own_folder(kind: str, folder: Path, *, of_user: bool) -> Path:
    """Return the folder of the user's or the repository's `skills`, `agents` and the like."""
    claude = folders(os.environ).claude if of_user else open_repository(folder).root / ".claude"
    return claude / kind


def write_start(template: str, path: Path, name: str) -> None:
    """Write a template under a name. Raises UsageError for a bad name or a file that is there."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise UsageError(
            f"{name!r} is no name", hint="use lower-case letters, digits and single hyphens, at most 64"
        )
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already", hint="choose another name, or edit that file")
    title = re.sub("-", " ", name)
    text = (_TEMPLATES / template).read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(name=name, title=title, heading=title.capitalize()), "utf-8")
