"""The composition root: settings to adapters to crew."""

import os
from pathlib import Path

from agentflow.cli.models import ADVICE, choose_model, observed, tier_models
from agentflow.compose.capabilities.approval import Approval
from agentflow.compose.capabilities.hooks import UseHooks
from agentflow.compose.channels import Capability
from agentflow.core.errors import ModelRejected
from agentflow.core.hook import Hook
from agentflow.core.pending import Consent
from agentflow.core.ports import Model
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.hooks.chain import Chain
from agentflow.hooks.manifest import is_listed, load_hooks, project_places, user_places, withheld
from agentflow.library.bundled import bundled
from agentflow.library.roles import Roles, load_roles
from agentflow.loop.nodes import request_of
from agentflow.permissions.exceptions import exceptions
from agentflow.permissions.ruling import Rules, load_rules
from agentflow.process import timestamp
from agentflow.settings import Settings, folders, load_settings, model_name
from agentflow.store.journal import load_run
from agentflow.store.tasks import TaskStore, new_task_id
from agentflow.tools.registry import Toolbox, standard
from agentflow.workflow.checking import Checking
from agentflow.workflow.crew import Crew
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.past import Past


class Setup(Record):
    """What a task needs before it has a folder: all of it is checked before anything is written."""

    git: Git
    settings: Settings
    roles: Roles
    toolbox: Toolbox
    model: Model
    hooks: tuple[Hook, ...]
    rules: Rules
    warnings: tuple[str, ...]
    """What the person should know about the files that were read."""


def prepare(start: Path, model: str | None, text: str) -> Setup:
    """Return what a task of this text needs. Raises the error that the person should see."""
    git = open_repository(start)
    settings = load_settings(os.environ)
    roles = load_roles(folders(os.environ).claude)
    toolbox = standard()
    for role in roles.all:
        toolbox.offered(role)
    name = model_name(model, settings, os.environ)
    chosen = choose_model(name, git.root, settings, os.environ)
    reason = chosen.refusal(text)
    if reason is not None:
        raise ModelRejected(reason, hint=ADVICE)
    hooks, warnings = _hooks(git.root, settings)
    return Setup(
        git=git,
        settings=settings,
        roles=roles,
        toolbox=toolbox,
        model=chosen,
        hooks=hooks,
        rules=_rules(git.root),
        warnings=(*roles.warnings, *warnings),
    )


def _rules(root: Path) -> Rules:
    """Return the permission rules that count here."""
    own = folders(os.environ).claude / "settings.json"
    return load_rules(own, tuple(place.path for place in project_places(root)))


def _hooks(root: Path, settings: Settings) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks that count here; a repository's own only where the user named it."""
    places = user_places(bundled("hooks"), folders(os.environ).claude)
    if is_listed(root, settings.hooks_in):
        return load_hooks((*places, *project_places(root)))
    hooks, warnings = load_hooks(places)
    left_out = withheld(root)
    return hooks, (*warnings, *((left_out,) if left_out else ()))


def new_task(setup: Setup, text: str, max_iterations: int | None) -> TaskState:
    return TaskState(
        task_id=new_task_id(),
        task=text,
        started_at=timestamp(),
        max_iterations=max_iterations or setup.settings.max_iterations,
        model=setup.model.name,
    )


def recall_runs(model: Model, folder: Path) -> None:
    """Tell a scripted model which of its entries a saved task has used up."""
    if not model.name.startswith("script:"):
        return
    from agentflow.model.scripted import Scripted

    assert isinstance(model, Scripted)
    for path in sorted((folder / "runs").glob("*.jsonl"), key=lambda path: int(path.name.split("-")[0])):
        run = load_run(path)
        if run is not None:
            model.recall(request_of(run))


def shared_capabilities(setup: Setup) -> tuple[Capability, ...]:
    """Return what every role of the crew gets beside the standard capabilities."""
    return UseHooks(hooks=setup.hooks), Approval(rules=setup.rules)


def assemble(setup: Setup, store: TaskStore, consent: Consent) -> Crew:
    """Return the crew of a task whose folder exists."""
    return Crew(
        git=setup.git,
        workspace=Fence(setup.git.root, exceptions(setup.rules, setup.git.root)),
        roles=setup.roles,
        model=observed(setup.model, store.emit),
        models=tier_models(setup.model.name, setup.settings),
        toolbox=setup.toolbox,
        store=store,
        checking=Checking(setup.git, store, setup.settings.timeouts),
        past=Past(setup.git, store.task.task_id),
        consent=consent,
        hooks=Chain(setup.hooks),
        capabilities=shared_capabilities(setup),
    )
