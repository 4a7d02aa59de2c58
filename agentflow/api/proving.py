"""What `verify TASK` shows: each record of a task, looked at once more."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentflow.api.trusting import well_known
from agentflow.api.verification import Row
from agentflow.core.record import plain
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder
from agentflow.store.bundle import unpacked
from agentflow.store.reading import find
from agentflow.verdict.drift import listed
from agentflow.verdict.fresh import Copies
from agentflow.verdict.reverify import Examined, examine
from agentflow.view.text import Line, Span, Style, line, span
from agentflow.workspace.git import open_repository


def examined(sandbox: Sandbox, task_id: str) -> Iterator[Row]:
    """Yield one row for each record of a task, and one for its verdict."""
    git = open_repository(sandbox.root)
    with _record(git.root, task_id) as path:
        for one in examine(Copies(git=git, sandbox=sandbox, said=well_known(git.root)), path):
            shown = line(_mark(one), f"{one.subject}: {one.said}", hang=4)
            yield Row(lines=(shown,), told=plain(one), holds=not one.differs, name=one.subject)


@contextmanager
def _record(root: Path, named: str) -> Iterator[Path]:
    """Yield the folder of a task, or of the record in a file."""
    if not Path(named).is_file():
        yield find(root, named)
        return
    with scratch_folder() as folder:
        unpacked(Path(named), folder)
        yield folder


def _mark(one: Examined) -> Span:
    if one.differs:
        return span("✗ differs  ", Style.BAD)
    return span("─ skipped  ", Style.WARN) if one.left_out else span("✓ same     ", Style.GOOD)


def verdict_words(shown: Sequence[Row]) -> Line:
    """Return in one line what came of a task's records."""
    wrong = [row.name for row in shown if not row.holds]
    if wrong:
        return line(span(f"differs from the record: {listed(wrong)}", Style.BAD))
    count = len(shown) - sum(row.told["left_out"] for row in shown)
    return line(
        span(f"{count} of {len(shown)} records checked again, each with the recorded result", Style.GOOD)
    )
