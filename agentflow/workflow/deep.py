"""The deep exploration: explorers side by side, each from its own angle, and the document they fill."""

import time
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import anyio

from agentflow.core.errors import InvalidFile, StateError
from agentflow.core.languages import gather, is_source, is_test_path
from agentflow.core.record import Record
from agentflow.core.role import Findings
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase, TaskState
from agentflow.frontmatter import join, split, write_atomic
from agentflow.loop.prompts import read_prompt
from agentflow.parse import fit
from agentflow.process import make_timestamp
from agentflow.redact import nest_text
from agentflow.verdict.ending import fail
from agentflow.verdict.reach import Graph, find_leads
from agentflow.verdict.runner import run_together
from agentflow.workflow.crew import Crew
from agentflow.workflow.dispatch import RunPrompt, dispatch
from agentflow.workflow.gates import decide_gate, end_in_phase
from agentflow.workflow.refinement import find_languages
from agentflow.workflow.task_prompt import write_opening
from agentflow.workspace.git import Git

PATH = Path(".claude/deep-dive.local.md")

SIDE_BY_SIDE = 6
"""Explorers at the same time."""
FRESH_COMMITS = 50
"""A document older than this is stale."""

_SECTIONS = {
    "Overview": ("structure",),
    "Architecture": ("architecture",),
    "Conventions": ("conventions",),
    "Anti-patterns": ("anti-patterns",),
    "Quick reference": ("build", "testing"),
}

NOTES_TITLE = "Notes"
ANGLES = ("structure", "architecture", "conventions", "anti-patterns", "build", "testing")
MOST_EXPLORERS = 16
_FILES_EACH = 100
_DEEP = 4
_MOST_READ, _MOST_BYTES = 5_000, 200_000
"""Source files that are read for their imports, and the bytes of one."""
_MANIFESTS = frozenset(gather(lambda each: each.manifests))


class Exploration(Record):
    """The findings of one explorer, or None when it gave no result."""

    angle: RunPrompt
    findings: Findings | None
    flagged: tuple[str, ...] = ()


