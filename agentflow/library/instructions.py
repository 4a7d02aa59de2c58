"""A repository's instructions: CLAUDE.md, AGENTS.md, the files they import, and rules."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.ports import Workspace
from agentflow.core.regex import compile_glob, regex
from agentflow.core.task import Instruction
from agentflow.frontmatter import read_public
from agentflow.redact import redact_text

MAX_IN_PROMPT = 20_000
_MAX_FILES = 100
_MAX_HOPS = 4
"""How far imports lead, as in the public convention."""
_NAMES = ("CLAUDE.md", "AGENTS.md")
_NESTED = tuple(f"/{name}" for name in _NAMES)
_ROOT = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "CLAUDE.local.md")
_RULES = ".claude/rules"
_FENCED = regex(r"(?ms)(^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z))")
_COMMENT = regex(r"(?ms)^[ \t]*<!--.*?-->[ \t]*\n?")
_CODE = regex(r"(`+).+?\1", re.DOTALL)
_IMPORT = regex(r"(?<![\w@`/.-])@([\w./-]*\w)")


def load_instructions(
    workspace: Workspace, files: Iterable[str], learnings: Iterable[str] = ()
) -> tuple[Instruction, ...]:
    """Return the instructions at the root, of folders among `files`, the nearest last, and learnings."""
    known: dict[str, Instruction] = {}
    for path in _ROOT:
        _take(workspace, path, "", _MAX_HOPS, known)
    rules = workspace.root / _RULES
    for rule in sorted(rules.rglob("*.md")) if rules.resolve() == rules else ():  # none behind a link
        _take(workspace, rule.relative_to(workspace.root).as_posix(), "", _MAX_HOPS, known)
    nested = (path for path in files if path.endswith(_NESTED) and not path.startswith(".claude/"))
    places = [(path.count("/"), *path.rpartition("/")[::2]) for path in nested]
    for _, folder, name in sorted(places, key=lambda place: (*place[:2], _NAMES.index(place[2]))):
        _take(workspace, f"{folder}/{name}", folder, _MAX_HOPS, known)
    for path in learnings:
        _take(workspace, path, "", 0, known)
    return tuple(known.values())


def select_instructions(instructions: Iterable[Instruction], paths: Iterable[str]) -> tuple[Instruction, ...]:
    touched, found = tuple(paths), list[Instruction]()
    for each in instructions:
        below = [path for path in touched if not each.folder or path.startswith(f"{each.folder}/")]
        globs = [compile_glob(glob) for glob in each.globs]
        is_matched = any(not globs or any(glob.fullmatch(path) for glob in globs) for path in below)
        if is_matched or not (each.folder or globs):
            found.append(each)
    return tuple(found)


def describe_reach(one: Instruction) -> str:
    parts = (f"in {one.folder}/" if one.folder else "", f"named {', '.join(one.globs)}" if one.globs else "")
    said = " ".join(part for part in parts if part)
    return f"for files {said}" if said else ""


def _take(workspace: Workspace, path: str, folder: str, hops: int, known: dict[str, Instruction]) -> None:
    """Add a file with what it imports, each real file once; what cannot be read is left out."""
    try:
        name = workspace.to_relative(path)
        if name in known or len(known) >= _MAX_FILES:
            return
        raw = workspace.read(name)
    except ToolError:
        return
    if b"\0" in raw:
        return
    globs, text = _split_rule(path, redact_text(raw.decode("utf-8", "replace")).replace("\r\n", "\n"))
    if not text:
        return
    known[name] = Instruction(
        path=path, text=text[:MAX_IN_PROMPT], folder=folder, globs=globs, size=len(text)
    )
    for found in _imports(text) if hops else ():
        _take(workspace, str(PurePosixPath(path).parent / found), folder, hops - 1, known)


def _split_rule(path: str, raw: str) -> tuple[tuple[str, ...], str]:
    head: dict[str, Any] = {}
    body = raw
    if path.startswith(f"{_RULES}/"):
        try:
            head, body, _ = read_public(raw, path)
        except InvalidFile:
            body = raw  # no head, or none that can be read: it counts everywhere
    said = head.get("paths", ())
    globs = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    names = (part.strip() for glob in globs for part in str(glob).split(","))
    text = "".join(part if is_code else _COMMENT.sub("", part) for part, is_code in _parts(body))
    return tuple(name for name in names if name), text.strip()


def _imports(text: str) -> Iterator[str]:
    """Yield what a text imports; in code an `@` means something else."""
    for part, is_code in _parts(text):
        if not is_code:
            yield from (found[1] for found in _IMPORT.finditer(_CODE.sub("", part)))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    place = 0
    for found in _FENCED.finditer(text):
        yield text[place : found.start()], False
        yield found[0], True
        place = found.end()
    yield text[place:], False
