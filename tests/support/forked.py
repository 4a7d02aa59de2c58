"""The installed command without the start of Python: each one is a fork of a process with the package loaded.

A fork has its own arguments, environment, folder and streams, and calls what the installed script calls. What
depends on the start of Python (its own variables, the locale, a terminal, another user) is not for it:
`can_run` says so, and the caller starts the command itself.
"""

import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

import agentflow
from agentflow.checks.dependencies import load_known
from agentflow.cli.app import command as run_installed
from agentflow.core.evidence import Surface
from agentflow.core.record import Record
from agentflow.core.regex import LateRegex
from agentflow.core.routing import Routing
from agentflow.languages.grammars import SYMBOL_QUERY, parse_source
from agentflow.model.tiers import load_price_lists
from agentflow.routing.classify import classify
from agentflow.routing.clauses import load_table
from agentflow.runners.calls import find_runner
from agentflow.runners.table import find_named_runners
from agentflow.verdict.diff.tampering import TextDiff, find_tampering
from agentflow.verdict.surface import find_kind

_MOST = 60_000
"""Bytes that fit a pipe and a message."""
_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC")
_LEFT_OUT = (
    *("__main__", "_bundled", "batch.cluster", "checks.reading_hook", "model.sdk", "workspace.commit"),
    *("mcp", "cli.line_editor"),
)
"""What runs on import, is run elsewhere, or is seldom used and imports a large library."""
_LOADED_LATE = ("anyio._backends._asyncio", "encodings.utf_8_sig", "typer._click.decorators")


def can_run(words: Sequence[str], env: Mapping[str, str], stdin: str) -> bool:
    """Return whether a fork does what a start of the command would."""
    asked = sum(len(word) for word in (*words, *env.values()))
    return asked < _MOST and len(stdin) < _MOST // 4 and not any(name.startswith(_START) for name in env)


class Forks:
    """The client's end: each call of `run` is one forked command."""

    def __init__(self, command: Path, language: str) -> None:
        """Start the process that forks; it ends when this one does."""
        self._command = command
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            (sys.executable, "-P", __file__, str(command), str(theirs.fileno())),
            env={"LANG": language} if language else {},
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        theirs.close()

    def run(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdin: str,
        timeout: float,
        also: Sequence[str],
    ) -> "subprocess.CompletedProcess[str]":
        """Run the command as `subprocess.run` does, with its output as text and more modules loaded."""
        asked = json.dumps({"also": [*also], "words": words, "cwd": str(cwd), "env": dict(env)}).encode()
        pipes = [os.pipe() for _ in range(4)]
        theirs = (pipes[0][0], *(pipe[1] for pipe in pipes[1:]))
        socket.send_fds(self._socket, [asked], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        with contextlib.suppress(BrokenPipeError), os.fdopen(pipes[0][1], "wb") as feed:
            feed.write(stdin.encode())
        out, err, ended = _collect([pipe[0] for pipe in pipes[1:]], [str(self._command), *words], timeout)
        code = int(ended.split()[1])
        return subprocess.CompletedProcess([str(self._command), *words], code, _to_text(out), _to_text(err))


@functools.cache
def forks(command: Path, language: str) -> Forks:
    """Return the process that forks, started when it is first asked for."""
    return Forks(command, language)


def _collect(pipes: Sequence[int], words: Sequence[str], timeout: float) -> list[bytes]:
    """Read pipes to their ends; in time, or the command is killed."""
    found = dict.fromkeys(pipes, b"")
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(end - time.monotonic())
            if time.monotonic() > end:
                os.kill(int(found[pipes[-1]].split()[0]), signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout, *(found[pipe] for pipe in pipes[:2]))
            for pipe in (key.fd for key, _ in ready):
                read = os.read(pipe, 1 << 16)
                found[pipe] += read
                if not read:
                    waiting.unregister(pipe)
                    os.close(pipe)
    return [found[pipe] for pipe in pipes]


def _to_text(output: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(output), encoding="utf-8").read()


def serve(command: str, ours: socket.socket) -> None:
    """Fork for each request until nobody can ask any more."""
    _load()
    sys.path[0] = str(Path(command).parent)
    ends: dict[int, int] = {}
    woken, waker = os.pipe2(os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # what counts is that it writes to the pipe
    signal.set_wakeup_fd(waker)
    while True:
        ready, _, _ = select.select((ours.fileno(), woken), (), ())
        if woken in ready:
            os.read(woken, _MOST)
            _reap(ends)
        if ours.fileno() in ready and not _accept(command, ours, ends, (woken, waker)):
            return


def _accept(command: str, ours: socket.socket, ends: dict[int, int], own: tuple[int, int]) -> bool:
    """Fork a command, write its number and keep where its end is written to; false when nobody asks."""
    asked, descriptors, _, _ = socket.recv_fds(ours, 2 * _MOST, 4)
    if not asked:
        return False
    request = json.loads(asked)
    _load_also(request.pop("also"))
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        os.closerange(3, max(ours.detach(), *own, *descriptors, *ends.values()) + 1)
        _be_command(command, **request)
    for descriptor in descriptors[:3]:
        os.close(descriptor)
    os.write(descriptors[3], f"{child} ".encode())
    ends[child] = descriptors[3]
    return True


def _reap(ends: dict[int, int]) -> None:
    """Write how commands ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            descriptor = ends.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(descriptor, f"{os.waitstatus_to_exitcode(ended[1])}".encode())
            os.close(descriptor)


def _load() -> None:
    """Import the package and compile what it compiles at first use, so that no command has to."""
    for module in pkgutil.walk_packages(agentflow.__path__, "agentflow."):
        if not module.name.removeprefix("agentflow.").startswith(_LEFT_OUT):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    for name in _LOADED_LATE:
        importlib.import_module(name)
    _read_shipped()
    for found in gc.get_objects():
        if isinstance(found, LateRegex):
            for method in ("search", "match", "fullmatch", "sub", "split", "findall", "finditer"):
                getattr(found, method)
        elif isinstance(found, type) and issubclass(found, Record):
            with contextlib.suppress(TypeError, NameError):  # nothing is decoded as one of these
                msgspec.json.Decoder(found)
    gc.collect()
    gc.freeze()  # else each collection of a command copies every page of this process


def _read_shipped() -> None:
    """Ask once for what most commands ask for and read of the package alone: tables, queries, patterns."""
    load_known()
    load_price_lists()
    find_runner("make test")
    find_named_runners("make test")
    classify("let add return the sum of a.py", load_table(Routing()))
    for path in ("a.py", "test_a.py", "a.sh"):
        find_tampering([TextDiff(path=path, before="", after="a\n", kind=find_kind(path, Surface()))])
        parse_source(path, "", SYMBOL_QUERY)


def _load_also(modules: Sequence[str]) -> None:
    """Import what only some commands need, when the first of them comes."""
    new = [name for name in modules if name not in sys.modules]
    for name in new:
        importlib.import_module(name)
    if new:
        gc.collect()
        gc.freeze()


def _be_command(command: str, words: list[str], cwd: str, env: dict[str, str]) -> NoReturn:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv[:] = [command, *words]
    run_installed()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
