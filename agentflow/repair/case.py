"""One repair task, computed from prompt and files, and what a person is told when no repair is found."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from agentflow.core.evidence import RED, CheckName, Side
from agentflow.core.role import Replacement
from agentflow.repair.bench import Bench, SearchWatch
from agentflow.repair.candidates import Candidate, list_candidates
from agentflow.repair.clues import EditPlace, TestTrace, localise
from agentflow.repair.search import Search, SearchResult, trace_tests
from agentflow.repair.sources import Sources
from agentflow.repair.syntax import mend_syntax
from agentflow.repair.target import (
    ADVICE,
    Brief,
    CheckLine,
    Target,
    TestsBlocked,
    read_record,
    read_target,
    widen_target,
)
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.working_copy import find_import_paths

GIVEN_UP = "not mended: "

_SHOWN = 3

_MISSING = re.compile(r"No module named '([\w.]+)'")

_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): (.*)", re.MULTILINE)
T = TypeVar("T")


def require_runnable(sources: Sources, seen: TestTrace) -> None:
    """Raise TestsBlocked where all that fails is the loading of modules that are not installed."""
    reds = [test for test, outcome in seen.outcomes.items() if outcome in RED]
    missing = [_find_missing(seen.messages.get(test, "")) for test in reds]
    names = sorted({name for name in missing if name})
    if reds and all(missing) and not any(_is_own(sources, name) for name in names):
        raise TestsBlocked(
            f"the tests cannot run here: no module named {', '.join(names)} is installed",
            hint="Install what the tests need, then try again.",
        )


def _find_missing(message: str) -> str | None:
    found = _MISSING.search(message)
    return found[1] if found else None


def _is_own(sources: Sources, name: str) -> bool:
    """Return whether a module of this name would be one of the repository's."""
    top = name.partition(".")[0]
    return any(
        top in (part.removesuffix(".py") for part in PurePosixPath(path).parts) for path in sources.files
    )


def explain_failure(
    found: SearchResult, sources: Sources, seen: TestTrace, places: Sequence[EditPlace]
) -> str:
    """Return how far a search came that found nothing, and what would help, a line for each."""
    advice = f"next: {_advise(found, places)}"
    return GIVEN_UP + "\n  ".join((*describe_search(found, sources, seen, places), advice))


def describe_search(
    found: SearchResult, sources: Sources, seen: TestTrace, places: Sequence[EditPlace]
) -> Iterator[str]:
    """Yield how far a search came that found nothing, a line for each fact."""
    yield _tell_end(found)
    yield from sorted({_name_cause(sources, seen, test) for test in seen.messages} - {""})
    if places:
        yield f"suspicious lines: {', '.join(f'{each.path}:{each.line}' for each in places[:_SHOWN])}"
    if found.kinds:
        yield f"tried: {_count_kinds(found.kinds)}"
    near = found.nearest
    if near is not None and (near.turned or near.nearness > found.base):
        mends = f"; mends {', '.join(near.turned[:_SHOWN])}" if near.turned else ""
        breaks = f"; breaks {', '.join(near.broke[:_SHOWN])}" if near.broke else ""
        values = f"; expected {near.wanted}, got {near.got}" if near.wanted and not near.turned else ""
        yield f"nearest: {near.candidate.title}{mends}{breaks}{values}"


def _tell_end(found: SearchResult) -> str:
    left = max(0, found.total - found.tried)
    ended = f"; {found.crashed} ended the process that tried them" if found.crashed else ""
    ended += f"; {found.hung} did not end" if found.hung else ""
    if found.is_late:
        return f"the time of {found.seconds:.0f} s was over: {found.tried} edits tried, {left} left{ended}"
    if not found.tried:
        return "there is no line of the code under test that an edit could be tried at"
    return f"none of {found.tried} edits makes the failing tests pass{ended}"


def _name_cause(sources: Sources, seen: TestTrace, test: str) -> str:
    """Return what keeps a test from being loaded: a wrong line, or a module that is not there."""
    message = seen.messages[test]
    frames = seen.frames.get(test, ())
    syntax, missing = _SYNTAX.search(message), _find_missing(message)
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else test
    if syntax:
        return f"{place} is no Python: {syntax[1]}"
    if missing:
        whose = "the repository has no module" if _is_own(sources, missing) else "not installed: module"
        return f"{place} imports {missing}: {whose} {missing}"
    return ""


def _count_kinds(kinds: Mapping[str, int]) -> str:
    ordered = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [f"{count} {kind}" for kind, count in ordered[:5]]
    others = sum(count for _, count in ordered[5:])
    return ", ".join([*shown, *([f"{others} others"] if others else [])])


def _advise(found: SearchResult, places: Sequence[EditPlace]) -> str:
    if not places:
        return f"look at what the failing tests load. {ADVICE}"
    if found.nearest is not None and found.nearest.turned:
        return f"make the nearest edit and run again. {ADVICE}"
    if len(places) > 20:
        return f"add a failing test that runs less code. {ADVICE}"
    return ADVICE


