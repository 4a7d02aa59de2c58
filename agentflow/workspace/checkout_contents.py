"""What a checkout by git's own means lacks of the user's: the files of submodules, and what filters made."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agentflow.core.errors import AgentflowError, StateError
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.private_git import make_git_with_tree

_SUBMODULE = b"160000"


def fill_checkout(git: Git, commit: str, root: Path) -> tuple[str, ...]:
    """Lay the missing contents into another checkout of a commit; return the submodules that stay empty.

    No filter runs: where the user's file is the commit's, it is what the filter made of that.
    """
    git = switch_filters_off(git)
    for name in _list_filtered(git, commit):
        source, place = git.root / name, root / name
        if source.is_file() and place.is_file() and not (source.is_symlink() or place.is_symlink()):
            shutil.copyfile(source, place)
    return tuple(_fill_submodules(git, commit, root))


def _list_filtered(git: Git, commit: str) -> Iterator[str]:
    """Yield the files that a filter converts, and that are on disk as they are in a commit."""
    asked = git.call("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    words = git.call("check-attr", "-z", "--stdin", "filter", stdin=asked).split(b"\0")
    filtered = {path for path, said in zip(words[::3], words[2::3], strict=False) if said not in _UNFILTERED}
    if filtered:
        changed = {*git.call("diff-index", "-z", "--name-only", commit).split(b"\0")}
        yield from (os.fsdecode(path) for path in sorted(filtered - changed))


_UNFILTERED = (b"unspecified", b"unset")


def _fill_submodules(git: Git, commit: str, root: Path) -> Iterator[str]:
    listed = git.call("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    for line in listed:
        head, _, path = line.partition(b"\t")
        if not head.startswith(_SUBMODULE):
            continue
        name, wanted = os.fsdecode(path), head.split()[-1].decode()
        place = root / name
        if place.parent.resolve() == root.resolve() / Path(name).parent and not _is_filled(place):
            place.mkdir(exist_ok=True)
            yield from (f"{name}{below}" for below in _fill_submodule(git.root / name, wanted, place))


def _is_filled(place: Path) -> bool:
    return place.is_symlink() or not place.is_dir() or any(place.iterdir())


def _fill_submodule(source: Path, commit: str, place: Path) -> Iterator[str]:
    """Lay out a commit of a submodule; yield what stays empty below it, and nothing for itself."""
    with suppress(AgentflowError), make_scratch_folder() as folder:
        inner = open_repository(source)
        if inner.root == source.resolve():
            env = make_git_with_tree(inner.call, inner.source, commit, folder / "git", place)
            inner.call("checkout-index", "-a", "-f", "-q", env=env)
            yield from (f"/{name}" for name in fill_checkout(inner, commit, place))
            return
    yield ""


def switch_filters_off(git: Git) -> Git:
    """Return the repository with options without which git would run a filter that its own settings name."""
    try:
        said = git.call("config", "-z", "--name-only", "--show-scope", "--get-regexp", r"^filter\.")
    except StateError:
        return git  # there is none
    words = said.decode("utf-8", "surrogateescape").split("\0")
    names = (
        name for scope, name in zip(words[::2], words[1::2], strict=False) if scope in ("local", "worktree")
    )
    keys = ("clean=", "smudge=", "process=", "required=false")
    sections = dict.fromkeys(name.rpartition(".")[0] for name in names)
    off = (word for name in sections for key in keys for word in ("-c", f"{name}.{key}"))
    return git.replace(options=(*git.options, *off))
