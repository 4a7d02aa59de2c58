"""How a brief opens: where the role works, what the repository asks, and what was seen already."""

from collections.abc import Iterator

from agentflow.core.evidence import CheckName, CheckRun
from agentflow.core.role import Limits, Role
from agentflow.core.task import Excerpt, Instruction, Phase, TaskState
from agentflow.library.instructions import MAX_CHARS, reach, relevant
from agentflow.loop.context import prompt_text
from agentflow.report.material import Material, fence_text
from agentflow.routing.route import ROLE_OF
from agentflow.sandbox.profile import ACCESS, Access, Level
from agentflow.tools.shell import BASH
from agentflow.verdict.narrow import one_test

_WRITES = {
    Access.READ: "the repository is read-only for them",
    Access.WRITE: "the repository may be written, but for .git, .claude, .agents and .mcp.json",
    Access.THROW_AWAY: "what they write into the repository is thrown away with each",
}


def opening(task: TaskState, phase: Phase, material: Material) -> str:
    """Return what every brief begins with."""
    parts = (surroundings(task, phase, material), instructions(task, material))
    return "\n\n".join(part for part in parts if part)


def surroundings(task: TaskState, phase: Phase, material: Material) -> str:
    """Return where a role works, with what, and how far its run may go."""
    role = material.roles.get(ROLE_OF[phase])
    lines = (
        *task.surroundings,
        *_tests(material.baseline),
        *_unable(task, material.baseline),
        *(_sandbox(task, ROLE_OF[phase], role, material.network) if role else ()),
        *(_limits(task, role.limits) if role else ()),
    )
    return "\n".join(("# Surroundings", *(f"- {line}" for line in lines))) if lines else ""


def _tests(baseline: tuple[CheckRun, ...]) -> Iterator[str]:
    for run in baseline:
        if run.check.name is CheckName.TESTS and not run.check.missing:
            one = one_test(run.check)
            yield f"all tests: `{run.check.command}`" + (f"; one test: `{one}`" if one else "")


def _unable(task: TaskState, baseline: tuple[CheckRun, ...]) -> Iterator[str]:
    """Yield which checks cannot run on this machine, and why."""
    for run in baseline:
        name = run.check.name
        if why := task.blocked.get(name) or run.check.missing or run.check.left_out:
            yield f"cannot run here: {name} ({why})"


def _sandbox(task: TaskState, part: str, role: Role, network: tuple[str, ...]) -> Iterator[str]:
    """Yield what the commands of a role can reach."""
    if not role.rules_for(BASH.name):
        return
    if task.sandbox == Level.NONE:
        yield "commands run without a sandbox, with the user's rights: keep to the repository"
        return
    reach = "network" if part in network else "no network"
    writes = _WRITES[ACCESS.get(part, Access.READ)]
    yield f"commands run in a sandbox: {reach}, an empty home, a fresh /tmp for each; {writes}"


def _limits(task: TaskState, limits: Limits) -> Iterator[str]:
    iteration = f"iteration {task.iteration} of {task.max_iterations}; " if not task.reads_only else ""
    parts = (f"at most {limits.turns} turns and {limits.tool_calls} tool calls", *_budget(task))
    yield f"{iteration}{', '.join(parts)}"


def _budget(task: TaskState) -> Iterator[str]:
    """Yield about how much of the task's budget is left: a run that goes on later has to read the same."""
    budget, usage = task.budget, task.usage
    if budget.cost is not None:
        yield f"about {_percent_left(usage.cost_usd or 0, budget.cost)} % left of {budget.cost:g} USD"
    if budget.tokens is not None:
        yield f"about {_percent_left(usage.tokens, budget.tokens)} % left of {budget.tokens:,} tokens"


def _percent_left(used: float, allowed: float) -> int:
    return max(0, round(10 * (1 - used / allowed))) * 10


def instructions(task: TaskState, material: Material) -> str:
    """Return what the repository says of how to work on the files of a task, cut where it is too much."""
    paths = (*task.paths, *material.changed, *(each.path for each in task.excerpts))
    found = relevant(task.instructions, paths)
    parts, left = [f"# Instructions of the repository\n{prompt_text('instructions.md')}"], MAX_CHARS
    for each in found:
        parts.append(_instruction(each, max(0, left)))
        left -= len(each.text)
    return "\n\n".join(parts) if found else ""


def _instruction(one: Instruction, most: int) -> str:
    where = f" ({said})" if (said := reach(one)) else ""
    text = one.text[:most].rstrip()
    cut = one.size - len(one.text[:most])
    note = (f"({cut:,} more characters left out; Read {one.path} if you need them)",) if cut else ()
    return "\n".join((f"## {one.path}{where}", *((fence_text(text, "markdown"),) if text else ()), *note))


def excerpts(task: TaskState, material: Material) -> str:
    """Return the lines of the repository that are known to matter, as they stood before the task."""
    found = tuple(each for each in _unchanged(task, material.changed) if each.lines)
    shown = (
        f"### {each.path}{' (whole)' if each.is_whole else ''}\n{fence_text(_numbered(each))}"
        for each in found
    )
    return "\n".join((f"## Seen already\n{prompt_text('seen.md')}", *shown)) if found else ""


def whole_files(task: TaskState, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that a brief shows whole."""
    return tuple(each.path for each in _unchanged(task, changed) if each.is_whole)


def _unchanged(task: TaskState, changed: tuple[str, ...]) -> Iterator[Excerpt]:
    """Yield what still stands as it was seen, each file from one source."""
    whole = {each.path for each in task.excerpts if each.is_whole}
    cited = [each for each in task.cited if each.path not in whole]
    paths = {each.path for each in cited}
    for each in (*(each for each in task.excerpts if each.path not in paths), *cited):
        if each.path not in changed:
            yield each


def _numbered(excerpt: Excerpt) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(excerpt.lines, excerpt.first))
