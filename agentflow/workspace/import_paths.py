"""The import path under which a throw-away copy of a repository tests itself."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentflow.core.evidence import Command
from agentflow.parse import fit
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder

_PROBE = """
import json, sys
maps = [getattr(sys.modules.get(getattr(each, "__module__", "")), "MAPPING", {}) for each in sys.meta_path]
homes = [path.rpartition("/")[0] for each in maps for path in each.values()]
print("\\n" + json.dumps([entry for entry in sys.path + homes if entry]))
"""
_PROBE_SECONDS = 30.0


def find_import_paths(sandbox: Sandbox, interpreter: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return from where an interpreter imports this repository's packages, relative to the root.

    An editable install leads there through entries of `sys.path`, or through a finder that is asked after
    them. Entries of PYTHONPATH that lie elsewhere follow, as they are.
    """
    root = sandbox.root
    declared = [str(root / entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    inside = [_below(root, entry) for entry in (*declared, *_search_path(sandbox, (interpreter,), env))]
    places = [place for place in (*inside, "src", ".") if place and (root / place).is_dir()]
    return tuple(dict.fromkeys([*places, *(entry for entry in declared if _below(root, entry) is None)]))


def find_installed_paths(sandbox: Sandbox, words: Sequence[str]) -> tuple[str, ...]:
    """Return where in the repository an interpreter, started by these words, finds packages by itself."""
    root = sandbox.root
    found = (_below(root, entry) for entry in _search_path(sandbox, words, {}))
    return tuple(dict.fromkeys(place for place in found if place and (root / place).is_dir()))


def to_pythonpath(copy: Path, places: Iterable[str]) -> str:
    """Return the PYTHONPATH under which a copy imports itself, ahead of every editable install."""
    return os.pathsep.join(str(copy / place) for place in places)


def _search_path(sandbox: Sandbox, words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    argv = (*words, "-c", _PROBE)
    probe = Command(argv=argv, cwd=str(sandbox.root), timeout=_PROBE_SECONDS, env=env)
    with scratch_folder() as folder:
        try:
            said = sandbox.of(None).run(probe, folder / "output").tail
            return fit(list[str], json.loads(said.strip().rpartition("\n")[2]))
        except (OSError, ValueError):
            return []  # the run itself will say what is wrong with this interpreter


def _below(root: Path, entry: str) -> str | None:
    """Return where an entry lies in the repository, unless it is elsewhere or in an environment."""
    home = root.resolve()
    place = Path(entry).resolve()
    if not place.is_relative_to(home):
        return None
    found = place.relative_to(home)
    folders = (home / folder for folder in (found, *found.parents))
    return None if any(map(is_python_environment, folders)) else str(found)
