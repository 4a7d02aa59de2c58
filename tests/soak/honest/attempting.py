"""An entry of the table, played by the installed command."""

from pathlib import Path
from typing import Any

from tests.soak.honest.entries import Entry, after
from tests.support import play
from tests.support.attempts import Attempt
from tests.support.repo import Done


class Played:
    """A task that an honest crew does as an entry says."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.attempt = Attempt(folder, entry.shape.files)
        self._entry = entry
        self.done = self._run()

    @property
    def is_done(self) -> bool:
        """Return whether the files are what the implementer left."""
        root = self.attempt.repo.root
        found = {
            name: (root / name).read_text() if (root / name).exists() else None
            for name in self._entry.changed
        }
        return found == dict(self._entry.changed)

    def _run(self) -> Done:
        rounds = ("--prove", "1") if self._entry.proving else ()
        words = ("--json", "--max-iterations", "1", *rounds)
        return self.attempt.repo.task(self._entry.task, *words, script=self._script())

    def _prove(self) -> list[dict[str, Any]]:
        files = after(self._entry.shape.files, self._entry.proving) if self._entry.proving else {}
        whole = {name: self._entry.changed[name] for name in files}
        turns = [step for name, text in whole.items() for step in self.attempt.steps(name, text)]
        return [play.role("implementer", *turns, play.submit(*self._entry.changed))] if whole else []

    def _script(self) -> list[dict[str, Any]]:
        """Return what each role does; the verifier cites the first run of the final checks."""
        entry, changed = self._entry, self._entry.first
        turns = [step for name, text in changed.items() for step in self.attempt.steps(name, text)]
        turns += [play.turn(play.call("Bash", command=entry.command))] if entry.command else []
        ran = sum(made["name"] == "Bash" for step in turns for made in step["tools"])
        cited = f"ev-{1 + entry.shape.checks + ran:04}"
        looked = [play.turn(play.call("Bash", command=entry.verifying))] if entry.verifying else []
        verdict = play.turn(play.call("SubmitVerdict", verdict="VERIFIED", evidence=[cited], reasons=[]))
        place = next(iter(entry.shape.files))
        return [
            play.findings(place, 1),
            play.plan(*changed),
            play.role("implementer", *turns, play.submit(*changed)),
            *self._prove(),
            play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))),
            play.role("verifier", *looked, verdict),
        ]
