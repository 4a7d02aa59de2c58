"""Models that react: each looks at a request as a model would, and says what it does next.

A policy is a list of steps for a role. A step has forms, the first of which is tried first; one that is
refused, or that the shell does not know, is followed by the next. What the request shows already is not
asked for again.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.tasks import Edit, Task

Call = tuple[str, dict[str, Any]]
Form = tuple[Call, ...]
Step = tuple[Form, ...]
_EVIDENCE = re.compile(r"(?m)^- \w+: green,.*?evidence (ev-\d{4,})")
_PROOF = ("  failed before, passes now: ", "  new, passes: ")
_OPEN = (": red, ", ": not run ", "  passed before, not now: ", " more characters left out)")
"""What makes a careful verifier look further."""
_WRONG = "The diff does not do what was asked."
_UNKNOWN = ("command not found", "No module named pytest")


class Seen(NamedTuple):
    """A request as a model reads it."""

    role: str
    """Empty for a loop without roles."""
    text: str
    """All that was said to it, results left out."""
    made: Mapping[str, bool]
    """Its calls so far, as JSON, and whether the newest of each came to something."""

    def shows(self, lines: str) -> bool:
        """Return whether each line of a text stands in what was said."""
        return all(line.strip() in self.text for line in lines.splitlines())


def seen(role: str, raw: bytes) -> Seen:
    """Return what a request shows."""
    body = json.loads(raw)
    blocks = [block for message in body["messages"] for block in message["content"]]
    results = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
    made = {
        key((block["name"], block["input"])): _came(results.get(block["id"], {}))
        for block in blocks
        if block["type"] == "tool_use"
    }
    said = [block["text"] for block in (*body["system"], *blocks) if block["type"] == "text"]
    return Seen(role, "\n".join(said), made)


def key(call: Call) -> str:
    return json.dumps(call)


def _came(result: dict[str, Any]) -> bool:
    said = json.dumps(result.get("content", ""))
    return not result.get("is_error") and not any(words in said for words in _UNKNOWN)


def due(steps: Sequence[Step], made: Mapping[str, bool]) -> Form:
    """Return the calls of the first step that is not done; none if all are, or were refused in each form."""
    return next((form for step in steps if (form := _open(step, made))), ())


def _open(step: Step, made: Mapping[str, bool]) -> Form:
    for form in step:
        if any(key(call) not in made for call in form):
            return tuple(call for call in form if not made.get(key(call)))
        if all(made[key(call)] for call in form):
            return ()
    return ()


def bash(command: str) -> Call:
    return "Bash", {"command": command}


def competent(task: Task, now: Seen) -> tuple[Step, ...]:
    """Look where it does not know yet, read what it changes, edit, run the narrow test."""
    match now.role:
        case "":
            return _plainly(task)
        case "explorer":
            return (_grep(task),), (_reads(task.read),)
        case "implementer":
            unread = _unread(task, now)
            is_known = all(path in now.text for path in task.changed if path in task.files)
            look = () if is_known else ((_grep(task),),)
            return (*look, (_reads(unread),), *_edits(task), _tests(task.narrow))
        case "reviewer":
            return ((_reads([path for path in task.changed if path in task.files][:2]) + _grep(task),),)
        case "verifier":
            return _doubts(task, now, _tests(task.narrow))
        case _:
            return ()


def mistaken(task: Task, now: Seen) -> tuple[Step, ...]:
    """Work as the competent one, but get the change wrong; who judges it knows better."""
    is_working = now.role in {"", "implementer"}
    return competent(task.mistaken if is_working else task, now)


def hasty(task: Task, now: Seen) -> tuple[Step, ...]:
    """Edit without reading, and read only if that is refused; run nothing."""
    if now.role == "":
        return tuple(map(_typed, _by_file(task)))
    if now.role != "implementer":
        return ()
    return tuple((_edited(edits), (*_reads([edits[0].file]), *_edited(edits))) for edits in _by_file(task))


def lazy(_task: Task, _now: Seen) -> tuple[Step, ...]:
    """Do nothing, and say that all is done."""
    return ()


def wordy(task: Task, now: Seen) -> tuple[Step, ...]:
    """Do all by the shell: pipes, loops, heredocs, commands inside of commands."""
    unread = _unread(task, now)
    find = f"find . -type f -not -path './.*' | sort | xargs grep -nE '{task.look}' 2>/dev/null | head -n 40"
    shown = " ".join(unread)
    loop = f'for file in {shown}; do echo "== $file"; sed -n \'1,200p\' "$file"; done'
    tests = f"bash -c '{task.narrow} 2>&1 | tail -n 20'"
    match now.role:
        case "" | "implementer":
            look = () if now.role and not unread else (((bash(find),),),)
            read: tuple[Step, ...] = (((bash(loop),),),) if unread else ()
            ends: tuple[Step, ...] = () if now.role else _checks(task)
            return (*look, *read, *map(_typed, _by_file(task)), *_some(tests, task), *ends)
        case "explorer":
            each = tuple(bash(f"cat {path} | sed -n '1,200p' | head -n 200") for path in task.read)
            return ((bash(find),),), (each,)
        case "reviewer":
            return (
                (
                    (
                        bash("git diff | head -n 200"),
                        bash("git status --short && git log --oneline | head -n 3"),
                    ),
                ),
            )
        case "verifier":
            narrow = _some(f"cd . && {task.narrow} 2>&1 | tail -n 20", task)
            return _doubts(task, now, *narrow)
        case _:
            return ()


MISTAKEN = "mistaken"
Policy = Callable[[Task, Seen], tuple[Step, ...]]
POLICIES: Mapping[str, Policy] = MappingProxyType(
    {"competent": competent, "wordy": wordy, "hasty": hasty, "lazy": lazy, MISTAKEN: mistaken}
)


def _unread(task: Task, now: Seen) -> tuple[str, ...]:
    """Return what has to be looked at still: of a file that is not changed some lines are enough."""
    known = {path for path in task.read if path not in task.changed and f"### {path}" in now.text}
    return tuple(path for path in task.read if path not in known and not now.shows(task.files[path]))


def _doubts(task: Task, now: Seen, *narrow: Step) -> tuple[Step, ...]:
    """Return what a careful verifier looks up that its brief does not answer."""
    if _is_clear(task, now):
        return ()
    if task.kind == "refactoring" and "- tests: green" in _after(now):
        return (_tests(task.edge),)  # whether the old name was left somewhere; the tests ran already
    return (*narrow, _tests(task.edge))


def _is_clear(task: Task, now: Seen) -> bool:
    """Return whether a verifier's brief answers all that a careful reader of it asks."""
    after = _after(now)
    is_green = "- tests: green" in after and not any(words in after for words in _OPEN)
    return is_green and any(words in after for words in _PROOF) and _does(task, now)


