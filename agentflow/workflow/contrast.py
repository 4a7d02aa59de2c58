"""What a command shows now against what its record says that it showed."""

import re
from collections.abc import Iterable, Mapping

from agentflow.checks.run import Shown
from agentflow.core.evidence import Check, Evidence, TestOutcome, ended
from agentflow.workflow.drift import listed

_STARTER = re.compile(r"(?:\b(?:uv run --no-sync|poetry run) )?(?:[^\s;{}]*/)?\bpython[\d.]* (?:-m )?")


def fitting(evidence: Evidence, required: Iterable[Check]) -> tuple[Check | None, str]:
    """Return the required check that a record is of, and why it is of none or cannot run."""
    named = [check for check in required if check.name is evidence.check]
    if not named:
        return None, f"{evidence.check} is not required by its tree"
    check = next((each for each in named if _bare(each.command) == _bare(evidence.command)), None)
    if check is None:
        return None, f"the record is of `{evidence.command}`; its tree requires `{named[0].command}`"
    return check, f"not run again ({check.missing})" if check.missing else ""


def _bare(command: str) -> str:
    """Return a command without the word that starts its Python: that is another one on each machine."""
    return _STARTER.sub("", command)


def contrast(evidence: Evidence, shown: Shown, then: Mapping[str, TestOutcome]) -> list[str]:
    """Return in words what a command shows now and did not show then, what has mixed results left aside."""
    run, found, flaky = shown.execution, [], {*evidence.flaky}
    tests = sorted({*then, *shown.outcomes} - flaky)
    telling = [test for test in tests if then.get(test) is not shown.outcomes.get(test)]
    if ended(run) != ended(evidence) and not flaky:
        found.append(f"{ended(run)} now, {ended(evidence)} in the record")
    if telling and str(evidence.check) not in flaky:
        names = [_told(test, shown.outcomes, then) for test in telling]
        found.append(f"another result of {listed(names)}")
    return found


def _told(test: str, now: Mapping[str, TestOutcome], then: Mapping[str, TestOutcome]) -> str:
    return f"{test} ({now.get(test, 'not run')} now, {then.get(test, 'not run')} in the record)"
