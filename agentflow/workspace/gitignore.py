"""Our files stay out of git: the managed block in an ignore file."""

import os
from pathlib import Path

from agentflow.frontmatter import write_atomic
from agentflow.workspace.git import Git

START = "# >>> agentflow managed >>>"
END = "# <<< agentflow managed <<<"
PATTERNS = (".claude/agentflow/", ".claude/*.local.*")
OPT_OUT = "AGENTFLOW_NO_GITIGNORE"


def insert_block(text: str) -> str:
    """Return an ignore file's text with our block in it, once, and everything else as it was.

    A block without its end, or an end without a start, is left alone: somebody else's lines may follow.
    """
    starts, ends = text.count(START), text.count(END)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join((START, *PATTERNS, END))
    if starts == ends == 0:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{block}{newline}"
    if starts != 1 or ends != 1 or text.index(START) > text.index(END):
        return text
    before, rest = text.split(START)
    return before + block + rest.split(END)[1]


def write_shared_block(git: Git) -> str:
    """Write our block to the repository's .gitignore, for everybody; return what became of that."""
    shared = git.root / ".gitignore"
    if os.environ.get(OPT_OUT):
        return "off"
    if shared.is_symlink() or (shared.exists() and not shared.is_file()):
        return "link"
    before = _text(shared) if shared.is_file() else ""
    after = insert_block(before)
    if after != before:
        mode = shared.stat().st_mode & 0o777 if shared.exists() else 0o644
        write_atomic(shared, after.encode("utf-8", "surrogateescape"), mode=mode)
        return "written"
    is_whole = before.count(START) == before.count(END) == 1 and before.index(START) < before.index(END)
    return "has_block" if is_whole else "damaged"


def keep_out_of_git(git: Git) -> None:
    """Write our block to git's own exclude file, unless the repository's .gitignore has it."""
    if os.environ.get(OPT_OUT):
        return
    shared = git.root / ".gitignore"
    if shared.is_file() and START in _text(shared):
        return
    exclude = git.exclude
    if exclude.parent.is_symlink() or not any(
        exclude.parent.resolve().is_relative_to(folder) for folder in git.folders
    ):
        return  # a link leads there; what it belongs to is not ours
    before = _text(exclude) if exclude.is_file() else ""
    after = insert_block(before)
    if after != before:
        exclude.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(exclude, after.encode("utf-8", "surrogateescape"), mode=0o644)


def _text(path: Path) -> str:
    """Return a file's text with its line ends, whatever its bytes."""
    return path.read_bytes().decode("utf-8", "surrogateescape")