class RepairCase:
    """Everything here follows from the brief and the files; `known` only saves doing it twice."""

    def __init__(
        self,
        sandbox: Sandbox,
        brief: Brief,
        sources: Sources,
        watch: SearchWatch,
        known: dict[object, Any],
    ) -> None:
        """Take a brief and files. Raises ModelRejected when nothing fails, or it is not ours to run."""
        self.brief = brief
        self._sandbox = sandbox
        self.sources = sources
        self.target = read_target(sandbox.root, brief, self.sources.files)
        self._watch = watch
        self._known = known
        self._key = (self.sources.digest, self.target.interpreter, self.target.arguments, self.target.files)

    @property
    def seen(self) -> TestTrace:
        """The results of the tests on the code as it was."""

        def work() -> TestTrace:
            seen = trace_tests(self._bench(self.target))
            require_runnable(self.sources, seen)
            return seen

        return self._once("seen", work)

    @property
    def places(self) -> tuple[EditPlace, ...]:
        """The suspicious lines, the most suspicious first."""
        return self._once("places", lambda: localise(self.sources, self.seen))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The edits to try, in order."""

        def work() -> tuple[Candidate, ...]:
            edits = list_candidates(self.sources, self.places, self.seen)
            return (*mend_syntax(self.sources, self.places), *edits)

        return self._once("candidates", work)

    @property
    def searched(self) -> SearchResult:
        """The search for the next repair after those that tests rejected."""
        root = self.sources.root
        return self._search(tuple(checks for checks in self.brief.failed if _rejects(root, checks)))

    def _search(self, rejections: tuple[tuple[CheckLine, ...], ...]) -> SearchResult:
        """Return what the search finds once each rejection has come, the earlier ones taken from before."""
        earlier = [self._search(rejections[:count]) for count in range(len(rejections))]
        wide = widen_target(self.sources.root, self.target, rejections, self.sources.files)
        bench = self._bench(wide)

        def work() -> SearchResult:
            is_same = wide.files == self.target.files
            seen = self.seen if is_same else trace_tests(bench)
            useless = earlier[-1].useless if earlier else frozenset()
            search = Search(bench, [each.texts for each in earlier], useless)
            return search.run(seen, self.candidates)

        return self._once(("searched", len(rejections), wide.files), work)

    def list_edits(self, found: SearchResult) -> tuple[Replacement, ...]:
        """Return the edits that take an earlier attempt back and make what was found."""
        wanted = {**self.sources.overlay, **found.texts}
        return tuple(
            each
            for path, raw in sorted(wanted.items())
            for each in find_replacements(path, self._now(path).decode(), raw.decode())
        )

    def _bench(self, target: Target) -> Bench:
        places = self._once(
            "imports", lambda: find_import_paths(self._sandbox, target.interpreter, target.env)
        )
        return Bench(
            sandbox=self._sandbox,
            sources=self.sources,
            target=target,
            places=places,
            watch=self._watch,
        )

    def _now(self, path: str) -> bytes:
        return (self.sources.root / path).read_bytes()

    def _once(self, what: object, work: Callable[[], T]) -> T:
        key = (self._key, what)
        if key not in self._known:
            self._known[key] = work()
        found: T = self._known[key]
        return found


def _rejects(root: Path, checks: Iterable[CheckLine]) -> bool:
    """Return whether tests that really ran on the change failed; nothing else shows that it is wrong."""
    reds = (shown for shown in checks if shown.name == CheckName.TESTS and not shown.is_green)
    return any(read_record(root, shown).code is Side.FINAL for shown in reds)


def find_replacements(path: str, before: str, after: str) -> Iterator[Replacement]:
    """Yield the Edit calls that turn one text into another, each old text unique when its turn comes."""
    old, new = _split_lines(before), _split_lines(after)
    shift = 0
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lines = [*new[: start + shift], *old[start:]]
        yield _unique(path, lines, (start + shift, end + shift), new[first:last])
        shift += (last - first) - (end - start)


def _unique(path: str, lines: list[str], span: tuple[int, int], fresh: list[str]) -> Replacement:
    """Return an edit of some lines, with enough lines around them to make the old text unique."""
    text = "".join(lines)
    for extra in range(len(lines) + 1):
        low, high = max(0, span[0] - extra), min(len(lines), span[1] + extra)
        old = "".join(lines[low:high])
        if old and text.count(old) == 1:
            break
    new = "".join([*lines[low : span[0]], *fresh, *lines[span[1] : high]])
    bare, bare_new = old.rstrip("\r\n"), new.rstrip("\r\n")
    if bare and bare_new and text.count(bare) == 1 and old[len(bare) :] == new[len(bare_new) :]:
        old, new = bare, bare_new  # a tool may see line endings its own way
    return Replacement(file_path=path, old_string=old, new_string=new)


def _split_lines(text: str) -> list[str]:
    """Return lines as git and Edit see them: only a newline ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
