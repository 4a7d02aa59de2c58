"""Which capabilities "standard" means: an ordinary list, in one place, that can be printed."""

from collections.abc import Callable, Mapping

from agentflow.compose.capabilities.kit import EventLog, RecallOutputs, UseHooks, UseModel
from agentflow.compose.capabilities.role import RolePrompt, RoleTools, Submission
from agentflow.compose.capabilities.skills import UseSkills
from agentflow.compose.capabilities.todos import CurrentTodo
from agentflow.compose.channels import Capability, channels_of
from agentflow.core.hook import Hook
from agentflow.core.messages import DEFAULT_ROOM, ContextLimits
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.role import PIPELINE, SUBMITTED_BY, Change, Role
from agentflow.core.task import Todo
from agentflow.core.tool import Category
from agentflow.library.skills import Offer
from agentflow.model.tiers import model_id
from agentflow.tools.registry import SUBMITS, Toolbox


class Kit(Record):
    """What an agent is made from beside its role."""

    model: Model
    models: Mapping[str, str]
    """Tier to model id, where the user overrides it."""
    toolbox: Toolbox
    events: Observer
    """Writes down what happens."""
    hooks: tuple[Hook, ...] = ()
    skills: Offer = Offer()
    todos: tuple[Todo, ...] = ()
    """Those of the task, for a role that works on them."""
    room: Callable[[str], ContextLimits] = lambda _: DEFAULT_ROOM
    """How long a conversation with a model may be, by its id."""


def standard_capabilities(role: Role, kit: Kit) -> tuple[Capability, ...]:
    """Return what every role of a crew is given."""
    submit = kit.toolbox.find(SUBMITS.get(role.part or "", ""))
    return (
        UseModel(model=kit.model, model_id=model_id(role.model, kit.models)),
        RolePrompt(role=role),
        RoleTools(role=role, toolbox=kit.toolbox),
        *((RecallOutputs(),) if _is_clipped(role, kit) else ()),
        UseSkills(offer=kit.skills),
        *((CurrentTodo(todos=kit.todos),) if kit.todos and role.part == SUBMITTED_BY[Change] else ()),
        *((Submission(tool=submit),) if submit else ()),
        UseHooks(hooks=kit.hooks),
        EventLog(record=kit.events),
    )


def _is_clipped(role: Role, kit: Kit) -> bool:
    """Return whether results of a role may be clipped; a run's tools never change, for the cache's sake.

    The explorer's commands list and quote what is in the repository: it narrows them.
    """
    return role.part != PIPELINE[0] and any(
        tool.category is Category.SHELL for tool in kit.toolbox.offered(role)
    )


def listing(capabilities: tuple[Capability, ...]) -> tuple[str, ...]:
    """Return each capability in a line for people: its name, and the channels it uses."""
    return tuple(f"{type(each).__name__}: {', '.join(channels_of(each))}" for each in capabilities)
