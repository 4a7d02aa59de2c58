"""Bringing the index up to date: at once where little is stale, else by a process for each core."""

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import IO

from agentflow.process import capture
from agentflow.symbols.index import SymbolIndex, make_scanner, open_index
from agentflow.symbols.rank import save_ranks

_SOON_BYTES = 1_000_000
"""What is read within half a second."""
_SOON_FILES = 1_000
"""A repository with more is ranked by a process of its own."""
_MOST_PROCESSES = 8
_AT_ONCE = 50
_NICE = 5
_TICK = 0.1


def read_stale_files(index: SymbolIndex, paths: Iterable[str]) -> bool:
    """Read the files that are not in the index as they are; return False, with nothing read, for too many."""
    stale, size = index.find_stale(paths)
    if size > _SOON_BYTES:
        return False
    index.save(map(make_scanner(index.root, index.is_known), stale))
    return True


def build(
    database: Path, root: Path, paths: Iterable[str], seconds: float, cancelled: Callable[[], bool]
) -> bool:
    """Bring index and ranks up to date; return whether that was done in time."""
    given, until = tuple(paths), time.monotonic() + seconds
    with open_index(database, root) as index:
        stale, size = index.find_stale(given)
        if index.is_ranked() and not stale:
            return True
        if size <= _SOON_BYTES and index.count_files() + len(stale) <= _SOON_FILES:
            read_stale_files(index, given)
            save_ranks(index)
            return True
    with database.with_suffix(".lock").open("w") as lock:
        while not _take(lock):  # another process does the same
            if cancelled() or time.monotonic() > until:
                return False
            time.sleep(_TICK)
        with open_index(database, root) as index:
            stale, _ = index.find_stale(given)
        count = min(os.cpu_count() or 1, _MOST_PROCESSES)
        shares = [share for number in range(count) if (share := stale[number::count])]
        argv = (sys.executable, "-P", "-m", __name__, str(database), str(root))
        run = _Processes(argv, database.parent, until, cancelled)
        return run.wait_for(shares) and run.wait_for([[]])


def _take(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Processes:
    """Starts the program below on shares of the files, and ends it with its caller."""

    def __init__(
        self, argv: tuple[str, ...], folder: Path, until: float, cancelled: Callable[[], bool]
    ) -> None:
        self._argv, self._folder, self._until, self._cancelled = argv, folder, until, cancelled

    def wait_for(self, shares: list[list[str]]) -> bool:
        """Return whether all ended well in time."""
        stop, left = Event(), max(self._until - time.monotonic(), _TICK)
        with ThreadPoolExecutor(max(len(shares), 1)) as pool:
            begun = [
                pool.submit(
                    capture,
                    self._argv,
                    cwd=self._folder,
                    stdin=os.fsencode("\0".join(share)),
                    timeout=left,
                    cancelled=stop.is_set,
                )
                for share in shares
            ]
            try:
                while wait(begun, _TICK).not_done and not self._cancelled():
                    pass
            finally:
                stop.set()
        return all(each.exception() is None and each.result().returncode == 0 for each in begun)


def build_share(database: Path, root: Path, paths: list[str]) -> None:
    """Read files into the index; without any, rank those that it has."""
    os.nice(_NICE)
    parent = os.getppid()
    with open_index(database, root) as index:
        scan = make_scanner(root, index.is_known)
        for place in range(0, len(paths), _AT_ONCE):
            index.save([*map(scan, paths[place : place + _AT_ONCE])])
            if os.getppid() != parent:
                return  # nobody waits for it any more
        if not paths:
            save_ranks(index)
            index.drop_unused()


if __name__ == "__main__":
    given = os.fsdecode(sys.stdin.buffer.read())
    build_share(Path(sys.argv[1]), Path(sys.argv[2]), given.split("\0") if given else [])
