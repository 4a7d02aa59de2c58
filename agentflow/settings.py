"""What the user configured: `config.yaml` in the user's folder, and the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.core.evidence import CheckName
from agentflow.core.record import Record
from agentflow.frontmatter import load_yaml
from agentflow.parse import parse

PROJECT_FILE = Path(".claude/agentflow.yaml")


class Settings(Record):
    """The user's settings; each has a default that works."""

    model: str | None = None
    """What `--model` would say."""
    models: dict[str, str] = {}
    """Tier to model id."""
    max_iterations: int = 10
    timeouts: dict[CheckName, float] = {}
    """Seconds a check may take."""


class Folders(Record):
    """Where the user's files lie."""

    config: Path
    claude: Path
    """Roles and skills of the user, shared with other tools of that format."""


def folders(environ: Mapping[str, str]) -> Folders:
    """Return the user's folders; `AGENTFLOW_HOME` moves them all, a relative XDG value is ignored."""
    home = Path(environ.get("AGENTFLOW_HOME") or environ.get("HOME") or Path.home())
    named = Path(environ.get("XDG_CONFIG_HOME", ""))
    moved = "AGENTFLOW_HOME" in environ or not named.is_absolute()
    base = home / ".config" if moved else named
    return Folders(config=base / "agentflow" / "config.yaml", claude=home / ".claude")


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Return the user's settings. Raises InvalidFile naming file, line and key."""
    path = folders(environ).config
    if not path.is_file():
        return Settings()
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    return parse(Settings, load_yaml(text, str(path)) or {}, str(path), lax=True)


def model_name(option: str | None, settings: Settings) -> str:
    """Return which model to use: option, environment, settings, else the embedded one."""
    return option or os.environ.get("AGENTFLOW_MODEL") or settings.model or "repair"
