"""The commands of a session, and the state of a running session."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentflow.cli.printing import say, show
from agentflow.core.errors import AgentflowError, Exit, UsageError
from agentflow.core.messages import Usage, sum_usage
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.redact import format_count, to_one_line
from agentflow.store.reading import find, load_state
from agentflow.store.sessions import SavedSession, save_session
from agentflow.store.task_file import format_plan
from agentflow.view.text import BLANK, line, span

if TYPE_CHECKING:
    from agentflow.cli.steering import Steering

_HELP = (
    "A message is a question or a task. A task continues the one before: one verdict covers both.",
    "Enter sends, Esc Enter breaks the line, @ completes files.",
    "A working role reads what you type before its next turn.",
    "Esc or Ctrl-C pauses (go on, correct, stop), twice stops at once.",
)


class Chat(Record):
    """A session as it runs: the repository, what was done, and how it is shown."""

    root: Path
    saved: SavedSession
    run: Callable[[Sequence[str]], int]
    """Runs a command of agentflow and tells its errors."""
    steering: "Steering"
    model: str | None = None
    default_model: str = ""
    around: str = ""
    """The sandbox and the checks, in short."""
    plain: bool = False
    over: int | None = None
    """The exit code of the session, once it is over."""


class SlashCommand(NamedTuple):
    """A command of the session; `run` takes the words after its name."""

    summary: str
    run: Callable[[Chat, list[str]], Chat]


def summarize_commands(root: Path) -> dict[str, str]:
    """Return the summary of each command: of the session, which win over the user's, and of skills."""
    from agentflow.api.content import load_skills_here
    from agentflow.api.slash_commands import load_commands_here

    skills = {f"/{skill.name}": f"skill: {skill.description}" for skill in load_skills_here(root)[0].all}
    brought = {f"/{command.called}": command.description for command in load_commands_here(root).all}
    ours = {name: row.summary for rows in COMMAND_GROUPS.values() for name, row in rows.items()}
    return {**ours, **brought, **skills, **ours}


def _resume(chat: Chat, words: list[str]) -> Chat:
    from agentflow.cli.launch import Job, relaunch

    job = Job(model=words[0] if words else None, plain=chat.plain)
    return end_if_terminated(chat, relaunch(chat.root, _require_last(chat), job, chat.steering))


def end_if_terminated(chat: Chat, code: int) -> Chat:
    return chat.replace(over=code) if code == Exit.TERMINATED else chat


def _run(chat: Chat, *words: str) -> int:
    return chat.run([*words, "-C", str(chat.root)])


def _run_on_last(*command: str) -> Callable[[Chat, list[str]], Chat]:

    def run(chat: Chat, words: list[str]) -> Chat:
        _run(chat, *command, _require_last(chat), *words)
        return chat

    return run


def _run_plainly(*command: str) -> Callable[[Chat, list[str]], Chat]:

    def run(chat: Chat, words: list[str]) -> Chat:
        _run(chat, *command, *words)
        return chat

    return run


def _require_last(chat: Chat) -> str:
    if not chat.saved.tasks:
        raise UsageError("this session has no task yet", hint="type one, or leave with /quit")
    return chat.saved.tasks[-1]


def recall_task(chat: Chat, task_id: str | None) -> TaskState | None:
    """Return a task of a session, or None without one and where it cannot be read."""
    try:
        return load_state(find(chat.root, task_id)) if task_id else None
    except AgentflowError:
        return None


def _load_last(chat: Chat) -> TaskState:
    return load_state(find(chat.root, _require_last(chat)))


def _begin_anew(chat: Chat, _: list[str]) -> Chat:
    saved = chat.saved.replace(last=None)
    if saved.tasks:
        save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _commit(chat: Chat, words: list[str]) -> Chat:
    code = _run(chat, "commit", _require_last(chat), *words)
    return _begin_anew(chat, words) if code == Exit.VERIFIED else chat


def _undo(chat: Chat, words: list[str]) -> Chat:
    code = _run(chat, "undo", _require_last(chat), *words)
    if code != Exit.VERIFIED or "--dry-run" in words:
        return chat
    before = _load_last(chat).follows
    saved = chat.saved.replace(last=before)
    save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _show_diff(chat: Chat, _: list[str]) -> Chat:
    from agentflow.view.status import style_diff_row
    from agentflow.workspace.git import open_repository

    task = _load_last(chat)
    diff = (
        open_repository(chat.root).make_diff(task.base_tree, task.tree)
        if task.base_tree and task.tree
        else ""
    )
    rows = diff.splitlines() or ["the last task changed no file"]
    show(line(span(row, style_diff_row(row))) for row in rows)
    return chat


