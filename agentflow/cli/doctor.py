"""`doctor`: attacks on the sandbox, and what is installed and configured; no value of a secret is shown."""

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import typer

from agentflow.api.boundary import TaskRequest, make_sandbox
from agentflow.checks.detect import detect
from agentflow.cli.arguments import JSON
from agentflow.cli.printing import tell_result
from agentflow.core.check_command import format_command
from agentflow.core.errors import AgentflowError, Exit
from agentflow.core.record import Record
from agentflow.model.endpoint import choose_endpoint
from agentflow.model.tiers import parse_choice
from agentflow.process import capture
from agentflow.sandbox.examine import ATTRIBUTES, WHO, Attack, attack_profiles
from agentflow.sandbox.profile import CHECKS, Level, SandboxOpenings
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Settings, choose_model_name, find_folders, load_settings
from agentflow.view.text import BLANK, Line, Style, column, label_row, line, span
from agentflow.view.words import pass_mark
from agentflow.workspace.git import open_repository
from agentflow.workspace.path_guard import PathGuard

_FOLDER = typer.Option(Path(), "-C", help="A repository, if there is one.", metavar="DIR")


_PROGRAMS = {
    "git": "",
    "python3": "",
    "rg": ": searching is slower; install the package ripgrep",
    "bwrap": ": the sandbox keeps less apart; install the package bubblewrap",
}
"""What a user lacks without a program, and what mends it."""
_REACH_SECONDS = 3.0
_KNOWN_GAPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"sockets of services": WHO, ATTRIBUTES: ("implementer", CHECKS)}
)
"""What a partial sandbox does not isolate, and for which callers."""
_NAME = 29
_MARK = 9
_MARKS = MappingProxyType(
    {None: ("allowed", Style.DIM), True: ("blocked", Style.PLAIN), False: ("OPEN", Style.BAD)}
)
_HEADS = ("reader", "writer", "checks")
"""The column titles of the callers in WHO."""


class Diagnosis(Record):
    """The findings of `doctor`, without the value of any secret."""

    sandbox: str
    reason: str
    gaps: tuple[str, ...]
    attacks: tuple[Attack, ...]
    programs: dict[str, str]
    model: str
    endpoint: str
    credentials: tuple[str, ...]
    """Their kinds."""
    reachable: bool | None
    """None for a model that needs no network."""
    settings: str
    checks: tuple[str, ...] | None
    """None outside of a repository."""
    hidden: tuple[str, ...]
    shown: tuple[str, ...]


def doctor(json: bool = JSON, folder: Path = _FOLDER) -> int:
    """Test the sandbox and report what is installed and configured. The sandbox is tested by attacking it."""
    found = _examine_machine(folder)
    tell_result(found, _list_findings(found), json=json)
    return choose_doctor_exit(found)


def _examine_machine(folder: Path) -> Diagnosis:
    settings = load_settings(os.environ)
    sandbox = make_sandbox(folder.resolve(), settings, TaskRequest(must_run=True))
    ability = sandbox.ability
    places = sandbox.find_hidden_places()
    path = find_folders(os.environ).config
    model = choose_model_name(None, settings, os.environ)
    address, credentials = _find_endpoint(settings) if parse_choice(model).kind == "anthropic" else ("", ())
    return Diagnosis(
        sandbox=ability.level,
        reason=ability.reason,
        gaps=ability.gaps,
        attacks=()
        if ability.level is Level.NONE
        else attack_profiles(sandbox.replace(opened=SandboxOpenings())),
        programs={name: _read_version(name) for name in _PROGRAMS},
        model=model,
        endpoint=address,
        credentials=credentials,
        reachable=_is_reachable(address) if address else None,
        settings=str(path) if path.is_file() else "",
        checks=_list_checks(folder, sandbox),
        hidden=tuple(str(place) for place in places.hidden),
        shown=tuple(str(place) for place in places.readable),
    )


