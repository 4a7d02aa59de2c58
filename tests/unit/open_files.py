import os
from pathlib import Path


def open_files(folder: Path) -> list[str]:
    """What this process holds open below a folder, sorted.

    A count of all descriptors fails where the garbage collector closes one of an earlier test.
    """
    paths = []
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208  # numbers, not files
        try:
            paths.append(os.readlink(f"/proc/self/fd/{number}"))  # noqa: PTH115
        except FileNotFoundError:  # the descriptor that listed them
            continue
    return sorted(path for path in paths if Path(path).is_relative_to(folder))
