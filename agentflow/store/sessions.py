"""Sessions: which tasks belong together. Each is a Markdown file beside the tasks."""

from pathlib import Path
from typing import NamedTuple

from agentflow.core.errors import InvalidFile, TaskNotFound
from agentflow.core.record import Record, to_builtins
from agentflow.frontmatter import join, split, write_atomic, write_whole
from agentflow.parse import parse
from agentflow.process import make_timestamp
from agentflow.redact import nest_text, redact_text
from agentflow.store.reading import find_state_folder
from agentflow.store.tasks import make_task_id
from agentflow.trust import require_text

SESSIONS = "sessions"


class SavedSession(Record):
    """A conversation at the terminal: the tasks that it began, and which one a follow-up goes on from."""

    session_id: str
    started_at: str
    version: int = 1
    tasks: tuple[str, ...] = ()
    last: str | None = None
    """The task that the next one follows; None where the next one begins anew."""
    said: tuple[str, ...] = ()
    """The messages of the person, one for each task."""

    def add_task(self, task_id: str, text: str) -> "SavedSession":
        """Return the session with a task that it began, which the next one follows."""
        return self.replace(tasks=(*self.tasks, task_id), said=(*self.said, text), last=task_id)


def create_session() -> SavedSession:
    """Return a session without tasks; it is on disk once it has one."""
    return SavedSession(session_id=make_task_id(), started_at=make_timestamp())


def save_session(root: Path, session: SavedSession) -> None:
    """Write a session for `--continue`, with its messages as text for people."""
    folder = find_state_folder(root) / SESSIONS
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        write_whole(folder / ".gitignore", b"*\n")
    head = {key: value for key, value in to_builtins(session).items() if key != "said"}
    body = "".join(
        f"- {task}: {nest_text(said)}\n" for task, said in zip(session.tasks, session.said, strict=True)
    )
    write_atomic(folder / f"{session.session_id}.md", redact_text(join(head, body)).encode())


class SavedSessions(NamedTuple):
    """The sessions of a repository, newest first, and why the others cannot be read."""

    readable: tuple[SavedSession, ...]
    damaged: tuple[InvalidFile, ...]


def load_sessions(root: Path) -> SavedSessions:
    readable, damaged = list[SavedSession](), list[InvalidFile]()
    for place in _list_places(root):
        try:
            readable.append(_read(place))
        except InvalidFile as error:
            damaged.append(error)
    return SavedSessions(readable=tuple(readable), damaged=tuple(damaged))


def _list_places(root: Path) -> list[Path]:
    folder = find_state_folder(root) / SESSIONS
    return [] if folder.is_symlink() else sorted(folder.glob("*Z-*.md"), reverse=True)


def _read(place: Path) -> SavedSession:
    head, body = split(require_text(place, "utf-8"), str(place))
    said = [line.partition(": ")[2] for line in body.splitlines() if line.startswith("- ")]
    session = parse(SavedSession, head, str(place), lax=True)
    texts = (*said, *[""] * len(session.tasks))[: len(session.tasks)]
    return session.replace(said=tuple(texts))


def find_session(root: Path, session_id: str | None) -> SavedSession:
    """Return the session whose id begins so, or the newest. Raises TaskNotFound, or InvalidFile."""
    place = next((each for each in _list_places(root) if each.name.startswith(session_id or "")), None)
    if place is None:
        wanted = f"session {session_id}" if session_id else "session yet"
        raise TaskNotFound(f"there is no {wanted} in this repository", hint="agentflow sessions lists them")
    return _read(place)
