"""Attacks and honest changes in repositories of other languages than Python, read from tables."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support import play
from tests.support.repo import Done, Repo
from tests.support.toolchains import can_build

FOLDER = Path(__file__).parents[1] / "soak/attacks/other"
Files = Mapping[str, str | None]
"""Texts by path; None for a file that is not there."""
_ASIDE = ("## Intent", "## Files changed", "## What counts as checks", "```diff")
"""Parts of a report that show any change alike."""
_NO_FINDING = ("- fail_to_pass:", "failed, as expected", "the tests try all of it")
"""Of what a report tells of proofs and probes, what speaks for a change."""


@dataclass(frozen=True)
class Case:
    """A repository, and what somebody makes of it."""

    id: str
    language: str
    rule: int
    why: str
    task: str
    base: Files
    change: Files
    command: str
    wrong: str
    """A command that fails on the changed code."""
    plain: str
    """The command of its tests."""
    named: tuple[str, ...]
    needs: tuple[str, ...]
    is_trusted: bool
    checks: int
    """How many checks its language has, each of which is one evidence."""
    code: int | None
    """How an honest change ends."""
    prove: Files
    """What is done in a proving round: the tests of what no test noticed by then."""

    @property
    def missing(self) -> list[str]:
        """The programs that are not here."""
        return [need for need in self.needs if not _is_here(need)]


def _is_here(need: str) -> bool:
    """Tell whether there is a program, at least as new as the version behind its name."""
    name, _, version = need.partition(" ")
    if not version or not can_build(name):
        return can_build(name)
    told = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    numbers = ([int(each) for each in re.findall(r"\d+", text)] for text in (told, version))
    return next(numbers) >= next(numbers)


def table(kind: str) -> tuple[Case, ...]:
    """Return the attacks, or the honest changes, of all languages."""
    return tuple(case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(path, kind))


def _cases(path: Path, kind: str) -> Iterator[Case]:
    told = yaml.safe_load(path.read_text("utf-8"))
    for row in told.get(kind, ()):
        shared = told["bases"][row["base"]]
        base = {**shared["files"], **row.get("before", {})}
        edited = {name: _edited(base[name], pairs) for name, pairs in row.get("edits", {}).items()}
        left = {**base, **row.get("change", {}), **edited}
        proving = shared["prove"] if row.get("prove") is True else row.get("prove", {})
        yield Case(
            id=row["id"],
            language=told["language"],
            rule=row.get("rule", 0),
            why=row.get("why", ""),
            task=row.get("task", shared["task"]),
            base=base,
            change={**row.get("change", {}), **edited},
            command=row.get("command", ""),
            wrong=row.get("wrong", shared["wrong"]),
            plain=row.get("plain", told["plain"]),
            named=tuple(row.get("named", ())),
            needs=(*told["needs"], *row.get("needs", ())),
            is_trusted=row.get("trusted", False),
            checks=row.get("checks", told["checks"]),
            code=row.get("code"),
            prove={name: _edited(left[name], pairs) for name, pairs in proving.items()},
        )


def _edited(text: str, pairs: list[list[str]]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    return text


def lay(folder: Path, case: Case) -> None:
    """Lay out the files of a case as they are once it is done."""
    files = {**case.base, **case.change}
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
    if case.command:
        assert run(folder, case.command) == 0


def run(folder: Path, command: str) -> int:
    """Return the exit code of a command, as a person would run it."""
    env = {**os.environ, "GOCACHE": str(folder / ".go-build"), "CARGO_NET_OFFLINE": "true"}
    words = ["sh", "-c", command]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, check=False, timeout=300)
    return done.returncode


class Trial:
    """A task whose implementer makes the change of a case."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.case = case
        self.repo = Repo(folder / "work", folder / "home")
        self.repo.write({name: text for name, text in case.base.items() if text is not None}).commit()
        if case.is_trusted:
            assert self.repo.run("trust", "--yes").code == 0

    def run(self) -> Done:
        rounds = ("--prove", "1") if self.case.prove else ()
        words = ("--json", "--max-iterations", "1", *rounds)
        return self.repo.task(self.case.task, *words, script=self.script(), timeout=300)

    def script(self) -> list[dict[str, Any]]:
        turns = [step for name, text in self.case.change.items() for step in self._steps(name, text)]
        turns += [play.turn(play.call("Bash", command=self.case.command))] if self.case.command else []
        ran = sum(step["name"] == "Bash" for each in turns for step in each["tools"])
        files = tuple(self.case.change) or tuple(self.case.base)[:1]
        more = [step for name, text in self.case.prove.items() for step in self._steps(name, text)]
        return [
            play.findings(next(name for name, text in self.case.base.items() if text), 1),
            play.plan(*files),
            play.role("implementer", *turns, play.submit(*files)),
            *([play.role("implementer", *more, play.submit(*files))] if more else []),
            play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))),
            *(play.verified(f"ev-{ran + number:04}") for number in self._number_checks()),
        ]

    def _number_checks(self) -> list[int]:
        """Return the number of the last check each time that a verifier is asked, without what roles ran."""
        checks, has_tests = (
            self.case.checks,
            any(each.startswith(("t/", "test", "data/")) for each in self.case.change),
        )
        again = checks * (3 + has_tests) + 1  # the original ones too, and the tests without the change
        return [
            *([2 * checks] if has_tests or not self.case.prove else []),
            *([again] if self.case.prove else []),
        ]

    def _steps(self, name: str, text: str | None) -> list[dict[str, Any]]:
        if text is None:
            return [play.turn(play.call("Bash", command=f"rm '{name}'"))]
        is_there = self.case.base.get(name) is not None
        seen = [play.turn(play.call("Read", file_path=name))] if is_there else []
        return [*seen, play.turn(play.call("Write", file_path=name, content=text))]

    @property
    def told(self) -> str:
        """What the report says of the verdict: not the task, the list of its files or the diff."""
        rows, is_told = [], True
        for row in (self.repo.folder / "report.md").read_text("utf-8").splitlines():
            if row.startswith(("#", "```")):
                is_told = not row.startswith(_ASIDE)
            is_finding = not row.startswith("# ") and not any(words in row for words in _NO_FINDING)
            rows += [row] if is_told and is_finding else []
        return "\n".join(rows)
