"""The composition root: settings, trust, model and sandbox become the crew of a task."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agentflow.api.boundary import TaskRequest, describe_sandbox, hide_secrets, make_sandbox, sweep_leftovers
from agentflow.api.content import (
    load_content,
    load_hooks_here,
    load_rules_here,
    open_toolbox,
    remove_denied_tools,
    withhold_provider_tools,
)
from agentflow.api.decisions import explain_foreign
from agentflow.api.models import (
    NO_MODEL,
    advise_on_no_model,
    choose_model,
    choose_tiers,
    find_context_limits,
    find_live,
    list_tier_models,
    observe_model,
    refuse_without_tools,
)
from agentflow.api.servers import load_entries, open_servers, set_server_rules
from agentflow.api.trust import load_project, load_well_known
from agentflow.compose.capability import Capability
from agentflow.compose.standard import Approval, ApprovalModes, UseHooks
from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import Surface
from agentflow.core.fold import DELEGATE
from agentflow.core.hook import Hook, Origin, Script
from agentflow.core.pending import Consent
from agentflow.core.ports import Model, Watch
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.routing import PIPELINE
from agentflow.core.task import Invocation, RequestOptions, TaskState
from agentflow.hooks.chain import Chain
from agentflow.library.roles import Roles
from agentflow.library.skills import Skills
from agentflow.loop.history import request_of
from agentflow.mcp.entries import ServerEntry
from agentflow.model.scripted import ScriptedModel
from agentflow.model.tiers import REPAIR, Meter, parse_choice
from agentflow.permissions.rules import Rules, find_denied_tools, narrow_rules, parse_rules
from agentflow.permissions.user_rules import build_denials, build_exceptions
from agentflow.process import make_timestamp
from agentflow.routing.clauses import Table, load_table
from agentflow.sandbox.profile import Level
from agentflow.sandbox.protection import require_firm_links
from agentflow.sandbox.run import Sandbox
from agentflow.settings import (
    Approvals,
    Settings,
    TaskLimits,
    apply_project,
    choose_model_name,
    load_settings,
)
from agentflow.store.journal import load_runs
from agentflow.store.tasks import TaskStore, make_task_id
from agentflow.tools.registry import Toolbox
from agentflow.verdict.checking import Bounds, Checking, Inspections
from agentflow.workflow.crew import Crew
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.hook_watch import HookWatch, NoWatch
from agentflow.workspace.path_guard import PathGuard
from agentflow.workspace.snapshot import TaskSnapshots


class Setup(Record):
    """Everything a task needs, checked before its folder is written."""

    git: Git
    sandbox: Sandbox
    settings: Settings
    roles: Roles
    skills: Skills
    toolbox: Toolbox
    model: Model
    hooks: tuple[Hook, ...]
    rules: Rules
    table: Table
    limits: TaskLimits
    """The repository's."""
    warnings: tuple[str, ...]
    """What the person should know about the files that were read."""
    capabilities: tuple[Capability, ...] = ()
    """Further capabilities of a Python program."""
    servers: tuple[ServerEntry, ...] = ()
    """The MCP servers that count here."""


def prepare(start: Path, request: TaskRequest) -> Setup:
    """Return the setup of a task. Raises the error that the person should see."""
    git = open_repository(start)
    project = load_project(git.root)
    settings = apply_project(load_settings(os.environ), project)
    toolbox = open_toolbox(git.root, request.model)
    content, rules = load_content(git.root, toolbox), load_rules_here(git.root)
    hooks, warnings = load_hooks_here(git.root)
    hooks = (*hooks, *content.hooks)
    toolbox = withhold_provider_tools(toolbox, content.roles, hooks, rules, settings.approvals)
    allowed = (remove_denied_tools(role, rules, toolbox) for role in content.roles.all)
    everyone = tuple(set_server_rules(role, settings) for role in allowed)
    servers = load_entries(git.root)
    name = choose_model_name(request.model, settings, os.environ)
    settings = choose_tiers(settings, name)
    sandbox = hide_secrets(make_sandbox(git.root, settings, request, git.folders), git, rules)
    require_firm_links(git.root, settings.unprotected)
    chosen = choose_model(name, sandbox, settings, os.environ)
    reason = chosen.explain_refusal("" if request.plan_mode else request.text)  # no engine makes a plan
    if reason is not None:
        is_named = request.model or os.environ.get("AGENTFLOW_MODEL") or settings.model
        said = reason if is_named else f"{NO_MODEL} {reason}"
        raise ModelRejected(said, hint=advise_on_no_model(os.environ))
    refuse_without_tools(chosen, (content.roles.find_part(name) for name in PIPELINE), settings)
    is_whole = sandbox.level is Level.FULL and not sandbox.opened.network
    weakness = () if is_whole else (describe_sandbox(sandbox),)
    return Setup(
        git=git,
        sandbox=sandbox,
        settings=settings,
        roles=content.roles.replace(all=everyone),
        skills=content.skills,
        toolbox=toolbox,
        model=chosen,
        hooks=hooks,
        rules=rules,
        table=load_table(settings.routing),
        limits=project.limits,
        warnings=(*sweep_leftovers(), *weakness, *content.warnings, *warnings, *servers.warnings),
        servers=servers.usable,
    )


