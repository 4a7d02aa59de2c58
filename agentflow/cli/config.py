"""`init`, `config`, `check` and `doctor`: a repository's settings, what is wrong, the machine."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import typer

from agentflow.api.boundary import TaskRequest, describe_sandbox, make_sandbox, open_sandbox
from agentflow.api.models import choose_tiers
from agentflow.api.trust import find_root_of, list_untrusted, load_project_at, load_trust_here
from agentflow.api.verification import run_checks
from agentflow.checks.detect import detect
from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.models import ProviderState, draw_providers, find_models
from agentflow.cli.printing import tell_result
from agentflow.core.check_command import format_command
from agentflow.core.errors import AgentflowError, ConfigError, Exit, NoSandbox, advise_on_os_error
from agentflow.core.record import Record, to_builtins
from agentflow.frontmatter import write_atomic
from agentflow.model import tiers
from agentflow.process import capture
from agentflow.redact import format_count, to_one_line
from agentflow.sandbox.examine import ATTRIBUTES, WHO, Attack, attack_profiles
from agentflow.sandbox.profile import CHECKS, Level, SandboxOpenings
from agentflow.sandbox.run import Sandbox
from agentflow.settings import (
    MODEL_VARIABLES,
    PROJECT_FILE,
    Project,
    Settings,
    apply_project,
    choose_model_name,
    find_folders,
    load_settings,
    tighten,
)
from agentflow.trust import fingerprint_file, record_trust
from agentflow.view.text import BLANK, Line, Style, column, label_row, line, span, tabulate
from agentflow.view.words import pass_mark
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.ignored_files import write_shared_block
from agentflow.workspace.path_guard import PathGuard


def config(
    explain: bool = typer.Option(
        False, "--explain", help="Also show capabilities, limits, hooks, rules and instructions."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    rows = _list_settings(folder)
    parts = _explain(folder) if explain else {}
    tell_result({"settings": rows, **parts}, _draw_settings(rows, parts), json=json)


def _draw_settings(rows: list[dict[str, Any]], parts: dict[str, list[str]]) -> Iterator[Line]:
    for row in rows:
        usual = row["source"] == "default"
        value = column(f"{_to_words(row['value']) or '-'}  ", 30, Style.DIM if usual else Style.BOLD)
        yield label_row(
            row["key"], value, span(row["source"], Style.DIM if usual else Style.ACCENT), width=22
        )
    for title, texts in parts.items():
        yield from (BLANK, line(span(title, Style.BOLD)))
        yield from (line("  ", span(text), hang=4) for text in texts or ["none"])


def _to_words(value: object) -> str:
    if isinstance(value, dict):
        known = {key: one for key, one in value.items() if one not in (None, [], {})}
        return f"{{{', '.join(f'{key}: {_to_words(one)}' for key, one in known.items())}}}" if known else ""
    if isinstance(value, list):
        return f"[{', '.join(map(_to_words, value))}]" if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _list_settings(folder: Path) -> list[dict[str, Any]]:
    path = str(find_folders(os.environ).config)
    own, project = load_settings(os.environ), load_project_at(folder)
    default, mine, found = (to_builtins(each) for each in (Settings(), own, apply_project(own, project)))
    rows = {}
    for key, value in found.items():
        sources = [path] if mine[key] != default[key] else []
        sources += [PROJECT_FILE] if value != mine[key] else []
        rows[key] = {"key": key, "value": value, "source": ", ".join(sources) or "default"}
    if own.webhook:  # its path or user often is a key
        place = urlsplit(own.webhook)
        rows["webhook"]["value"] = f"{place.scheme}://{place.hostname}/…"
    for name, value in to_builtins(own.limits.fit_window(None)).items():
        source = "default" if value == default["limits"].get(name) or mine["limits"][name] is None else path
        rows[f"limits.{name}"] = {"key": f"limits.{name}", "value": value, "source": source}
    unsaid = (Project(), tighten(Project(), own))
    for key, each in {"checks": project.checks, "limits": project.limits}.items():
        value = {name: one for name, one in to_builtins(each).items() if one is not None}
        is_said = all(each != getattr(nothing, key) for nothing in unsaid)
        rows[key] = {"key": key, "value": value, "source": PROJECT_FILE if is_said else "default"}
    named = ("AGENTFLOW_MODEL", *(() if own.model else MODEL_VARIABLES))
    source = next((name for name in named if os.environ.get(name)), rows["model"]["source"])
    rows["model"] = {"key": "model", "value": choose_model_name(None, own, os.environ), "source": source}
    return list(rows.values())


def _list_models(settings: Settings) -> list[str]:
    name = choose_model_name(None, settings, os.environ)
    if not tiers.parse_choice(name).is_live:
        return [f"{name}: for both tiers"]
    models, kind = choose_tiers(settings, name).models, tiers.parse_choice(name).kind

    def add_price(model: str) -> str:
        price = tiers.find_price(model, kind, settings)
        cost = f"{price.input:g} / {price.output:g} USD a million tokens" if price else "price unknown"
        return f"{model} ({cost})"

    return [
        f"{tier}: {', then '.join(map(add_price, tiers.list_ids(tier, models)))}"
        for tier in (tiers.DEEP, tiers.FAST)
    ]


def _list_instructions(git: Git) -> Iterator[str]:
    """Yield the instruction files with their sizes, and what of them does not fit."""
    from agentflow.library.instructions import MAX_IN_PROMPT, describe_reach, load_instructions
    from agentflow.memory.place import find_learnings

    workspace, left = PathGuard(git.root, git=git.folders), MAX_IN_PROMPT
    for each in load_instructions(workspace, workspace.list_files(), find_learnings(git.root)):
        where = describe_reach(each)
        shown = len(each.text) if where else min(len(each.text), left)
        left -= 0 if where else shown
        cut = f"; {each.size - shown:,} left out, prompts take {MAX_IN_PROMPT:,}" if shown < each.size else ""
        yield f"{each.path}: {where or 'in every prompt'}, characters: {each.size:,}{cut}"


def _explain(folder: Path) -> dict[str, list[str]]:
    from agentflow.api.wiring import list_shared_capabilities, prepare
    from agentflow.cli.catalog import ignore_event
    from agentflow.compose.standard import Kit, describe_capabilities, list_standard_capabilities

    request = TaskRequest(text="fix the failing tests", model="repair", must_run=True)
    setup = prepare(folder, request)
    kit = Kit(model=setup.model, models={}, toolbox=setup.toolbox, events=ignore_event)
    standard = list_standard_capabilities(setup.roles.find_part("implementer"), kit)
    shared = list_shared_capabilities(setup.hooks, setup.rules, setup.settings.approvals)
    rules = [f"{name} {rule}" for name in ("deny", "ask", "allow") for rule in getattr(setup.rules, name)]
    return {
        "models": _list_models(setup.settings),
        "capabilities": list(describe_capabilities((*standard, *shared))),
        "limits": [
            f"{role.name}: {role.limits.turns} turns, {role.limits.tool_calls} tool calls"
            for role in setup.roles.all
        ],
        "hooks": [f"{hook.point} {hook.name} ({hook.origin.name.lower()})" for hook in setup.hooks],
        "rules": rules,
        "instructions": list(_list_instructions(setup.git)),
        "notes": list(setup.warnings),
    }


_IGNORE = ".gitignore"
_STATES = {
    "written": "written",
    "exists": "exists, left as it is",
    "has_block": "already has the managed block",
    "damaged": "left as it is: its managed block has no beginning or no end",
    "link": "left as it is: it is a link",
    "off": "left as it is: AGENTFLOW_NO_GITIGNORE is set",
}
_PURPOSES = {
    "agentflow doctor": "reports what the sandbox lacks",
    "agentflow verify": "runs these checks, without a model",
    "agentflow trust": "review what this repository wants to run",
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
    git = open_repository(folder)
    found = find_setup(git)  # what is wrong is said before a file is written
    result = {"root": str(git.root), "files": _write_files(git), **found}
    tell_result(result, _draw_setup(result), json=json)


def _write_files(git: Git) -> list[dict[str, str]]:
    was_there = os.path.lexists(git.root / PROJECT_FILE)
    try:
        return [
            {"path": PROJECT_FILE, "state": _write_settings(git.root / PROJECT_FILE, git.root)},
            {"path": _IGNORE, "state": write_shared_block(git)},
        ]
    except OSError as error:
        if not was_there and (git.root / PROJECT_FILE).is_file():
            (git.root / PROJECT_FILE).unlink()
        place = Path(error.filename or PROJECT_FILE)
        hint = "agentflow keeps its files below .claude/"
        if not place.is_relative_to(git.root):
            hint = "agentflow keeps what you trust in your home folder; set HOME to one that you can write"
        raise ConfigError(
            f"cannot write {place}: {error.strerror}", hint=advise_on_os_error(error, hint)
        ) from None


def _write_settings(path: Path, root: Path) -> str:
    if path.parent.is_symlink() or (path.parent.exists() and not path.parent.is_dir()):
        hint = "move it away; agentflow keeps its files in it"
        raise ConfigError(f"{path.parent} is not a folder", hint=hint)
    if os.path.lexists(path):
        return "exists"
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, Path(__file__).with_name("project.yaml").read_bytes(), mode=0o644)
    digest = fingerprint_file(root, PROJECT_FILE)
    assert digest is not None
    record_trust(find_folders(os.environ).config, root, {**load_trust_here(root).files, PROJECT_FILE: digest})
    return "written"


def find_setup(git: Git) -> dict[str, Any]:
    """Return the checks, the sandbox and the model of this repository, and the next command."""
    checks: list[dict[str, Any]] | None = None
    try:
        sandbox = open_sandbox(git)
        level = describe_sandbox(sandbox)
        checks = [row.values for row in run_checks(sandbox, is_quick=False, dry_run=True)]
    except NoSandbox as error:
        level = f"{error}; {error.hint}"
    left = [item.file for item in list_untrusted(git.root)]
    then = "doctor" if checks is None else "verify" if checks and not left else "trust"
    settings = load_settings(os.environ)
    model = choose_model_name(None, settings, os.environ)
    return {
        "checks": checks,
        "sandbox": level.removeprefix("sandbox: "),
        "model": model,
        "models": tiers.list_models(model, settings),
        "untrusted": left,
        "next": f"agentflow {then}",
    }


def _draw_setup(setup: dict[str, Any]) -> Iterator[Line]:
    for number, file in enumerate(setup["files"]):
        name = column(file["path"], 24, Style.BOLD)
        yield label_row("" if number else "files", name, span(_STATES[file["state"]]))
    yield from draw_surroundings(setup)
    if setup["untrusted"]:
        yield label_row("untrusted", span(f"{', '.join(setup['untrusted'])} (ignored until trusted)"))
    purpose = _PURPOSES[setup["next"]]
    if setup["next"] == "agentflow trust" and not setup["checks"]:
        purpose = "after you have written your test command into .claude/agentflow.yaml"
    yield label_row("next", span(setup["next"], Style.ACCENT), span(f"  {purpose}", Style.DIM))


def draw_surroundings(setup: dict[str, Any]) -> Iterator[Line]:
    checks = setup["checks"]
    if not checks:
        none = "not detected without a sandbox" if checks is None else "none found"
        yield label_row("checks", span(none, Style.WARN))
    for number, check in enumerate(checks or ()):
        missing = span(f"  cannot run: {check['missing']}" if check["missing"] else "", Style.WARN)
        name = column(check["check"], 7, Style.BOLD)
        yield label_row("" if number else "checks", name, span(format_command(check["command"])), missing)
    yield label_row("sandbox", span(setup["sandbox"]))
    yield label_row("model", span(_REPAIR if setup["model"] == "repair" else ", ".join(setup["models"])))


def check(json: bool = JSON, folder: Path = FOLDER) -> int:
    """Validate settings, roles, skills and hooks. Permission rules and hook scripts are checked too."""
    from agentflow.api.validation import ERROR, Standing, list_extensions, validate

    root = find_root_of(folder) or folder.resolve()
    found, parts = validate(root), list_extensions(root)
    commands = sum(part.kind == "command" for part in parts)
    counts = {"agents": found.agents, "skills": found.skills, "hooks": found.hooks, "commands": commands}
    rows = [problem.text for problem in found.problems]
    for part in parts:
        stand = "" if part.standing is Standing.COUNTS and part.reason else f"{part.standing}: "
        row = to_one_line(f"{part.kind} {part.name}: {stand}{part.reason}".removesuffix(": "))
        rows.append(f"{row}  [{part.file}]")
    numbers = {"role file": found.agents, "skill": found.skills, "hook": found.hooks}
    looked_at = ", ".join(format_count(number, noun) for noun, number in numbers.items())
    rows.append(f"{looked_at}, {format_count(len(found.problems), 'problem')}")
    tell_result({"problems": found.problems, "counts": counts, "extensions": parts}, rows, json=json)
    return Exit.CONFIG if any(problem.severity == ERROR for problem in found.problems) else Exit.VERIFIED


ANY_FOLDER = typer.Option(Path(), "-C", help="A repository, if there is one.", metavar="DIR")


_PROGRAMS = {
    "git": "",
    "python3": "",
    "rg": ": searching is slower; install the package ripgrep",
    "bwrap": ": the sandbox keeps less apart; install the package bubblewrap",
}
"""What a user lacks without a program, and what mends it."""
_KNOWN_GAPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"sockets of services": WHO, ATTRIBUTES: ("implementer", CHECKS)}
)
"""What a partial sandbox does not isolate, and for which callers."""
_MARKS = MappingProxyType(
    {None: ("allowed", Style.DIM), True: ("blocked", Style.PLAIN), False: ("OPEN", Style.BAD)}
)
_HEADS = ("attack", "reader", "writer", "checks")
"""The callers are those in WHO."""


class Diagnosis(Record):
    """The findings of `doctor`, without the value of any secret."""

    sandbox: str
    reason: str
    gaps: tuple[str, ...]
    attacks: tuple[Attack, ...]
    programs: dict[str, str]
    model: str
    providers: tuple[ProviderState, ...]
    settings: str
    checks: tuple[str, ...] | None
    """None outside of a repository."""
    hidden: tuple[str, ...]
    shown: tuple[str, ...]


def doctor(json: bool = JSON, folder: Path = ANY_FOLDER) -> int:
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
    found = find_models(None, settings)
    return Diagnosis(
        sandbox=ability.level,
        reason=ability.reason,
        gaps=ability.gaps,
        attacks=()
        if ability.level is Level.NONE
        else attack_profiles(sandbox.replace(opened=SandboxOpenings())),
        programs={name: _read_version(name) for name in _PROGRAMS},
        model=found.model,
        providers=found.providers,
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
    yield from draw_providers(found.providers)
    yield label_row("settings", span(found.settings or "none: every setting has its default"))
    if found.checks is not None:
        yield label_row("checks", span("; ".join(found.checks) or "none found in this repository"))


def _draw_sandbox(found: Diagnosis) -> Iterator[Line]:
    good = found.sandbox == Level.FULL
    reason = f"  {found.reason}" if found.reason else ""
    yield label_row("sandbox", span(found.sandbox, Style.GOOD if good else Style.WARN), span(reason))
    for gap in found.gaps:
        yield label_row("", span(f"not isolated: {gap}", Style.WARN))
    history = "commands can read the whole git history, including any secrets in it"
    yield label_row("by design", span(history, Style.DIM))
    yield label_row("hidden", span(" ".join(found.hidden)))
    if found.shown:
        yield label_row("except", span(" ".join(found.shown), Style.DIM))


def _draw_attacks(found: Diagnosis) -> Iterator[Line]:
    if found.attacks:
        open_ways = sum(not held for attack in found.attacks for held in attack.held.values())
        result = span(f"{open_ways} not blocked", Style.BAD) if open_ways else span("all blocked", Style.GOOD)
        yield label_row("attacks", span(f"{len(found.attacks)} on each profile: "), result)
        yield BLANK
    rows = (
        [span(attack.name), *(span(*_MARKS[attack.held.get(who)]) for who in WHO)] for attack in found.attacks
    )
    marks = [pass_mark(all(attack.held.values())) for attack in found.attacks]
    yield from tabulate(_HEADS, rows, marks=marks) if marks else ()


def _read_version(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        return ""
    try:
        said = capture((program, "--version"), cwd=Path("/"))
    except OSError:
        return ""
    return said.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _list_checks(folder: Path, sandbox: Sandbox) -> tuple[str, ...] | None:
    try:
        root = open_repository(folder).root
    except AgentflowError:
        return None
    found = detect(sandbox.replace(root=root), PathGuard(root).list_files())
    return tuple(f"{check.name}: {format_command(check.command)}" for check in found)
