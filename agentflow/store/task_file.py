"""`task.md`: the state as frontmatter and a text for people; what a person wrote into it is found again."""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentflow.core.errors import AgentflowError, CorruptState, InvalidFile
from agentflow.core.events import StoredEvent
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.regex import regex
from agentflow.core.role import Plan, PlanStep
from agentflow.core.task import FRONTMATTER_KEYS, Intent, TaskState, gather_parts
from agentflow.frontmatter import dump_yaml, join, load_yaml, split, write_atomic
from agentflow.parse import fit, parse
from agentflow.redact import nest_text, redact_text, to_one_line
from agentflow.store.reading import (
    EVENTS,
    find_notes,
    fold_state,
    to_log_text,
    trace_fields,
    upgrade_fields,
)
from agentflow.trust import read_content, to_text

STATE = "task.md"
NOTES = "## Notes\n"
PLAN = "## Plan\n"
LOG = "## Log\n"
SHOWN = frozenset(FRONTMATTER_KEYS) - {"usage"} | {"plan"}
"""Keys whose change rewrites the file; the tokens used are written along with the next one."""


def write_task(path: Path, task: TaskState, log: str, notes: str = "") -> None:
    state = to_builtins(task)
    own = f"{NOTES}{notes}\n\n" if notes else ""
    text = join({key: state[key] for key in FRONTMATTER_KEYS}, own + build_text(task.plan, log))
    write_atomic(path, redact_text(text).encode())


def build_text(plan: Plan | None, log: str) -> str:
    """Return the text below the notes, which the program writes."""
    shown = f"{PLAN}{format_plan(plan)}\n\n" if plan else ""
    return f"{shown}{LOG}{log}"


def format_plan(plan: Plan) -> str:
    lines = [nest_text(plan.summary), ""]
    for number, step in enumerate(plan.steps, 1):
        files = f" ({', '.join(map(nest_text, step.files))})" if step.files else ""
        lines.append(f"{number}. {nest_text(step.title)}{files}")
    for title, texts in (("Acceptance", plan.acceptance), ("Risks", plan.risks)):
        if texts:
            lines += ["", f"{title}:", "", *(f"- {nest_text(text)}" for text in texts)]
    return "\n".join(lines).rstrip()


_STEP = regex(r"(?s)(?P<title>.+?)(?: \((?P<files>[^\s(),]+(?:, [^\s(),]+)*)\))?")
_NUMBER = regex(r"\d+[.)] +")


def parse_plan(text: str) -> Plan:
    """Return the plan that a person's version of its Markdown means; text under no title is the summary."""
    parts: list[tuple[str, str]] = []
    under = "summary"
    for line in filter(str.strip, text.splitlines()):
        title, number = line.strip("#: ").lower(), _NUMBER.match(line)
        if line[0].isspace() and parts:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]}\n{line.strip()}")
        elif title in ("acceptance", "risks"):
            under = title
        elif number:
            parts.append(("steps", line[number.end() :].strip()))
            under = "summary"
        else:
            parts.append((under, line.strip() if under == "summary" else line.removeprefix("- ").strip()))

    def list_texts(part: str) -> tuple[str, ...]:
        return tuple(text for each, text in parts if each == part)

    found = [match for each in list_texts("steps") if (match := _STEP.fullmatch(each))]
    return Plan(
        summary="\n".join(list_texts("summary")) or "the plan of the user",
        steps=tuple(PlanStep(title=one["title"], files=_split_names(one["files"])) for one in found),
        acceptance=list_texts("acceptance"),
        risks=list_texts("risks"),
    )


def _split_names(files: str | None) -> tuple[str, ...]:
    return tuple(files.split(", ")) if files else ()


def read_task(path: Path) -> TaskState:
    """Return the state that a `task.md` shows. Raises InvalidFile, or CorruptState for a newer version."""
    head, _ = split(read_task_text(path), str(path))
    return parse(TaskState, gather_parts(upgrade_fields(head, str(path))), str(path), lax=True)


def read_task_text(path: Path) -> str:
    """Return the text of a plain file. Raises OSError, or InvalidFile with the line that is not UTF-8."""
    return to_text(read_content(path), path)


_HINT = "correct it, or delete it: it is written again from events.jsonl"
_MAX_NOTES = 200_000
"""Characters; each event that keeps them holds them all."""
_TORN = f"the last line of {EVENTS} was cut off when it was written, and is dropped"


class Edits(Record):
    intent: Intent | None = None
    """The intent as it was edited; it counts."""
    notes: str | None = None
    """The person's own text, as it is now; it is kept."""
    ignored: tuple[str, ...] = ()
    """Edits without effect, a line each."""

    @property
    def lines(self) -> Iterator[str]:
        if self.intent is not None:
            yield f"{STATE}: the intent was edited by hand and counts"
        if self.notes is not None:
            yield f"{STATE}: the text was edited by hand and is kept under {NOTES.strip()}"
        yield from self.ignored


