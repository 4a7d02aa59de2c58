"""One task as the engine sees it: what it is told, and what follows from that, worked out once."""

from collections.abc import Callable
from typing import Any, TypeVar

from agentflow.repair.brief import Brief
from agentflow.repair.candidates import Candidate, candidates
from agentflow.repair.code import applied
from agentflow.repair.edits import Replacement, replacements
from agentflow.repair.localise import Place, localise
from agentflow.repair.search import Searched, first_plausible
from agentflow.repair.sources import read_sources
from agentflow.repair.target import Target, base_tree, read_target, widened
from agentflow.repair.trial import Bench, watch
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.copies import import_places

T = TypeVar("T")


class Case:
    """Everything here follows from the brief and the files; `known` only saves doing it twice."""

    def __init__(
        self, sandbox: Sandbox, brief: Brief, cancelled: Callable[[], bool], known: dict[object, Any]
    ) -> None:
        """Read brief and files; raise ModelRejected when nothing fails, or what fails is not ours to run."""
        self.brief = brief
        self._sandbox = sandbox
        self.sources = read_sources(sandbox.root, base_tree(sandbox.root, brief))
        self.target = read_target(sandbox.root, brief, self.sources.files)
        self._cancelled = cancelled
        self._known = known
        self._key = (self.sources.digest, self.target.interpreter, self.target.arguments, self.target.files)

    @property
    def places(self) -> tuple[Place, ...]:
        """The suspicious lines, the most suspicious first."""
        return self._once(
            "places", lambda: localise(self.sources, watch(self._bench(self.target), trace=True))
        )

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The edits to try, in order."""
        return self._once("candidates", lambda: candidates(self.sources, self.places))

    @property
    def searched(self) -> Searched:
        """The search for the next plausible edit after the one that was tried last."""
        start = self._attempted() + 1
        wide = widened(self.sources.root, self.target, self.brief, self.sources.files)
        bench = self._bench(wide)
        return self._once(
            ("winner", start, wide.files), lambda: first_plausible(bench, self.candidates[start:])
        )

    def edits(self, winner: Candidate | None) -> tuple[Replacement, ...]:
        """Return the edits that take an earlier attempt back and then make the winner's."""
        found: list[Replacement] = []
        for path, raw in sorted(self.sources.overlay.items()):
            found += replacements(path, self._now(path).decode(), raw.decode())
        if winner is not None:
            before = self.sources.read(winner.path)
            found += replacements(winner.path, before.decode(), applied(before, winner.mutation).decode())
        return tuple(found)

    def _bench(self, target: Target) -> Bench:
        places = self._once("imports", lambda: import_places(self._sandbox, target.interpreter, target.env))
        return Bench(
            sandbox=self._sandbox,
            sources=self.sources,
            target=target,
            places=places,
            cancelled=self._cancelled,
        )

    def _attempted(self) -> int:
        """Return where the change so far stands among the candidates, or -1; all before it were rejected."""
        if len(self.sources.overlay) != 1:
            return -1
        ((path, raw),) = self.sources.overlay.items()
        now = self._now(path)
        tried = (applied(raw, each.mutation) == now and each.path == path for each in self.candidates)
        return next((index for index, is_it in enumerate(tried) if is_it), -1)

    def _now(self, path: str) -> bytes:
        return (self.sources.root / path).read_bytes()

    def _once(self, what: object, work: Callable[[], T]) -> T:
        key = (self._key, what)
        if key not in self._known:
            self._known[key] = work()
        found: T = self._known[key]
        return found
