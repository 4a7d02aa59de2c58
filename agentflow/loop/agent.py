"""An agent: a role with everything one run of it needs."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agentflow.core.fold import advance, begin_run
from agentflow.core.messages import (
    DEFAULT_ROOM,
    ContextLimits,
    Message,
    Notice,
    ServerToolPart,
    Speaker,
    Text,
    Thought,
    ToolSpec,
)
from agentflow.core.pending import ApprovalTerms, Consent
from agentflow.core.ports import Background, Journal, Ledger, Model, Observer, Runner, Watch, Workspace
from agentflow.core.record import Record, copy_shared
from agentflow.core.role import Role
from agentflow.core.run import MessageAdded, Run, RunEntry, RunOpened
from agentflow.core.task import Phase
from agentflow.core.tool import ListChanged, Mutate, RunSelected, Tool, TryTest
from agentflow.hooks.chain import Chain
from agentflow.hooks.entries import to_skill_scope
from agentflow.loop.open_skills import list_active_names
from agentflow.tools.registry import to_spec
from agentflow.tools.shell import BACKGROUND_TOOLS, RECALL, has_begun_command

_OWN = (Thought, ServerToolPart)


class Persona(Record):
    """A role that takes a conversation over, with its model, prompt and tools."""

    role: Role
    model_id: str
    system: str
    tools: tuple[Tool, ...]
    room: ContextLimits


class Surroundings(Record):
    """The place of one run: files, sandbox, records and settings that an agent does not choose."""

    workspace: Workspace
    runner: Runner
    ledger: Ledger
    journal: Journal
    outputs: Path
    task_id: str
    number: int
    """Of the run within the task, from 1."""
    iteration: int
    phase: Phase
    transcript: Path
    """The file of the run."""
    consent: Consent
    """How a call that would wait for a person is decided beforehand."""
    has_asked: bool
    """A person was already asked in this phase, and is not asked again."""
    owners: Mapping[str, str]
    """Every known tool's name, to the role that has it."""
    terms: ApprovalTerms = ApprovalTerms()
    """What an approval of a call requires."""
    angle: str = ""
    """The name of the run among others at the same time."""
    shown: tuple[str, ...] = ()
    """The files that its task prompt shows whole."""
    watch: Watch | None = None
    """Notes whether hooks or the role may have changed a file."""
    take_messages: Callable[[int], tuple[str, ...]] | None = None
    """Returns the person's new messages, by the number of the run's turns."""
    settle: Callable[[], Awaitable[None]] | None = None
    """Waits for what has to be known before a call may change anything."""
    take_news: Callable[[int], Awaitable[str]] | None = None
    """Returns what became known meanwhile, by the number of the run's turns; it is told once."""
    changed: ListChanged | None = None
    """Returns the files that the task has changed so far."""
    mutate: Mutate | None = None
    """Tells which changed lines no test notices."""
    background: Background | None = None
    """The commands that run beside it."""
    slow_checkers: set[str] = set()
    """The programs that took too long to look at an edit."""
    run_tests: RunSelected | None = None
    try_test: TryTest | None = None
    """Runs tests with the repository's own runner."""
    repository: Path | None = None
    """The repository that its files are a copy of; None where it works on the repository itself."""


class Agent(Record):
    """A role with its model, tools and hooks, ready to run; the steps of the loop only read it."""

    role: Role
    model: Model
    model_id: str
    """What the role's tier stands for."""
    system: str
    tools: tuple[Tool, ...]
    """What the role may call; nothing else is offered or run."""
    submit: Tool | None
    """The tool that ends the run."""
    around: Surroundings
    observe: Observer
    room: ContextLimits = DEFAULT_ROOM
    """The limits of its conversation."""
    hooks: Chain = Chain()
    secret_inputs: dict[str, dict[str, Any]] = {}
    """Inputs with a secret, by call id, until the call is made; they are never written down."""
    depth: int = 0
    """0 for a role of the pipeline, one more for each level of sub-agents."""
    within: tuple[Role, ...] = ()
    """Roles that bound this one: a tool that one of them has is used under its rules too."""
    parent: str | None = None
    """The call that asked for this run."""
    personas: Mapping[str, Persona] = {}
    """Who may take the conversation over, by name."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(map(to_spec, self.tools))

    def find_tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def resolve_agent(agent: Agent, run: Run) -> Agent:
    """Return the agent in the role that has the conversation now, with the hooks of its open skills."""
    if run.active is not None:
        persona = agent.personas[run.active]
        agent = agent.replace(within=(*agent.within, agent.role), **copy_shared(persona, Agent))
    if run.is_archived and agent.find_tool(RECALL.name) is None:
        agent = agent.replace(tools=(*agent.tools, RECALL))
    if has_begun_command(run):
        agent = agent.replace(tools=(*agent.tools, *BACKGROUND_TOOLS))
    if agent.hooks.has_scopes:
        active = (agent.role.source, *map(to_skill_scope, list_active_names(run)))
        agent = agent.replace(hooks=agent.hooks.activate(active))
    return agent


def note(agent: Agent, run: Run, entry: RunEntry) -> Run:
    """Write an entry to the run's file and return the run after it."""
    agent.around.journal.append(entry)
    return advance(run, entry)


def add_notice(agent: Agent, run: Run, text: str, notice: Notice) -> Run:
    message = Message(speaker=Speaker.USER, parts=(Text(text=text),))
    return note(agent, run, MessageAdded(message=message, notice=notice))


def open_run(agent: Agent, prompt: str, earlier: Run | None = None, followed: Run | None = None) -> Run:
    """Begin a run on a task prompt, with a conversation of its own or in that of an earlier run.

    `followed` is a run of an earlier task, whose messages are copied.
    """
    known = followed.head.shown if followed else ()
    head = RunOpened(
        run=agent.around.number,
        role=agent.role.part or agent.role.name,
        agent=agent.role.name,
        iteration=agent.around.iteration,
        model=agent.model_id,
        system=agent.system,
        tools=agent.specs,
        submit=agent.submit.name if agent.submit else None,
        parent=agent.parent,
        concatenates=agent.role.concatenates,
        angle=agent.around.angle,
        shown=(*known, *agent.around.shown),
        continues=earlier.head.run if earlier else None,
        history=_copy_messages(followed, agent.model_id) if followed else (),
    )
    agent.around.journal.append(head)
    return add_notice(agent, begin_run(head, earlier), prompt, Notice.FAILED if earlier else Notice.BRIEF)


def _copy_messages(run: Run, model: str) -> tuple[Message, ...]:
    """Return the messages of a run for a model; what only the model that wrote it takes back is left out."""
    if run.head.model == model:
        return run.messages
    kept = ((each, tuple(part for part in each.parts if not isinstance(part, _OWN))) for each in run.messages)
    return tuple(message.replace(parts=parts) for message, parts in kept if parts)
