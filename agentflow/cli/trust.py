"""`trust`: what a repository may do once a person trusts it, and that decision."""

from pathlib import Path

import typer

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say, say_json


def trust(
    yes: bool = typer.Option(False, "--yes", help="Trust everything that is shown, without asking."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Review and trust this repository's hooks, roles, rules and checks. Any later change asks again."""
    import os
    import sys

    from agentflow.api.trust import list_hook_notes, list_items, list_untrusted, load_trust_here
    from agentflow.core.errors import Exit
    from agentflow.core.record import plain
    from agentflow.settings import folders
    from agentflow.trust import record_trust
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found, left = list_items(root), list_untrusted(root)
    before, notes = load_trust_here(root), list_hook_notes(root)
    if not json:
        for item in found:
            state = "trusted" if item not in left else "changed" if item.file in before.files else "new"
            say(f"{state:<8} {item.kind:<12} {item.file}")
            say(f"{'':<8} may {item.does}")
        for note in notes:
            say(f"note     {note}")
    may_ask = bool(left) and not json and sys.stdin.isatty()
    agreed = bool(left) and (yes or (may_ask and _agrees(len({item.file for item in left}))))
    if agreed:
        record_trust(folders(os.environ).config, root, {item.file: item.sha256 for item in found})
    if json:
        told = [{**plain(item), "trusted": agreed or item not in left} for item in found]
        say_json({"root": str(root), "items": told, "notes": list(notes)})
    else:
        say(_outcome(bool(left), agreed, len(found)))
    return Exit.VERIFIED if agreed or not left else Exit.CONFIG


def _agrees(files: int) -> bool:
    return typer.confirm(f"trust {files} file{'s' if files > 1 else ''} as shown?", default=False, err=True)


def _outcome(had_left: bool, agreed: bool, count: int) -> str:
    if agreed and count == 1:
        return "Trusted 1 entry. If it changes, you will be asked again."
    if agreed:
        return f"Trusted {count} entries. If any of them changes, you will be asked again."
    if had_left:
        return "Nothing was trusted. Without a terminal, use `agentflow trust --yes`."
    return "Everything is trusted." if count else "Nothing in this repository needs your trust."
