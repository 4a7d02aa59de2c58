"""Tells a person why nothing was mended, and what would help."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from agentflow.core.evidence import RED
from agentflow.repair.locate import EditPlace, TestTrace
from agentflow.repair.search import SearchResult
from agentflow.repair.sources import Sources
from agentflow.repair.target import ADVICE, TestsBlocked

GIVEN_UP = "not mended: "

_SHOWN = 3

_MISSING = re.compile(r"No module named '([\w.]+)'")

_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): (.*)", re.MULTILINE)


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
    """Tell whether a module of this name would be one of the repository's."""
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
