"""`skills` and `commands`: instructions that roles open, and texts that a person calls as `/name`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.api.content import Content
from agentflow.cli.arguments import FOLDER, JSON, make_group
from agentflow.cli.catalog import (
    NAME,
    NEW_NAME,
    USER,
    find_own_folder,
    load_content_here,
    show_body,
    show_entry,
    show_facts,
    tell_warnings,
    write_start,
)
from agentflow.cli.printing import say, say_json, show
from agentflow.core.errors import Exit, UnknownSkill
from agentflow.core.record import Record, to_builtins
from agentflow.core.run import Run
from agentflow.library.skill_file import Skill, list_skill_files, open_body
from agentflow.library.skills import Skills, list_shared_words, run_skill_tests
from agentflow.loop.open_skills import list_opened_names
from agentflow.store.journal import load_runs
from agentflow.store.reading import find
from agentflow.view.text import Style, column, line, span
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.library.slash_commands import PromptCommand

_UNOWNED = "every role, as it names no owner"
ONE_NAME = typer.Argument(None, metavar="NAME", help="A name from `list`; all that have tests by default.")
USED_IN = typer.Argument(None, metavar="TASK", help="A task's id or its beginning.")
skills = make_group()


@skills.command(name="list", epilog="Example: agentflow skills list --json")
def list_skills(task: str | None = USED_IN, json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the skills and the roles that use them.

    With TASK, list the skills that the task opened, and why.
    """
    if task is not None:
        _list_used(task, folder, json=json)
        return
    content = load_content_here()
    rows = [_to_skill_row(skill, content) for skill in content.skills.all]
    if json:
        say_json(rows)
        return
    for row in rows:
        users = ", ".join(filter(None, (row["owner"], *row["consumers"]))) or _UNOWNED
        show_entry(row["name"], row["source"], {"": row["description"], "roles": users})
    tell_warnings(content)


@skills.command(name="show", epilog="Example: agentflow skills show verification-gates")
def show_skill(name: str = NAME, json: bool = JSON) -> None:
    """Show a skill: its owner, its files, and the text that a role reads."""
    content = load_content_here()
    found = content.skills.find(name)
    if found is None:
        raise UnknownSkill(f"there is no skill {name}", hint="agentflow skills list shows them")
    row = {**_to_skill_row(found, content), "path": found.source, "files": list_skill_files(found)}
    if json:
        say_json({**row, "body": open_body(found).text})
        return
    show_facts(row, "description", "owner", "consumers", "source", "path", "files")
    show_body(open_body(found).text)


@skills.command(name="new", epilog="Example: agentflow skills new money")
def new_skill(name: str = NEW_NAME, user: bool = USER, folder: Path = FOLDER) -> None:
    """Write a commented skill to start from, with a test. `check` accepts it unchanged."""
    place = find_own_folder("skills", folder, of_user=user) / name
    write_start("skill.md", place / "SKILL.md", name)
    write_start("skill-tests.yaml", place / "tests.yaml", name)
    say(f"Wrote {place}/SKILL.md and tests.yaml.")
    say(f"Edit them, then run `agentflow skills test {name}`.")


@skills.command(name="test", epilog="Example: agentflow skills test money")
def check_skills(name: str | None = ONE_NAME, json: bool = JSON) -> int:
    """Run the tests of skills, which say for which tasks one is offered.

    They are in the skill's tests.yaml. No model is asked.
    """
    content = load_content_here()
    chosen = [skill for skill in content.skills.all if name in (None, skill.name)]
    if not chosen:
        raise UnknownSkill(f"there is no skill {name}", hint="agentflow skills list shows them")
    found = [row for skill in chosen for row in run_skill_tests(skill, content.skills, content.roles)]
    if json:
        say_json([to_builtins(row) for row in found])
    else:
        for row in found:
            say(row.text)
        say(f"{len(found)} tests" if found else "No tests found. Write tests.yaml beside SKILL.md.")
    return Exit.VERIFIED if all(row.passed for row in found) else Exit.NOT_VERIFIED


def _list_used(task: str, folder: Path, *, json: bool) -> None:
    rows = _list_opened_skills(find(open_repository(folder).root, task), load_content_here().skills)
    if json:
        say_json([to_builtins(row) for row in rows])
        return
    for row in rows:
        say(f"{row.skill}  {row.role}, run {row.run}: {row.why}")
    if not rows:
        say("This task opened no skill.")


def _to_skill_row(skill: Skill, content: Content) -> dict[str, Any]:
    listing = (role.name for role in content.roles.all if skill.name in role.skills)
    consumers = {*skill.consumers, *listing} - {skill.owner}
    return {
        "name": skill.name,
        "description": skill.description,
        "owner": skill.owner,
        "consumers": sorted(consumers),
        "source": skill.origin,
    }


class OpenedSkill(Record):
    """A skill that a run opened, and why."""

    skill: str
    role: str
    run: int
    why: str


def _list_opened_skills(folder: Path, skills: Skills) -> tuple[OpenedSkill, ...]:
    return tuple(row for run in load_runs(folder) for row in _list_of_run(run, skills))


def _list_of_run(run: Run, skills: Skills) -> Iterator[OpenedSkill]:
    for name, is_from_start in list_opened_names(run):
        skill = skills.find(name)
        why = _explain_start(skill) if is_from_start else _explain_call(skill, run)
        yield OpenedSkill(skill=name, role=run.head.role, run=run.head.run, why=why)


def _explain_start(skill: Skill | None) -> str:
    keys = {} if skill is None else {"roles": skill.roles, "phases": skill.phases, "paths": skill.paths}
    named = [f"{key} {', '.join(values)}" for key, values in keys.items() if values]
    return f"open from the beginning ({'; '.join(named)})" if named else "open from the beginning"


def _explain_call(skill: Skill | None, run: Run) -> str:
    words = list_shared_words(run.task_prompt, skill) if skill else ()
    shared = f"; shares the words {', '.join(words[:8])}" if words else ""
    return f"the role opened it{shared}"


commands = make_group()


@commands.command(name="list", epilog="Example: agentflow commands list --json")
def list_prompt_commands(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the commands with their arguments and where they come from."""
    from agentflow.api.slash_commands import load_commands_here, may_be_called

    root = open_repository(folder).root
    found = load_commands_here(root)
    rows = [_to_row(command, counts=may_be_called(root, command)) for command in found.all]
    if json:
        say_json(rows)
        return
    if not rows:
        say("There are no commands here. A file .claude/commands/NAME.md is called as /NAME.")
    for row in rows:
        called = f"/{row['name']} {row['argument_hint']}".rstrip()
        state = row["source"] if row["trusted"] else f"{row['source']}, not trusted: agentflow trust"
        place = f"{state}, {row['folder']}" if row["folder"] else state
        show([line(column(called, 32, Style.BOLD), span(f"  {row['description']}"), hang=4)])
        show([line("  ", span(place, Style.DIM), hang=4)])
    for warning in found.warnings:
        show([line(span(f"! {warning}", Style.WARN), hang=2)])


def _to_row(command: "PromptCommand", *, counts: bool) -> dict[str, Any]:
    return {
        "name": command.called,
        "description": command.description,
        "argument_hint": command.hint,
        "tools": None if command.tools is None else [str(rule) for rule in command.tools],
        "model": command.model,
        "folder": command.folder,
        "source": f"plugin {command.plugin}" if command.plugin else command.origin,
        "path": str(command.path),
        "trusted": counts,
    }
