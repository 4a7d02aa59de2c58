"""A folder and a file that somebody swaps for links to the outside all the time."""

import shutil
import threading
from contextlib import suppress
from pathlib import Path

from agentflow.core.errors import ToolError
from agentflow.workspace.path_guard import PathGuard

SECRET = b"outside"


def attacked(place: Path, rounds: int) -> int:
    """Read, write and look into paths that are being swapped; return how many calls came through."""
    root, outside = place / "repository", place / "outside"
    for folder in (root / "d", outside):
        folder.mkdir(parents=True)
    (outside / "f").write_bytes(SECRET)
    (root / "d/f").write_bytes(b"inside")
    fence, over = PathGuard(root), threading.Event()
    swapping = threading.Thread(target=_swap, args=(root, outside, over))
    swapping.start()
    try:
        done = sum(_one_round(fence) for _ in range(rounds))
    finally:
        over.set()
        swapping.join()
    assert (outside / "f").read_bytes() == SECRET
    assert [entry.name for entry in outside.iterdir()] == ["f"]
    return done


def _one_round(fence: PathGuard) -> int:
    done = 0
    try:
        assert fence.read("d/f") != SECRET
        done += 1
    except ToolError:
        pass
    assert fence.peek("d/f") != SECRET
    for name in ("d/f", "d/new"):
        try:
            fence.write(name, b"written")
            done += 1
        except ToolError:
            pass
    return done


def _swap(root: Path, outside: Path, over: threading.Event) -> None:
    while not over.is_set():
        try:
            _swap_once(root, outside)
        except OSError:
            pass  # the other side made something in between, as it may
        for name in ("link", "plain"):
            (root / name).unlink(missing_ok=True)
        if (root / "d").is_symlink():
            (root / "d").unlink()
        if (root / "away").exists():
            shutil.rmtree(root / "d", ignore_errors=True)
            with suppress(OSError):
                (root / "away").rename(root / "d")


def _swap_once(root: Path, outside: Path) -> None:
    """Let a folder, then a file in it, be a link to the outside for a moment."""
    (root / "d").rename(root / "away")
    (root / "d").symlink_to(outside)
    (root / "d").unlink()
    (root / "away").rename(root / "d")
    (root / "link").symlink_to(outside / "f")
    (root / "link").rename(root / "d/f")
    (root / "plain").write_bytes(b"inside")
    (root / "plain").rename(root / "d/f")