def find_edits(folder: Path, happened: tuple[StoredEvent, ...]) -> Edits:
    """Return what was edited by hand. Raises InvalidFile or CorruptState for what cannot be read."""
    torn = (_TORN,) if _is_torn(folder / EVENTS) else ()
    written = _list_heads(folder, happened)
    path = folder / STATE
    if not written:
        return Edits(ignored=torn)
    try:
        text = read_task_text(path)
    except FileNotFoundError:
        return Edits(ignored=(*torn, f"{STATE} was missing and is written again from {EVENTS}"))
    except OSError as error:
        raise CorruptState(f"{path}: {error.strerror}", hint=_HINT) from None
    try:
        found, body = split(text, str(path))
        upgrade_fields(found, str(path))
        intent, ignored = _find_edited_intent(found, written, str(path))
    except AgentflowError as error:
        error.hint = error.hint or _HINT
        raise
    log = "".join(to_log_text(one.event) for one in happened)
    generated = redact_text(build_text(fold_state(folder, happened).plan, log))
    notes = _find_edited_notes(body, find_notes(happened), generated, str(path))
    return Edits(intent=intent, notes=notes, ignored=(*torn, *ignored))


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 1))
        return file.read() not in (b"", b"\n")


def _list_heads(folder: Path, happened: tuple[StoredEvent, ...]) -> list[dict[str, Any]]:
    """Return the heads that an unedited file may have: the newest, and after a crash the one before."""
    found = [fields for changed, fields in trace_fields(folder, happened) if changed.keys() & SHOWN]
    return [_read_back(each, str(folder / EVENTS)) for each in reversed(found[-2:])]


def _read_back(fields: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the head of a state as it is read back; keys that an older version did not know are left out."""
    state = fit(TaskState, gather_parts(upgrade_fields(fields, source))).to_fields()
    shown = {key: state[key] for key in FRONTMATTER_KEYS if key in fields}
    read: dict[str, Any] = load_yaml(dump_yaml(shown), source)
    return read


def _find_edited_intent(
    found: dict[str, Any], written: list[dict[str, Any]], source: str
) -> tuple[Intent | None, tuple[str, ...]]:
    """Return the edited intent, if it was, and a line for each other edit."""
    head = min(written, key=lambda each: sum(each.get(key) != found.get(key) for key in {**each, **found}))
    ignored = tuple(_list_ignored(found, head))
    given = found.get("intent")
    if given is None or given == head.get("intent"):
        return None, ignored
    intent = parse(Intent, given, f"{source}: intent")
    return fit(Intent, {**head.get("intent", {}), **given}), (
        *ignored,
        *_list_removed_keys(given, to_builtins(intent)),
    )


def _list_removed_keys(given: dict[str, Any], intent: dict[str, Any]) -> Iterator[str]:
    for key in intent:
        if key not in given:
            yield f"{STATE}: intent.{key} was removed by hand; it stays as it was"


def _list_ignored(found: dict[str, Any], head: dict[str, Any]) -> Iterator[str]:
    for key, value in head.items():
        if key not in found:
            yield f"{STATE}: {key} was removed by hand; it stays {_short(value)}"
        elif found[key] != value and key != "intent":
            yield f"{STATE}: {key} was edited by hand to {_short(found[key])}; it stays {_short(value)}"
    for key, value in found.items():
        if key not in FRONTMATTER_KEYS:
            name = to_one_line(str(key), 60)
            yield f"{STATE}: {name} is none of its keys and has no effect: {_short(value)}"


def _short(value: object) -> str:
    return to_one_line(encode(value).decode(), 100)


def _find_edited_notes(body: str, notes: str, generated: str, source: str) -> str | None:
    """Return the person's text where it is not what was kept before; lines put into the log are taken out."""
    lines = body.splitlines()
    then = generated.splitlines()
    headings = {LOG.strip(), then[0]}
    heading = next((place for place, line in enumerate(lines) if line in headings), len(lines))
    own, logged = lines[:heading], lines[heading:]
    if own and own[0] == NOTES.strip():
        own = own[1:]
    kept = notes.splitlines()
    added = [line for line in _find_added_lines(then, logged) if line.strip() and line not in kept]
    fresh = "\n".join((*(own if heading and (own or not kept) else kept), *added)).strip("\n")
    if fresh == notes:
        return None
    if len(fresh) > _MAX_NOTES:
        problem = f"the text of your own has {len(fresh):,} characters; the limit is {_MAX_NOTES:,}"
        raise InvalidFile(source, problem, hint="keep it in a file of its own")
    return fresh


def _find_added_lines(then: list[str], now: list[str]) -> Iterator[str]:
    """Yield the lines that were put in."""
    if then[: len(now)] == now:
        return
    for kind, _, _, start, end in difflib.SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
        if kind in ("insert", "replace"):
            yield from now[start:end]
