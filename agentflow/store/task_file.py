"""`task.md`: the state as frontmatter, and a text that people read and may write notes into."""

from pathlib import Path

from agentflow.core.errors import InvalidFile
from agentflow.core.record import plain
from agentflow.core.role import Plan
from agentflow.core.task import FRONTMATTER_KEYS, TaskState
from agentflow.frontmatter import join, split, write_atomic
from agentflow.parse import parse
from agentflow.redact import nested, redacted
from agentflow.store.versions import upgraded
from agentflow.trust import content

STATE = "task.md"
NOTES = "## Notes\n"
PLAN = "## Plan\n"
LOG = "## Log\n"
SHOWN = frozenset(FRONTMATTER_KEYS) - {"usage"} | {"plan"}
"""Keys whose change rewrites the file; the tokens used are written along with the next one."""


def write_task(path: Path, task: TaskState, log: str, notes: str = "") -> None:
    """Write the state, what the person wrote into the file, and the log."""
    state = plain(task)
    own = f"{NOTES}{notes}\n\n" if notes else ""
    text = join({key: state[key] for key in FRONTMATTER_KEYS}, own + written_text(task.plan, log))
    write_atomic(path, redacted(text).encode())


def written_text(plan: Plan | None, log: str) -> str:
    """Return the text below the notes, which the program writes."""
    shown = f"{PLAN}{plan_text(plan)}\n\n" if plan else ""
    return f"{shown}{LOG}{log}"


def plan_text(plan: Plan) -> str:
    """Return a plan as Markdown: its steps with their files, what has to hold afterwards, and the risks."""
    lines = [nested(plan.summary), ""]
    for number, step in enumerate(plan.steps, 1):
        files = f" ({', '.join(map(nested, step.files))})" if step.files else ""
        lines.append(f"{number}. {nested(step.title)}{files}")
    for title, texts in (("Acceptance", plan.acceptance), ("Risks", plan.risks)):
        if texts:
            lines += ["", f"{title}:", "", *(f"- {nested(text)}" for text in texts)]
    return "\n".join(lines).rstrip()


def read_task(path: Path) -> TaskState:
    """Return the state that a `task.md` shows. Raises InvalidFile, or CorruptState for a newer version."""
    head, _ = split(read_text(path), str(path))
    return parse(TaskState, upgraded(head, str(path)), str(path), lax=True)


def read_text(path: Path) -> str:
    """Return the text of a plain file. Raises OSError, or InvalidFile with the line that is no UTF-8."""
    raw = content(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidFile(str(path), f"byte 0x{raw[error.start]:02x} is no UTF-8", line=line) from None