def narrow_setup(setup: Setup, invoked: Invocation | None) -> Setup:
    """Return the setup with the tools and the model of the command that the task was called by."""
    if invoked is None:
        return setup
    roles = tuple(_narrow_role(role, invoked, setup.toolbox) for role in setup.roles.all)
    return setup.replace(roles=setup.roles.replace(all=roles))


def _narrow_role(role: Role, invoked: Invocation, toolbox: Toolbox) -> Role:
    role = role.replace(model=invoked.model or role.model)
    if invoked.tools is None:
        return role
    left = parse_rules(list(invoked.tools), invoked.file)
    lacks_agents = all(rule.tool != DELEGATE for rule in left)
    denied = (*role.denied, *((DELEGATE,) if lacks_agents else ()))
    return role.replace(tools=narrow_rules(role.tools, left, toolbox.tools), denied=denied)


def make_task(setup: Setup, text: str, max_iterations: int | None) -> TaskState:
    return TaskState(
        task_id=make_task_id(),
        task=text,
        started_at=make_timestamp(),
        max_iterations=max_iterations or setup.settings.max_iterations,
        model=setup.model.name,
        options=RequestOptions(
            terms=setup.settings.terms,
            prove_rounds=setup.settings.prove_rounds,
            repair_seconds=setup.settings.repair_seconds if parse_choice(setup.model.name).is_live else 0,
            spares_tokens=setup.model.name != REPAIR,
        ),
        sandbox=setup.sandbox.level,
        gaps=setup.sandbox.ability.gaps,
        surface=Surface(added=setup.settings.surface.add, removed=setup.settings.surface.remove),
    )


def recall_runs(model: Model, folder: Path) -> None:
    """Tell a scripted model which of its entries a saved task has used up."""
    if not model.name.startswith("script:"):
        return
    assert isinstance(model, ScriptedModel)
    for run in load_runs(folder):
        model.recall(request_of(run))


def list_shared_capabilities(
    hooks: tuple[Hook, ...], rules: Rules, approvals: Approvals
) -> tuple[Capability, ...]:
    modes = ApprovalModes(tools=approvals.tools, roles=approvals.roles, servers=approvals.servers)
    return UseHooks(hooks=hooks), Approval(rules=rules), modes


def _watch_hooks(setup: Setup, task: TaskState) -> Watch:
    """Return the watch that separates hooks' changes from others; an idle one where no script can run."""
    if all(hook.origin is Origin.BUILT_IN for hook in setup.hooks if isinstance(hook.body, Script)):
        return NoWatch()
    changed = setup.git.list_changes(task.base_tree, setup.git.write_tree()) if task.base_tree else ()
    return HookWatch(setup.git, task.hook_files, (change.path for change in changed))


def assemble(setup: Setup, store: TaskStore, consent: Consent, *, attended: bool = False) -> Crew:
    """Return the crew of a task whose folder exists; `attended`: a person can be asked at once."""
    model, chosen = observe_model(setup.model, store.emit), parse_choice(setup.model.name)
    live = find_live(model)
    if live:
        model = live = live.limit_by(Meter(store.task.options.budget, store.task.usage))
    crew = Crew(
        git=setup.git,
        workspace=PathGuard(
            setup.git.root,
            build_exceptions(setup.rules, setup.git.root),
            setup.git.folders,
            build_denials(setup.rules, setup.git.root),
        ),
        sandbox=setup.sandbox,
        roles=setup.roles,
        model=model,
        grace=setup.settings.first_request_seconds if chosen.is_live else None,
        models=list_tier_models(setup.model.name, setup.settings),
        toolbox=setup.toolbox,
        store=store,
        inspections=Inspections(setup.git),
        checking=Checking(
            setup.git,
            setup.sandbox,
            store,
            Bounds(timeouts=setup.settings.timeouts, patience=setup.settings.check_retry),
            load_well_known(setup.git.root),
            lambda folder: not explain_foreign(setup.git, folder),
        ),
        watch=_watch_hooks(setup, store.task),
        room=partial(find_context_limits, settings=setup.settings),
        snapshots=TaskSnapshots(setup.git, store.task.task_id),
        table=setup.table,
        consent=consent,
        attended=attended,
        hooks=Chain(setup.hooks),
        capabilities=(
            *setup.capabilities,
            *list_shared_capabilities(setup.hooks, setup.rules, setup.settings.approvals),
        ),
        skills=setup.skills,
        servers=open_servers(setup.servers, setup.model.name, setup.sandbox, store),
        denied=partial(find_denied_tools, setup.rules),
        webhook=setup.settings.webhook,
        mutate=partial(_mutate, setup),
        memory=None if chosen.kind == "replay" else setup.git,
    )
    return crew.replace(reach=live.reach) if live else crew


def _mutate(setup: Setup, tree: str, path: str, cancelled: Callable[[], bool]) -> str:
    from agentflow.api.mutation import MUTANTS_SECONDS, MutationRequest, describe_mutation, find_mutation

    request = MutationRequest(revisions=tree, path=path, seconds=MUTANTS_SECONDS, cancelled=cancelled)
    *rows, last = describe_mutation(find_mutation(setup.sandbox, setup.git, request))
    return "\n".join(each.text for each in (last, *rows))
