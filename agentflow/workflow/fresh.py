"""A tree as a folder of its own, in which checks run as they would in the repository."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentflow.checks.detect import detect
from agentflow.checks.interpreter import choose
from agentflow.checks.repository import Repository
from agentflow.checks.run import Shown, execute
from agentflow.checks.wellknown import WellKnown, commanded
from agentflow.core.evidence import Check, Evidence
from agentflow.core.record import Record
from agentflow.sandbox.profile import SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder
from agentflow.workspace.copies import import_places, paths_for
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import Git
from agentflow.workspace.ignored import is_environment
from agentflow.workspace.stage import Stage


class Bench(Record):
    """Where the commands of a record run again."""

    git: Git
    sandbox: Sandbox
    said: WellKnown
    """What the repository's trusted files say of its tests."""

    def at(self, place: Path) -> Sandbox:
        """Return the sandbox for a copy, which sees the repository's own environments."""
        return seeing(self.sandbox.replace(root=place), self.git.root)


def seeing(sandbox: Sandbox, root: Path) -> Sandbox:
    """Return the sandbox of a copy with a repository's environments; links that lead out open nothing."""
    real = root.resolve()
    shared = tuple(root / name for name in SHARED if (root / name / "bin").resolve().is_relative_to(real))
    opened = sandbox.opened
    return sandbox.replace(opened=opened.replace(readable=(*opened.readable, *shared)))


@contextmanager
def laid_out(git: Git, tree: str, seen: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a folder with the files of a tree and ignored ones, beside the environments a check may need."""
    stage = Stage(git, tree, tuple(entry for entry in seen if not is_environment(entry)))
    try:
        stage.fill()
        for shared in SHARED:
            if (git.root / shared).is_dir() and not (stage.view.place / shared).exists():
                (stage.view.place / shared).symlink_to(git.root / shared, target_is_directory=True)
        yield stage.view.place
    finally:
        stage.remove()


def required_at(sandbox: Sandbox, said: WellKnown, files: tuple[str, ...]) -> tuple[Check, ...]:
    """Return what has to hold of the files of a tree that were laid out."""
    return commanded(detect(sandbox, files), said)


def run_at(bench: Bench, sandbox: Sandbox, check: Check, evidence: Evidence) -> Shown:
    """Run a check as a record says that it was run, with time enough."""
    with scratch_folder() as scratch:
        limit = max(check.timeout, 3 * evidence.seconds)
        env = _imports(bench, sandbox.root)
        return execute(check, sandbox, scratch / "output", timeout=limit, env=env)


def _imports(bench: Bench, place: Path) -> Mapping[str, str]:
    """Return the import path under which a copy tests itself, where an environment may lead elsewhere."""
    root = bench.git.root
    if not any((root / name / "pyvenv.cfg").exists() for name in SHARED):
        return {}
    files = Fence(root).files()
    words = choose(Repository(sandbox=bench.sandbox, files=files, known=frozenset(files))).words
    return (
        {"PYTHONPATH": paths_for(place, import_places(bench.sandbox, words[0], {}))}
        if len(words) == 1
        else {}
    )