def _after(now: Seen) -> str:
    """Return what a brief says of the checks after the change."""
    return now.text.partition("\n## Checks after the change")[2]


def _does(task: Task, now: Seen) -> bool:
    """Return whether a diff is the right change, as one sees who understands the task."""
    diff = now.text.partition("\n## Change\n")[2]
    shown = [edit for edit in task.change if "test" not in edit.file]  # a verifier reads those later
    lines = (line for edit in shown for line in f"{edit.new}{edit.content}".splitlines())
    old = {line for edit in task.change for line in edit.old.splitlines()}
    added = "\n".join(line[1:] for line in diff.splitlines() if line.startswith("+"))
    return all(line in added for line in lines if line.strip() and line not in old)


def _plainly(task: Task) -> tuple[Step, ...]:
    """Return what a good model does that has nothing but a shell."""
    look = bash(
        f"git status --short; git ls-files; grep -rnE '{task.look}' --exclude-dir=.venv --exclude-dir=.git ."
    )
    read = bash("cat " + " ".join(task.read))
    red = _tests(task.narrow) if task.before else ()
    return (
        ((look,),),
        ((read,),),
        *([red] if red else []),
        *map(_typed, _by_file(task)),
        _tests(task.narrow),
        *_checks(task),
    )


def _checks(task: Task) -> tuple[Step, ...]:
    """Return the last look of somebody for whom nobody else looks: all tests, and the change."""
    return (((bash(f"{task.check} && git diff --stat"),),),) if task.change else ()


