"""The entry point: answers --version at once, else runs the command and leaves quickly."""

import gc
import io
import os
import sys

from agentflow import __version__

_STDERR = 2
_NEW_OBJECTS = 200_000
"""Allocations between two garbage collections; Python's 700 cost a tenth of the start and free nothing."""


def main() -> None:
    """Run the command line and exit with the code of CONTRACT section 2."""
    _open_closed()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # what a person types or pipes may be no UTF-8
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        raise SystemExit(_print(f"agentflow {__version__}\n"))
    from agentflow.cli.commands import run_command  # so that --version stays free of every import

    raise SystemExit(run_command(arguments))


def command() -> None:
    """Run as the installed command, and exit without the slow shutdown of the interpreter."""
    gc.set_threshold(_NEW_OBJECTS)
    try:
        main()
    except SystemExit as ended:
        for flush in (sys.stdout.flush, sys.stderr.flush):
            try:
                flush()
            except OSError:
                pass  # nobody reads it any more, or its disk is full
        os._exit(ended.code if isinstance(ended.code, int) else 1)


def _open_closed() -> None:
    """Connect closed standard streams to the null device, so that no other file gets their descriptor."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
