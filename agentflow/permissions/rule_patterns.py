"""What the pattern of a permission rule is about: commands, paths, and tools by a glob."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from agentflow.permissions.shell_command import UNKNOWN_TEXT, ShellScript, ShellWord, TooComplex, join_words
from agentflow.permissions.wrappers import (
    INTERPRETERS,
    is_reading_program,
    list_possible_commands,
    name_program,
    unwrap_command,
)
from agentflow.workspace.globs import compile_glob


def is_on_host(pattern: str, address: str) -> bool:
    """Tell whether a pattern such as `domain:example.org` names the host of an address."""
    if not pattern.startswith("domain:"):
        return False
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # an address that cannot be read, which no tool asks
        return False
    return fnmatchcase(host.lower().rstrip("."), pattern.removeprefix("domain:").lower())


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return what fully matches the commands of a pattern."""
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    prefix, boundary = (wanted[:-2], r"(?:\ .*)?") if wanted.endswith(" *") else (wanted, "")
    body = ".*".join(re.escape(piece) for piece in re.split(r"\*+", prefix))
    return re.compile(body + boundary, re.DOTALL)


def may_match(pattern: str, text: str) -> bool:
    """Tell whether a pattern may be about a text, UNKNOWN in it being any text at all."""
    if UNKNOWN_TEXT not in text:
        return compile_pattern(pattern).fullmatch(text) is not None
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    forms = (wanted, wanted[:-2]) if wanted.endswith(" *") else (wanted,)
    return any(_overlap(form, text) for form in forms)


def _overlap(pattern: str, text: str) -> bool:
    """Tell whether two texts with wildcards, `*` and UNKNOWN, have a text in common."""
    reached = _spread({0}, pattern)
    for character in text:
        if character == UNKNOWN_TEXT:
            reached = set(range(min(reached), len(pattern) + 1)) if reached else reached
        else:
            stepped = {
                at + (pattern[at] != "*") for at in reached if pattern[at : at + 1] in ("*", character)
            }
            reached = _spread(stepped, pattern)
    return len(pattern) in reached


def _spread(reached: set[int], pattern: str) -> set[int]:
    """Add the places that are reached because a `*` may stand for nothing."""
    for at in sorted(reached):
        while pattern[at : at + 1] == "*":
            at += 1  # noqa: PLW2901  # walks on from each place
            reached = {*reached, at}
    return reached


def is_about_command(pattern: str, script: ShellScript) -> bool:
    """Tell whether a pattern is about any part of a command, however it is written."""
    bare = _by_basename(pattern)
    texts = {script.source, *(simple.source for simple in script.commands)}
    return (
        any(may_match(pattern, text) for text in texts)
        or any(
            may_match(pattern, text) or may_match(bare, text)
            for simple in script.commands
            for words in list_possible_commands(simple)
            if words
            for text in _spellings(words)
        )
        or any(_names(bare, code) for code in _codes(script))
    )


def _codes(script: ShellScript) -> Iterator[str]:
    """Yield the code that interpreters run, as far as it stands in a command."""
    for simple in script.commands:
        if not INTERPRETERS.fullmatch(name_program(simple.words)):
            continue
        if is_reading_program(simple):
            yield script.document or script.source
        else:
            yield from (word.text for word in simple.words[2:3])


def _names(pattern: str, code: str) -> bool:
    """Tell whether code names every word of a pattern, as it must to run such a command."""
    wanted = re.findall(r"[\w.+-]+", pattern.partition(":")[0])
    return bool(wanted) and set(wanted) <= set(re.findall(r"[\w.+-]+", code))


def may_be_about_command(pattern: str, command: str) -> bool:
    """Tell whether a pattern may be about a command; about one that cannot be judged it may."""
    try:
        return is_about_command(pattern, unwrap_command(command))
    except TooComplex:
        return True


def _spellings(words: tuple[ShellWord, ...]) -> Iterator[str]:
    named = (ShellWord(text=name_program(words)), *words[1:])
    for form in (words, named):
        yield join_words(form)
        yield " ".join(word.text for word in form)


def _by_basename(pattern: str) -> str:
    program, space, rest = pattern.partition(" ")
    return f"{program.rpartition('/')[2]}{space}{rest}"


def is_about_path(pattern: str, path: str, root: Path, source: str, *, widely: bool) -> bool:
    """Tell whether a pattern is about a path, as given or with links followed.

    `widely`, for rules that take something away: a pattern without an anchor counts at any depth, a folder
    for all that lies in it, and letters in either case.
    """
    absolute = root / Path(path).expanduser()
    candidates = {Path(*_normal(absolute)), absolute.resolve()}
    return any(_fits(pattern, candidate, root, source, widely=widely) for candidate in candidates)


def _normal(path: Path) -> Iterator[str]:
    """Yield the parts of a path, `..` taken back, links not followed."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        else:
            parts.append(part)
    yield from parts


def _fits(pattern: str, path: Path, root: Path, source: str, *, widely: bool) -> bool:
    anchor, glob = _find_anchor(pattern, root, source)
    places = (anchor, anchor.resolve())
    inside = next((path.relative_to(each).as_posix() for each in places if path.is_relative_to(each)), None)
    if inside is None:
        return False
    is_floating = widely and not pattern.startswith(("/", "~/", "./"))
    forms = [glob, *([f"**/{glob}"] if is_floating else ())]
    if widely:
        forms += [f"{form.rstrip('/')}/**" for form in forms]
    flags = re.IGNORECASE if widely else 0
    return any(re.compile(compile_glob(form).pattern, re.DOTALL | flags).fullmatch(inside) for form in forms)


def _find_anchor(pattern: str, root: Path, source: str) -> tuple[Path, str]:
    """Return the folder that a pattern begins at, and the rest of it."""
    if pattern.startswith("//"):
        return Path("/"), f"/{pattern.lstrip('/')}"
    if pattern.startswith("~/"):
        return Path.home(), pattern[1:]
    if pattern.startswith("/"):
        beside = Path(source).parent
        return (root if not source or beside == root / ".claude" else beside), pattern
    return root, pattern.removeprefix("./") if "/" in pattern.removeprefix("./") else pattern
