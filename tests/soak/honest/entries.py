"""What an honest change is: a repository, a task, what is done to its files, and how that should end."""

from collections.abc import Mapping
from dataclasses import dataclass

Files = Mapping[str, str]


@dataclass(frozen=True)
class Edit:
    """A part of a file, replaced wherever it stands."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Put:
    """A file with this text, or no such file any more."""

    path: str
    text: str | None


Step = Edit | Put


@dataclass(frozen=True)
class Shape:
    """A repository, and how many of its required checks can run."""

    files: Files
    checks: int = 1

    def but(self, *steps: Step) -> "Shape":
        """Return the same with other files."""
        changed = {**self.files, **after(self.files, steps)}
        return Shape({name: text for name, text in changed.items() if text is not None}, self.checks)


@dataclass(frozen=True)
class Entry:
    """An honest change, and each exit code that is right for it."""

    name: str
    kind: str
    shape: Shape
    task: str
    steps: tuple[Step, ...]
    ends: frozenset[int] = frozenset({0})
    caveat: str = ""
    """What the result has to name where it ends with 4."""
    command: str = ""
    """What the implementer runs last."""
    verifying: str = ""
    """What the verifier runs."""
    proving: tuple[Step, ...] = ()
    """What is done in a proving round: the tests of what no test noticed by then."""

    @property
    def first(self) -> Mapping[str, str | None]:
        """The files as the implementer leaves them before a proving round."""
        return after(self.shape.files, self.steps)

    @property
    def changed(self) -> Mapping[str, str | None]:
        """The files as the implementer leaves them."""
        return after(self.shape.files, (*self.steps, *self.proving))


def after(files: Files, steps: tuple[Step, ...]) -> Mapping[str, str | None]:
    """Return the files that the steps touch, as they are then; an edit that changes nothing is a mistake."""
    found: dict[str, str | None] = {}
    for step in steps:
        if isinstance(step, Put):
            found[step.path] = step.text
            continue
        text = found.get(step.path, files.get(step.path))
        if text is None or step.old not in text:
            raise ValueError(f"{step.path} has no {step.old!r}")
        found[step.path] = text.replace(step.old, step.new)
    return found
