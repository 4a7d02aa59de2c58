"""Where the shipped roles, skills, hooks and examples lie."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def find_bundled(kind: str) -> Path:
    """Return the folder of `agents`, `skills`, `hooks` or `examples`.

    In a wheel they are inside the package, in a checkout beside it, so that edits there are live.
    """
    inside = _PACKAGE / "_bundled"
    return (inside if inside.is_dir() else _PACKAGE.parent) / kind
