"""Which skills the runs of a task opened, and why."""

from collections.abc import Iterator
from pathlib import Path

from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.library.relevance import list_shared_words
from agentflow.library.skill_file import Skill
from agentflow.library.skills import Skills
from agentflow.loop.open_skills import list_opened_names
from agentflow.store.journal import load_run


class OpenedSkill(Record):
    """A skill in a run."""

    skill: str
    role: str
    run: int
    why: str


def list_opened_skills(folder: Path, skills: Skills) -> tuple[OpenedSkill, ...]:
    """Return the skills that the runs of a task opened, in the order of the runs."""
    runs = (load_run(path) for path in sorted((folder / "runs").glob("*.jsonl"), key=_number_of))
    return tuple(row for run in runs if run is not None for row in _list_of_run(run, skills))


def _number_of(path: Path) -> int:
    return int(path.name.split("-")[0])


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