def _show_plan(chat: Chat, _: list[str]) -> Chat:
    plan = _load_last(chat).plan
    say(format_plan(plan) if plan else "the last task made no plan")
    return chat


def _show_cost(chat: Chat, _: list[str]) -> Chat:
    spent: list[Usage] = []
    for task_id, said in zip(chat.saved.tasks, chat.saved.said, strict=True):
        try:
            spent.append(load_state(find(chat.root, task_id)).usage)
            told = _describe_usage(spent[-1])
        except AgentflowError:
            told = "cannot be read"
        say(f"  {told:<44} {to_one_line(said, 60)}")
    say(f"{format_count(len(chat.saved.tasks), 'task')}: {_describe_usage(sum_usage(spent))}")
    return chat


def _describe_usage(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    cached = f" ({usage.cache_read:,} of them from the cache)" if usage.cache_read else ""
    return f"{usage.input + usage.cache_read + usage.cache_write:,} in{cached}, {usage.output:,} out, {cost}"


def _choose_model(chat: Chat, words: list[str]) -> Chat:
    from agentflow.api.models import choose_tiers, list_tier_models
    from agentflow.model.tiers import MODEL_ADVICE, parse_choice
    from agentflow.settings import choose_model_name, load_settings

    settings = load_settings(os.environ)
    name = choose_model_name(words[0] if words else chat.model, settings, os.environ)
    if parse_choice(name).is_live or name == "repair":
        tiers = list_tier_models(name, choose_tiers(settings, name))
        told = ", ".join(f"{tier} {model}" for tier, model in tiers.items())
    else:
        told = "recorded replies, no live model"
    chat = chat.replace(model=words[0]) if words else chat
    say(f"model: {name} ({told})")
    if not words:
        show([line(f"/model NAME chooses another. {MODEL_ADVICE[0].upper()}{MODEL_ADVICE[1:]}", hang=2)])
    return chat


def _show_help(chat: Chat, _: list[str]) -> Chat:
    groups = {
        title: {name: command.summary for name, command in rows.items()}
        for title, rows in COMMAND_GROUPS.items()
    }
    ours = {name for rows in groups.values() for name in rows}
    brought = {name: told for name, told in summarize_commands(chat.root).items() if name not in ours}
    groups["Yours, the repository's and skills"] = {
        name: to_one_line(told, 100) for name, told in brought.items()
    }
    show(map(line, _HELP))
    for title, rows in groups.items():
        told = (line(f"  {name:<11} {text}", hang=14) for name, text in rows.items())
        show((BLANK, line(title), *told) if rows else ())
    return chat


def _quit(chat: Chat, _: list[str]) -> Chat:
    return chat.replace(over=Exit.VERIFIED)


COMMAND_GROUPS = {
    "Look": {
        "/status": SlashCommand("Show how the last task ended or where it stands.", _run_on_last("status")),
        "/why": SlashCommand("Show what decided it, and what to do next.", _run_on_last("why")),
        "/diff": SlashCommand("Show the change so far.", _show_diff),
        "/plan": SlashCommand("Show the plan of the last task.", _show_plan),
        "/evidence": SlashCommand("Show the commands that the last task ran.", _run_on_last("evidence")),
        "/log": SlashCommand("Show the last task step by step.", _run_on_last("log")),
        "/cost": SlashCommand("Show what each task of this session used.", _show_cost),
    },
    "Decide": {
        "/resume": SlashCommand("Continue the last task where it stopped.", _resume),
        "/approve": SlashCommand("Approve what waits: /approve ID.", _run_plainly("approve")),
        "/deny": SlashCommand("Deny what waits: /deny ID --reason R.", _run_plainly("deny")),
        "/undo": SlashCommand("Undo the last task; the ones before it stay.", _undo),
        "/commit": SlashCommand("Commit the change; then begin a new one.", _commit),
        "/new": SlashCommand("Begin a new change, apart from the earlier tasks.", _begin_anew),
    },
    "Session": {
        "/model": SlashCommand("Show or choose the model: /model NAME.", _choose_model),
        "/config": SlashCommand("Show each setting and its source.", _run_plainly("config", "--explain")),
        "/help": SlashCommand("Show this list.", _show_help),
        "/quit": SlashCommand("Leave. `agentflow --continue` returns to it.", _quit),
    },
}
