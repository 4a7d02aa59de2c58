"""`init`: the files that agentflow needs in a repository, and what it finds there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say_json, show

if TYPE_CHECKING:
    from agentflow.view.text import Line
    from agentflow.workspace.git import Git

_IGNORE = ".gitignore"
_STATES = {
    "written": "written",
    "exists": "exists, left as it is",
    "has_block": "has the managed block already",
    "damaged": "left as it is: its managed block has no beginning or no end",
    "link": "left as it is: it is a link",
    "off": "left as it is: AGENTFLOW_NO_GITIGNORE is set",
}
_REPAIR = (
    "No model is configured. The built-in repair engine can only fix Python code with failing tests. "
    "Set ANTHROPIC_API_KEY to do other tasks."
)


def init(json: bool = JSON, folder: Path = FOLDER) -> None:
    """Set up this repository. Existing files are left alone.

    Writes .claude/agentflow.yaml and a block in .gitignore, then shows the checks, the sandbox and the
    model that tasks will use. Running it again changes nothing.
    """
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    told = {"root": str(git.root), "files": _files(git), **_find_setup(git)}
    if json:
        say_json(told)
    else:
        show(_rows(told))


def _files(git: "Git") -> list[dict[str, str]]:
    """Write what is missing. Raises ConfigError where it cannot be written."""
    from agentflow.core.errors import ConfigError
    from agentflow.settings import PROJECT_FILE
    from agentflow.workspace.ignored_files import write_shared_block

    try:
        return [
            {"path": PROJECT_FILE, "state": _settings(git.root / PROJECT_FILE, git.root)},
            {"path": _IGNORE, "state": write_shared_block(git)},
        ]
    except OSError as error:
        place = Path(error.filename or PROJECT_FILE).parent
        raise ConfigError(
            f"cannot write in {place}: {error.strerror}", hint="agentflow keeps its files below .claude/"
        ) from None


def _settings(path: Path, root: Path) -> str:
    """Write the settings file and trust it as it was written, unless there is one; return its state."""
    from agentflow.api.trust import load_trust_here
    from agentflow.core.errors import ConfigError
    from agentflow.frontmatter import write_atomic
    from agentflow.settings import PROJECT_FILE, folders
    from agentflow.trust import fingerprint, record_trust

    if path.parent.is_symlink() or (path.parent.exists() and not path.parent.is_dir()):
        raise ConfigError(
            f"{path.parent} is not a folder", hint="move it away; agentflow keeps its files in it"
        )
    if os.path.lexists(path):
        return "exists"
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, Path(__file__).with_name("project.yaml").read_bytes(), mode=0o644)
    digest = fingerprint(root, PROJECT_FILE)
    assert digest is not None
    record_trust(folders(os.environ).config, root, {**load_trust_here(root).files, PROJECT_FILE: digest})
    return "written"


def _find_setup(git: "Git") -> dict[str, Any]:
    """Return what tasks will run here, and the command to go on with."""
    from agentflow.api.boundary import Wish, describe_sandbox, make_sandbox
    from agentflow.api.trust import list_untrusted
    from agentflow.api.verification import run_checks
    from agentflow.core.errors import NoSandbox
    from agentflow.settings import load_settings, model_name

    settings = load_settings(os.environ)
    checks: list[dict[str, Any]] | None = None
    try:
        sandbox = make_sandbox(git.root, settings, Wish(), git.folders)
        said, checks = (
            describe_sandbox(sandbox),
            [row.told for row in run_checks(sandbox, is_quick=False, dry_run=True)],
        )
    except NoSandbox as error:
        said = f"{error}; {error.hint}"
    left = [item.file for item in list_untrusted(git.root)]
    then = "doctor" if checks is None else "verify" if checks and not left else "trust"
    return {
        "checks": checks,
        "sandbox": said.removeprefix("sandbox: "),
        "model": model_name(None, settings, os.environ),
        "untrusted": left,
        "next": f"agentflow {then}",
    }


def _rows(told: dict[str, Any]) -> Iterator["Line"]:
    from agentflow.view.text import Style, column, label_row, span

    for number, file in enumerate(told["files"]):
        name = column(file["path"], 24, Style.BOLD)
        yield label_row("" if number else "files", name, span(_STATES[file["state"]]))
    yield from _checks(told["checks"])
    yield label_row("sandbox", span(told["sandbox"]))
    model = _REPAIR if told["model"] == "repair" else told["model"]
    yield label_row("model", span(model))
    if told["untrusted"]:
        yield label_row("untrusted", span(f"{', '.join(told['untrusted'])} (ignored until trusted)"))
    yield label_row("next", span(told["next"], Style.ACCENT), span(f"  {_why(told)}", Style.DIM))


def _why(told: dict[str, Any]) -> str:
    """Return what the next command is for."""
    if told["next"] == "agentflow doctor":
        return "reports what the sandbox lacks"
    if told["next"] == "agentflow verify":
        return "runs these checks, without a model"
    if told["checks"]:
        return "review what this repository wants to run"
    return "after you have written your test command into .claude/agentflow.yaml"


def _checks(checks: list[dict[str, Any]] | None) -> Iterator["Line"]:
    from agentflow.view.text import Style, column, label_row, span

    if not checks:
        none = "not looked for without a sandbox" if checks is None else "none found"
        yield label_row("checks", span(none, Style.WARN))
    for number, check in enumerate(checks or ()):
        missing = span(f"  cannot run: {check['missing']}" if check["missing"] else "", Style.WARN)
        name = column(check["check"], 7, Style.BOLD)
        yield label_row("" if number else "checks", name, span(check["command"]), missing)
