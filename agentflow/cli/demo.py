"""The demo's repository: a copy of a bundled example, with a commit of its own."""

import shutil
import sys
import tempfile
from pathlib import Path

from agentflow.core.errors import ConfigError, UsageError
from agentflow.library.bundled import bundled
from agentflow.process import capture
from agentflow.view.terminal import send

EXAMPLE = "invoicing"
_AUTHOR = ("-c", "user.name=agentflow demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false")


def make_demo(target: Path | None) -> Path:
    """Copy the example to a folder and commit it; return the folder. Raises UsageError."""
    if target is None:
        folder = Path(tempfile.mkdtemp(prefix="agentflow-demo-"))
    else:
        folder = target.absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{target} is not an empty folder", hint="name a new one, or none at all")
    try:
        shutil.copytree(bundled("examples") / EXAMPLE, folder, dirs_exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror}") from None
    for words in (("init", "-q"), ("add", "-A"), (*_AUTHOR, "commit", "-q", "--no-verify", "-m", "Start")):
        finished = capture(("git", *words), cwd=folder)
        if finished.returncode:
            raise ConfigError(f"git {words[0]} failed: {finished.stderr.decode('utf-8', 'replace').strip()}")
    send(f"demo repository: {folder}\n", sys.stderr)
    return folder