def choose_doctor_exit(found: Diagnosis) -> Exit:
    """Return 7 without a sandbox, and 1 where an attack got out of it."""
    if found.sandbox == Level.NONE:
        return Exit.NO_SANDBOX
    known = _KNOWN_GAPS if found.sandbox == Level.PARTIAL else {}
    open_ways = any(
        not held and who not in known.get(one.name, ())
        for one in found.attacks
        for who, held in one.held.items()
    )
    return Exit.NOT_VERIFIED if open_ways else Exit.VERIFIED


def _list_findings(found: Diagnosis) -> Iterator[Line]:
    yield from (*_draw_sandbox(found), *_draw_attacks(found), BLANK)
    for name, version in found.programs.items():
        text = span(version) if version else span(f"not found{_PROGRAMS[name]}", Style.WARN)
        yield label_row(name, text)
    yield BLANK
    yield label_row("model", span(found.model))
    if found.endpoint:
        yield label_row(
            "endpoint", span(found.endpoint), span("  answers" if found.reachable else "  does not answer")
        )
        names = ", ".join(found.credentials)
        yield label_row("key", span(f"{names} present") if names else span("none", Style.WARN))
    yield label_row("settings", span(found.settings or "none: every setting has its default"))
    if found.checks is not None:
        yield label_row("checks", span("; ".join(found.checks) or "none found in this repository"))


def _draw_sandbox(found: Diagnosis) -> Iterator[Line]:
    good = found.sandbox == Level.FULL
    reason = f"  {found.reason}" if found.reason else ""
    yield label_row("sandbox", span(found.sandbox, Style.GOOD if good else Style.WARN), span(reason))
    for gap in found.gaps:
        yield label_row("", span(f"not isolated: {gap}", Style.WARN))
    yield label_row(
        "by design", span("commands can read the whole git history, including any secrets in it", Style.DIM)
    )
    yield label_row("hidden", span(" ".join(found.hidden)))
    if found.shown:
        yield label_row("except", span(" ".join(found.shown), Style.DIM))


def _draw_attacks(found: Diagnosis) -> Iterator[Line]:
    if found.attacks:
        open_ways = sum(not held for attack in found.attacks for held in attack.held.values())
        result = span(f"{open_ways} not blocked", Style.BAD) if open_ways else span("all blocked", Style.GOOD)
        yield label_row("attacks", span(f"{len(found.attacks)} on each profile: "), result)
        yield BLANK
        heads = (column(head, _MARK, Style.DIM) for head in _HEADS)
        yield line(column("  attack", _NAME, Style.DIM), *heads)
    for attack in found.attacks:
        marks = (_MARKS[attack.held.get(who)] for who in WHO)
        head = pass_mark(all(attack.held.values()))
        yield line(
            head, column(attack.name, _NAME - 2), *(column(text, _MARK, style) for text, style in marks)
        )


def _read_version(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        return ""
    try:
        said = capture((program, "--version"), cwd=Path("/"))
    except OSError:
        return ""
    return said.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _find_endpoint(settings: Settings) -> tuple[str, tuple[str, ...]]:
    found = choose_endpoint(os.environ, settings)
    place = urlsplit(found.address)
    port = f":{place.port}" if place.port else ""
    kinds = (("API key", found.key), ("token", found.token))
    address = f"{place.scheme}://{place.hostname or ''}{port}"
    return address, tuple(kind for kind, secret in kinds if secret is not None)


def _is_reachable(address: str) -> bool:
    place = urlsplit(address)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        with socket.create_connection((place.hostname or "", port), _REACH_SECONDS):
            return True
    except OSError:
        return False


def _list_checks(folder: Path, sandbox: Sandbox) -> tuple[str, ...] | None:
    try:
        root = open_repository(folder).root
    except AgentflowError:
        return None
    found = detect(sandbox.replace(root=root), PathGuard(root).list_files())
    return tuple(f"{check.name}: {format_command(check.command)}" for check in found)
