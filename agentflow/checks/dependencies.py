"""What a change does to the dependencies of a project: what is new, moved and gone, and what to look at."""

import posixpath
import shlex
from collections.abc import Iterator

from agentflow.checks.manifests import SCRIPT, Manifest, Stated, known, manifest_of
from agentflow.core.record import Record
from agentflow.core.regex import regex

_REMOTE = regex(
    r"\b(?:git|hg|svn|bzr)\+|\bgit@|://|^(?:github|gitlab|bitbucket|gist):|=>\s*\w|^[\w-]+/[\w.-]+(?:#|$)"
)
_PLACE = regex(r"(?:^|[\s:>@=])(\.{0,2}/\S*|\.\.(?=\s|$))")
_EXACT = regex(r"={0,3}\s*v?\d[\w.+!-]*")
_LOOSE = regex(r"$|[<>~^*!]|latest\b")
"""A spec that another version may fit tomorrow."""
_SHORT = 5
"""Names with fewer letters are near each other by chance."""


class Doubt(Record):
    """What a person should look at, and the name by which a task may ask for it."""

    name: str
    said: str


class Difference(Record):
    """What a change did to the dependencies that one file names."""

    path: str
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    damaged: bool = False
    """It cannot be read, so nothing is known."""


def compare(path: str, before: str, after: str) -> Difference:
    """Return what is new, moved and gone in a manifest or lock file; empty text for no file."""
    manifest = manifest_of(path)
    assert manifest is not None
    try:
        old, new = Stated(manifest, before), Stated(manifest, after)
    except (ValueError, RecursionError):
        return Difference(path=path, damaged=True)
    names = sorted(old.specs.keys() | new.specs.keys())
    both = [name for name in names if name in old.specs and name in new.specs]
    return Difference(
        path=path,
        added=tuple(_added(name, manifest, old, new) for name in names if name not in old.specs),
        moved=tuple(
            f"{name} from {old.specs[name] or 'any'} to {new.specs[name] or 'any'}"
            for name in both
            if old.specs[name] != new.specs[name]
        ),
        removed=tuple(name for name in names if name not in new.specs),
        doubts=tuple(
            doubt.replace(said=f"{path}: {doubt.said}") for doubt in _doubts(manifest, path, old, new)
        ),
    )


def _added(name: str, manifest: Manifest, old: Stated, new: Stated) -> str:
    said = f"{name} {new.specs[name]}".strip()
    were_pinned = bool(old.specs) and all(map(_EXACT.fullmatch, old.specs.values()))
    is_loose = " " not in name and _LOOSE.match(new.specs[name]) and not manifest.locked
    return f"{said} (not pinned, as all others were)" if were_pinned and is_loose else said


def _doubts(manifest: Manifest, path: str, old: Stated, new: Stated) -> Iterator[Doubt]:
    """Yield what is new and comes from elsewhere, runs at once, or looks like something else."""
    for name, spec in new.specs.items():
        if old.specs.get(name) == spec:
            continue
        if _is_elsewhere(spec or name, path):
            yield Doubt(name=name.split()[-1], said=f"{name} {spec}".strip() + " is not from the registry")
        if SCRIPT in spec and SCRIPT not in old.specs.get(name, ""):
            yield Doubt(name=name, said=f"{name} {SCRIPT}")
        if name not in old.specs and not manifest.locked and (like := _looks_like(name, old)):
            yield Doubt(name=name, said=f"{name} is one letter from {like}: is it meant?")
    for hook, body in sorted(new.hooks.items() - old.hooks.items()):
        yield Doubt(name=hook, said=f"{hook} {SCRIPT}: {body}")
    for host in sorted(new.hosts - old.hosts if old.hosts else ()):
        yield Doubt(name=host, said=f"packages come from {host}, which none did before")


def _is_elsewhere(spec: str, path: str) -> bool:
    """Return whether a spec leads to an address, or to a place outside the repository."""
    folder = posixpath.dirname(path)
    places = (posixpath.normpath(posixpath.join(folder, found)) for found in _PLACE.findall(spec))
    return bool(_REMOTE.search(spec)) or any(place.startswith(("..", "/")) for place in places)


def _looks_like(name: str, old: Stated) -> str | None:
    famous = {each for row in known().well_known for each in row}
    others = () if name in famous or len(name) < _SHORT else sorted({*famous, *old.specs})
    return next((other for other in others if len(other) >= _SHORT and _is_near(name, other)), None)


def _is_near(one: str, other: str) -> bool:
    """Return whether one letter is wrong, missing or too many, or two are swapped."""
    start = len(posixpath.commonprefix((one, other)))
    left, right = one[start:], other[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return left != right and (left[1:] in (right, right[1:]) or left == right[1:] or swapped)


def audit_of(path: str) -> str | None:
    """Return the command that asks about known vulnerabilities of what a file names; None where none can."""
    manifest = manifest_of(path)
    if manifest is None or not manifest.audit:
        return None
    folder = posixpath.dirname(path) or "."
    return manifest.audit.format(file=shlex.quote(path), folder=shlex.quote(folder))
