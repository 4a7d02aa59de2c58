"""A tree as a folder of its own, in which checks run as they would in the repository."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentflow.checks.detect import detect
from agentflow.checks.interpreter import choose
from agentflow.checks.repository import Repository
from agentflow.checks.run import Shown
from agentflow.checks.wellknown import WellKnown, commanded
from agentflow.core.evidence import Check, Evidence, TestOutcome, ended
from agentflow.core.record import Record
from agentflow.sandbox.profile import SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.verdict.drift import listed
from agentflow.verdict.runner import Place
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import is_environment
from agentflow.workspace.import_paths import find_import_paths, to_pythonpath
from agentflow.workspace.path_guard import PathGuard
from agentflow.workspace.working_copy import WorkingCopy


class Copies(Record):
    """Copies of a repository's trees, each at a place of its own."""

    git: Git
    sandbox: Sandbox
    said: WellKnown
    """What the repository's trusted files say of its tests."""

    @contextmanager
    def open(self, tree: str, seen: Iterable[str]) -> Iterator[Place]:
        """Yield a copy, which sees some ignored files and the repository's own environments."""
        with laid_out(self.git, tree, seen) as stage:
            folder = stage.view.place
            sandbox = seeing(self.sandbox.replace(root=folder), self.git.root)
            yield Place(sandbox=sandbox, imports=_imports(self, folder), stage=stage)

    def required(self, place: Place, tree: str) -> tuple[Check, ...]:
        """Return what has to hold of the files of a tree that were laid out."""
        return commanded(detect(place.sandbox, self.git.paths(tree)), self.said)


def seeing(sandbox: Sandbox, root: Path) -> Sandbox:
    """Return the sandbox of a copy with a repository's environments; links that lead out open nothing."""
    real = root.resolve()
    shared = tuple(root / name for name in SHARED if (root / name / "bin").resolve().is_relative_to(real))
    opened = sandbox.opened
    return sandbox.replace(opened=opened.replace(readable=(*opened.readable, *shared)))


@contextmanager
def laid_out(git: Git, tree: str, seen: Iterable[str] = ()) -> Iterator[WorkingCopy]:
    """Yield a folder with the files of a tree and ignored ones, beside the environments a check may need."""
    stage = WorkingCopy(git, tree, tuple(entry for entry in seen if not is_environment(entry)))
    try:
        stage.fill()
        for shared in SHARED:
            if (git.root / shared).is_dir() and not (stage.view.place / shared).exists():
                (stage.view.place / shared).symlink_to(git.root / shared, target_is_directory=True)
        yield stage
    finally:
        stage.remove()


def _imports(bench: Copies, place: Path) -> str:
    """Return the import path under which a copy tests itself, where an environment may lead elsewhere."""
    root = bench.git.root
    if not any((root / name / "pyvenv.cfg").exists() for name in SHARED):
        return ""
    files = PathGuard(root).files()
    words = choose(Repository(sandbox=bench.sandbox, files=files, known=frozenset(files))).words
    return to_pythonpath(place, find_import_paths(bench.sandbox, words[0], {})) if len(words) == 1 else ""


_STARTER = re.compile(r"(?:\b(?:uv run --no-sync|poetry run) )?(?:[^\s;{}]*/)?\bpython[\d.]* (?:-m )?")


def fitting(evidence: Evidence, required: Iterable[Check]) -> tuple[Check | None, str]:
    """Return the required check that a record is of, and why it is of none or cannot run."""
    named = [check for check in required if check.name is evidence.check]
    if not named:
        return None, f"{evidence.check} is not required by its tree"
    check = next((each for each in named if _bare(each.command) == _bare(evidence.command)), None)
    if check is None:
        return None, f"the record is of `{evidence.command}`; its tree requires `{named[0].command}`"
    return check, f"not run again ({check.missing})" if check.missing else ""


def _bare(command: str) -> str:
    """Return a command without the word that starts its Python: that is another one on each machine."""
    return _STARTER.sub("", command)


def contrast(evidence: Evidence, shown: Shown, then: Mapping[str, TestOutcome]) -> list[str]:
    """Return in words what a command shows now and did not show then, what has mixed results left aside."""
    run, found, flaky = shown.execution, [], {*evidence.flaky}
    tests = sorted({*then, *shown.outcomes} - flaky)
    telling = [test for test in tests if then.get(test) is not shown.outcomes.get(test)]
    if ended(run) != ended(evidence) and not flaky:
        found.append(f"{ended(run)} now, {ended(evidence)} in the record")
    if telling and str(evidence.check) not in flaky:
        names = [_told(test, shown.outcomes, then) for test in telling]
        found.append(f"another result of {listed(names)}")
    return found


def _told(test: str, now: Mapping[str, TestOutcome], then: Mapping[str, TestOutcome]) -> str:
    return f"{test} ({now.get(test, 'not run')} now, {then.get(test, 'not run')} in the record)"
