"""The composition root: settings to adapters to crew."""

import os
from pathlib import Path

from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.ports import Model
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.library.roles import Roles, load_roles
from agentflow.model.tiers import DEEP, FAST
from agentflow.process import timestamp
from agentflow.settings import Settings, folders, load_settings
from agentflow.store.tasks import TaskStore, new_task_id
from agentflow.tools.registry import Toolbox, standard
from agentflow.workflow.checking import Checking
from agentflow.workflow.crew import Crew
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import Git, open_repository

_LIVE = ("anthropic", "bedrock", "vertex", "foundry")


class Setup(Record):
    """What a task needs before it has a folder: all of it is checked before anything is written."""

    git: Git
    settings: Settings
    roles: Roles
    toolbox: Toolbox
    model: Model


def prepare(start: Path, model: str | None, text: str) -> Setup:
    """Return what a task of this text needs. Raises the error that the person should see."""
    git = open_repository(start)
    settings = load_settings(os.environ)
    roles = load_roles(folders(os.environ).claude)
    toolbox = standard()
    for role in roles.all:
        toolbox.offered(role)
    chosen = choose_model(model or os.environ.get("AGENTFLOW_MODEL") or settings.model or "repair", git.root)
    reason = chosen.refusal(text)
    if reason is not None:
        raise ModelRejected(reason, hint=ADVICE)
    return Setup(git=git, settings=settings, roles=roles, toolbox=toolbox, model=chosen)


ADVICE = "for other tasks configure a model, with --model or AGENTFLOW_MODEL (this version: script:FILE)"


def choose_model(name: str, root: Path) -> Model:
    """Return the model of a name. Raises ConfigError for an unknown one, ModelRejected for a later one."""
    if name == "repair":
        from agentflow.repair.policy import Repair

        return Repair(root)
    if name.startswith("script:"):
        from agentflow.model.scripted import load_script

        return load_script(name.removeprefix("script:"))
    if name in _LIVE:
        raise ModelRejected(f"model {name} is not in this version", hint="repair and script:FILE are")
    raise ConfigError(f"unknown model {name!r}", hint="models: repair, script:FILE")


def new_task(setup: Setup, text: str, max_iterations: int | None) -> TaskState:
    return TaskState(
        task_id=new_task_id(),
        task=text,
        started_at=timestamp(),
        max_iterations=max_iterations or setup.settings.max_iterations,
        model=setup.model.name,
    )


def _models(setup: Setup) -> dict[str, str]:
    """Return what the tiers stand for; the embedded model is the same in each."""
    return {DEEP: "repair", FAST: "repair"} if setup.model.name == "repair" else setup.settings.models


def assemble(setup: Setup, store: TaskStore) -> Crew:
    """Return the crew of a task whose folder exists."""
    return Crew(
        git=setup.git,
        workspace=Fence(setup.git.root),
        roles=setup.roles,
        model=setup.model,
        models=_models(setup),
        toolbox=setup.toolbox,
        store=store,
        checking=Checking(setup.git, store, setup.settings.timeouts),
    )
