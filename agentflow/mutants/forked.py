"""Mutants of Python code under pytest, each tried in a fork of one process that has pytest loaded."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentflow.core.errors import NoSandbox
from agentflow.core.evidence import Check, Command
from agentflow.core.verdict import MutantEnd
from agentflow.mutants.trial import MutantOrder, TriedMutant
from agentflow.parse import Mismatch, fit
from agentflow.runners.python import add_import_path, read_python_run
from agentflow.sandbox import sealed
from agentflow.sandbox.environment import find_shell
from agentflow.sandbox.profile import CACHES, CHECKS, SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder

_SERVER = Path(__file__).with_name("server.py")
_MODULE = "agentflow_mutants"
_GRACE = 10.0
"""Seconds in which pytest starts and ends."""


def try_forked(
    order: MutantOrder,
    sandbox: Sandbox,
    surround: Callable[[Path], Mapping[str, str]],
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[TriedMutant, ...] | None:
    """Return the outcome of each mutant; None where the tests cannot be run in this way.

    `surround` returns the variables of the check for a folder in which they may name places.
    """
    (part, *_), mutants = order.check.parts, order.mutants
    is_python, run = all(each.path.endswith(".py") for each in mutants), read_python_run(part)
    if not (is_python and order.passing and run and run.is_pytest):
        return None
    spec = {
        "apart": [*SHARED, *CACHES],
        "first": sorted(order.first & order.passing),
        "passing": sorted(order.passing),
        "mutants": [
            {
                "path": each.path,
                "line": each.line,
                "start": each.start,
                "end": each.end,
                "text": each.after,
                "is_strong": each in order.strong,
            }
            for each in mutants
        ],
    }
    raw = ForkedRun(_SERVER, _MODULE, spec, order.seconds).run(order.check, sandbox, surround, cancelled)
    return None if raw is None else _read(raw, order)


class ForkedRun(NamedTuple):
    """A run of Python tests with a module of ours that forks them and tells what it finds."""

    source: Path
    module: str
    """The name under which it is loaded."""
    spec: Mapping[str, Any]
    seconds: float

    def run(
        self,
        check: Check,
        sandbox: Sandbox,
        surround: Callable[[Path], Mapping[str, str]],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> bytes | None:
        """Return what the module wrote; None where nothing could be run."""
        (part, *others) = check.parts
        if others:
            return None
        with make_scratch_folder() as scratch:
            place = scratch / "forked"
            place.mkdir()
            shutil.copyfile(self.source, place / f"{self.module}.py")
            env = {**sandbox.opened.environment, **surround(scratch)}
            spec = {
                "folder": f"/{part.folder}"[:-1] if part.folder else "",
                "plugin": str(place),
                "sealed": sealed.__file__,
                "restored": {name: env.get(name, "") for name in ("PYTHONPATH", "PYTEST_PLUGINS")},
                "seconds": self.seconds,
                **self.spec,
            }
            (place / "spec.json").write_text(json.dumps(spec), "utf-8")
            ours = {
                "PYTHONPATH": os.pathsep.join(filter(None, (str(place), env.get("PYTHONPATH", "")))),
                "PYTEST_PLUGINS": ",".join(filter(None, (self.module, env.get("PYTEST_PLUGINS", "")))),
                "AGENTFLOW_FORKED": str(place),
            }
            said = add_import_path(check.command, str(place))
            command = Command(
                argv=(find_shell(sandbox.root), "-c", said),
                cwd=str(sandbox.root),
                timeout=self.seconds + _GRACE,
                env={**env, **ours},
            )
            with (place / "told").open("w+b") as told:  # the module takes its name away
                try:
                    sandbox.of(CHECKS, scratch).run(command, scratch / "output", cancelled)
                except (OSError, NoSandbox):
                    return None
                told.seek(0)
                return told.read()


def _read(raw: bytes, order: MutantOrder) -> tuple[TriedMutant, ...] | None:
    """Return what the server wrote, the last of each mutant; None where it does not stand."""
    found, is_begun = dict[int, TriedMutant](), False
    for line in raw.splitlines():
        try:
            told = fit(dict[str, Any], json.loads(line))
        except (ValueError, Mismatch):
            break  # it was ended as it wrote
        if "control" in told:
            return None
        is_begun = is_begun or "begun" in told
        if "number" in told:
            found[told["number"]] = TriedMutant(
                mutant=order.mutants[told["number"]],
                outcome=MutantEnd(told["outcome"]),
                killers=tuple(told.get("killers", ())),
            )
    untried = (TriedMutant(mutant=each, outcome=MutantEnd.NOT_TRIED) for each in order.mutants)
    return tuple(found.get(at, each) for at, each in enumerate(untried)) if is_begun else None