async def explore_deeply(crew: Crew, task: TaskState) -> TaskState:
    """Explore from every angle at once and write the document; an angle without a result fails the task."""
    focus = task.options.focus or ""
    head = write_opening(task, Phase.EXPLORATION, crew.gather_material(task))
    files = crew.workspace.list_files(focus or ".")
    angles = choose_angles(files, focus, _find_leads_of(crew.git, task))
    prompts = tuple(each.replace(text=f"{head}\n\n{each.text}") for each in angles)
    limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)

    async def explore(angle: RunPrompt) -> Exploration:
        async with limiter:
            run = await dispatch(crew, Phase.EXPLORATION, angle)
        if run.outcome is not RunOutcome.SUBMITTED:
            return Exploration(angle=angle, findings=None)
        flagged = tuple(run.changes.get("flagged_findings", ()))
        return Exploration(angle=angle, findings=fit(Findings, run.changes["findings"]), flagged=flagged)

    explorations = tuple(await run_together(*(partial(explore, prompt) for prompt in prompts)))
    path = crew.git.root / PATH
    if path.exists():
        path.rename(crew.git.root / f"{PATH}.bak.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    text = format_exploration(explorations, focus, find_head_commit(crew.git))
    write_atomic(path, text.encode())
    return _conclude(crew.store.task.replace(document=str(PATH)), explorations)


def _conclude(task: TaskState, seen: tuple[Exploration, ...]) -> TaskState:
    missing = [one.angle.name for one in seen if one.findings is None]
    count = sum(len(one.findings.findings) for one in seen if one.findings)
    summary = f"{len(seen)} explorers, {count} findings, written to {PATH}"
    whole = Findings(summary=summary, findings=(), open_questions=())
    task = task.replace(findings=whole, flagged_findings=())
    if missing:
        return end_in_phase(task, Phase.EXPLORATION, fail(f"no result from: {', '.join(missing)}"))
    return decide_gate(task, GateStatus.PASSED, f"- {summary}")


def _find_leads_of(git: Git, task: TaskState) -> Graph:
    """Return what the source files of a task's tree import; of a huge tree, those of the first files."""
    tree = task.tree or task.base_tree
    sources = filter(is_source, git.list_paths(tree)) if tree else ()
    texts = git.read_files(tree or "", islice(sources, _MOST_READ), _MOST_BYTES)
    return find_leads(texts)


def choose_angles(
    files: tuple[str, ...], focus: str, leads: Graph = MappingProxyType({})
) -> tuple[RunPrompt, ...]:
    """Return the angles for these files; `focus` is the folder they lie in, or empty.

    `leads` are the files that each source file imports.
    """
    scope = f"the folder {focus} of this repository" if focus else "this repository"
    head = read_prompt("explore/head.md").format(scope=scope)
    fixed = (RunPrompt(name=name, text=f"{head}\n\n{read_prompt(f'explore/{name}.md')}") for name in ANGLES)
    area = read_prompt("explore/area.md")
    more = (
        RunPrompt(name=name, text=f"{head}\n\n{area.format(area=name)}") for name in _list_areas(files, leads)
    )
    return (*fixed, *islice(more, MOST_EXPLORERS - len(ANGLES)))


def _list_areas(files: tuple[str, ...], leads: Graph) -> tuple[str, ...]:
    """Return the parts of the repository that get an explorer of their own.

    What nobody outside imports and no test runs, such as examples, gets none: the folders and files that are
    used most stand in its place.
    """
    paths = [PurePosixPath(file) for file in files]
    workspaces = (str(path.parent) for path in paths if path.name in _MANIFESTS and len(path.parts) > 1)
    sizes = Counter(str(PurePosixPath(*path.parts[:2][: len(path.parts) - 1])) for path in paths)
    large = (name for name, _ in islice(sizes.most_common(), len(paths) // _FILES_EACH))
    inner = {path.parent for path in paths if len(path.parts) > _DEEP}
    deepest = sorted(inner, key=lambda folder: (-len(folder.parts), str(folder)))[:2]
    folders = dict.fromkeys((*large, *map(str, deepest), *workspaces))
    if used := _list_used(files, leads):
        kept = [area for area in folders if area in used]
        others = [area for area in used if area not in folders]
        folders = dict.fromkeys([*others[: len(folders) - len(kept)], *kept])
    return (*folders, *(f"what is written in {name}" for name in find_languages(files)[1:]))


def _list_used(files: tuple[str, ...], leads: Graph) -> tuple[str, ...]:
    """Return the folders, and then their source files, that other files or tests use, the most used first.

    A folder of which one part alone is used as much is left out.
    """
    known, users = frozenset(files), dict[str, set[str]]()
    for user, used in leads.items():
        for path in used & known:
            for area in () if is_test_path(path) else (path, *map(str, PurePosixPath(path).parents)):
                if is_test_path(user) or not PurePosixPath(user).is_relative_to(area):
                    users.setdefault(area, set()).add(user)
    above = {area: str(PurePosixPath(area).parent) for area in users}
    same = {above[area] for area in users if area not in known and users[area] == users.get(above[area])}
    inner = {area for area in users if area in known and above[area] not in {".", *users}}
    found = users.keys() - same - inner - {"."}
    return tuple(sorted(found, key=lambda area: (area in known, -len(users[area]), area)))


def format_exploration(seen: tuple[Exploration, ...], focus: str, commit: str | None) -> str:
    """Return the document: six sections, under a head that says how complete and how recent they are."""
    complete = all(one.findings for one in seen)
    head: dict[str, Any] = {
        "generated": make_timestamp(),
        "scope": "focused" if focus else "full",
        "focus_path": focus or None,
        "expires_hint": f"{FRESH_COMMITS} commits",
        "commit": commit,
        "phase": "complete" if complete else "incomplete",
        "agent_count": len(seen),
        "phases": {one.angle.name: "complete" if one.findings else "failed" for one in seen},
    }
    by_name = {one.angle.name: one for one in seen}
    sections = {title: [by_name.pop(name) for name in names] for title, names in _SECTIONS.items()}
    sections[NOTES_TITLE] = list(by_name.values())
    parts = (
        _format_section(title, looks, seen if title == NOTES_TITLE else ())
        for title, looks in sections.items()
    )
    return join(head, "\n\n".join(("# Deep exploration", *parts)) + "\n")


def _format_section(title: str, looks: list[Exploration], all_seen: tuple[Exploration, ...]) -> str:
    rows = [f"## {title}"]
    for one in looks:
        if one.findings is None:
            rows.append(f"\n{one.angle.name}: no result")
            continue
        rows.append(f"\n{nest_text(one.findings.summary)}\n")
        rows.extend(
            f"- {nest_text(each.claim)} ({each.place}{', no such line' if each.place in one.flagged else ''})"
            for each in one.findings.findings
        )
    questions = [question for one in all_seen if one.findings for question in one.findings.open_questions]
    rows.extend(f"- open: {nest_text(question)}" for question in questions)
    return "\n".join(rows if len(rows) > 1 else [*rows, "\n- none"])


def find_head_commit(git: Git) -> str | None:
    try:
        return git.call("rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
    except StateError:
        return None


def read_fresh_document(git: Git, focus: str | None = None) -> tuple[str, str]:
    """Return the document of an earlier exploration, or an empty text and why it cannot be used.

    With a `focus` it has to be about that very folder.
    """
    path = git.root / PATH
    if not path.is_file():
        return "", f"{PATH} does not exist"
    try:
        head, body = split(path.read_text("utf-8", "replace"), str(PATH))
    except InvalidFile as error:
        return "", str(error)
    problem = _explain_unusable(git, head, focus)
    return ("", f"{PATH} is {problem}") if problem else (body.strip(), "")


def _explain_unusable(git: Git, head: dict[str, Any], focus: str | None) -> str | None:
    if focus is not None and head.get("focus_path") != (focus or None):
        return "about another part"
    if head.get("phase") != "complete":
        return "incomplete"
    distance = _count_commits_since(git, str(head.get("commit")))
    if distance is None:
        return "stale: its commit is gone"
    return f"stale: {distance} commits old" if distance > FRESH_COMMITS else None


def _count_commits_since(git: Git, commit: str) -> int | None:
    if not commit.isalnum():
        return None
    try:
        return int(git.call("rev-list", "--count", f"{commit}..HEAD"))
    except StateError:
        return None