def _grep(task: Task) -> Form:
    return (("Grep", {"pattern": task.look, "output_mode": "content", "-n": True}),)


def _reads(paths: Sequence[str]) -> Form:
    return tuple(("Read", {"file_path": path}) for path in paths)


def _tests(command: str) -> Step:
    """Return a command, and how it is said where the first word is not found or not allowed."""
    if not command:
        return ()
    return (bash(command),), (bash(f".venv/bin/{command}"),)


def _some(command: str, task: Task) -> tuple[Step, ...]:
    return (((bash(command),),),) if task.narrow else ()


def _by_file(task: Task) -> Iterator[tuple[Edit, ...]]:
    for path in task.changed:
        yield tuple(edit for edit in task.change if edit.file == path)


def _edits(task: Task) -> Iterator[Step]:
    """Yield a step for each file: one turn changes one file."""
    for edits in _by_file(task):
        yield (_edited(edits),)


def _edited(edits: Sequence[Edit]) -> Form:
    return tuple(_edit(edit) for edit in edits)


def _edit(edit: Edit) -> Call:
    if edit.content:
        return "Write", {"file_path": edit.file, "content": edit.content}
    given = {"file_path": edit.file, "old_string": edit.old, "new_string": edit.new}
    return "Edit", {**given, **({"replace_all": True} if edit.all else {})}


def _typed(edits: Sequence[Edit]) -> Step:
    """Return the same as one command with a heredoc."""
    if edits[0].content:
        return ((bash(f"cat > {edits[0].file} <<'EOF'\n{edits[0].content}EOF"),),)
    swaps = "".join(f"text = text.replace({edit.old!r}, {edit.new!r})\n" for edit in edits)
    path = edits[0].file
    begin = f"from pathlib import Path\n\nplace = Path({path!r})\ntext = place.read_text()\n"
    return ((bash(f"python3 - <<'EOF'\n{begin}{swaps}place.write_text(text)\nEOF"),),)


def submission(task: Task, now: Seen) -> tuple[Call, ...]:
    """Return the call by which a role ends; a loop without roles ends with none."""
    match now.role:
        case "explorer":
            return (("SubmitFindings", {"summary": task.answer or "The place is found.", **_findings(task)}),)
        case "planner":
            steps = [{"title": f"Change {path}", "files": [path]} for path in task.changed]
            accepted = {"acceptance": [f"`{task.narrow}` passes"], "risks": []}
            return (("SubmitPlan", {"summary": "A change in place.", "steps": steps, **accepted}),)
        case "implementer":
            return (("SubmitChange", {"summary": "Done as asked.", "files": list(task.changed)}),)
        case "reviewer":
            return (("SubmitReview", {"verdict": "APPROVED", "issues": []}),)
        case "verifier":
            newest = sorted(set(_EVIDENCE.findall(now.text)))[-1:]
            if not _does(task, now):
                return (("SubmitVerdict", {"verdict": "FAILED", "evidence": newest, "reasons": [_WRONG]}),)
            reasons = ["The checks pass, and the diff does what was asked."]
            return (("SubmitVerdict", {"verdict": "VERIFIED", "evidence": newest, "reasons": reasons}),)
        case _:
            return ()


def _findings(task: Task) -> dict[str, Any]:
    places = ((edit.file, edit.old.split("\n")[0]) for edit in task.change if edit.old)
    cited = [(path, _line(task.files[path], text)) for path, text in places] or [
        (task.read[0], _line(task.files[task.read[0]], task.look.partition("|")[0]))
    ]
    claims = [
        {"claim": "This is the place.", "path": path, "line": line} for path, line in dict.fromkeys(cited)
    ]
    return {"findings": claims, "open_questions": []}


def _line(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)
