"""Started as `python driver.py SPEC.json` in a copy of a repository: watches the tests, or tries candidates.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library and the
tests' own runner. Several drivers share the candidates: each takes the next one that nobody has claimed, so
that once one has won, all before it have been claimed too.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_RED = ("failed", "error")
_TICK = 0.05
_CHUNK = 1 << 16


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:1] = [str(Path.cwd())] if spec["module"] else []
    sys.argv[1:] = []
    observe = runpy.run_path(str(Path(__file__).with_name("observe.py")))["observe"]
    if spec["candidates"]:
        search(spec, observe)
        return
    if "compare" in spec:
        compare = runpy.run_path(str(Path(__file__).with_name("compare.py")), run_name="compare")["compare"]
        seen = compare(spec, observe)
    else:
        seen = observe(spec, False)
    Path(spec["report"]).write_text(json.dumps(seen), encoding="utf-8")


def search(spec: dict[str, Any], observe: Callable[..., Any]) -> None:
    """Try candidates in order until one of them, here or in another driver, has made the tests green."""
    if spec["runner"] == "pytest":
        load_pytest()
    gc.freeze()  # what is loaded so far is never collected in a child
    state = signature()
    for index, candidate in enumerate(spec["candidates"]):
        if is_beaten(spec, len(spec["candidates"])):
            return
        if not claim(spec, index):
            continue
        apply(candidate)
        outcomes = attempt(spec, observe, index)
        mark(spec, "won" if is_green(outcomes, spec["before"]) else "lost", index)
        restore(spec["pristine"], state)


def load_pytest() -> None:
    """Let pytest and its plugins load all they use before the forks, but nothing of the code under test."""
    import pytest  # noqa: PLC0415  # only where the check is pytest

    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w", encoding="utf-8") as sink:
        warm = Path(folder, "test_warm.py")
        warm.write_text("def test_warm():\n    assert [1] == [2]\n", encoding="utf-8")
        alone = ["-q", "--noconftest", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            pytest.main([*alone, str(warm)])
    inside = str(Path.cwd()) + os.sep
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith((inside, folder)):
            del sys.modules[name]


def apply(candidate: dict[str, Any]) -> None:
    path = Path(candidate["path"])
    raw, mode = path.read_bytes(), path.stat().st_mode
    path.unlink()  # a read-only file can be replaced, not written
    write_anew(path, raw[: candidate["start"]] + candidate["text"].encode() + raw[candidate["end"] :], mode)


def attempt(spec: dict[str, Any], observe: Callable[..., Any], index: int) -> dict[str, str]:
    """Run the tests in a child of their own; nothing of it stays."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        run_child(spec, observe, writer)
    os.close(writer)
    answer = answer_of(reader, lambda: is_beaten(spec, index), time.monotonic() + spec["timeout"])
    os.close(reader)
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with contextlib.suppress(ValueError):
        return dict(json.loads(answer))
    return {}


def run_child(spec: dict[str, Any], observe: Callable[..., Any], writer: int) -> None:
    try:
        os.setpgid(0, 0)
        sink = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(sink, descriptor)
        answer = json.dumps(observe(spec, True)["outcomes"]).encode() + b"\n"
        while answer:
            answer = answer[os.write(writer, answer) :]
    finally:
        os._exit(0)


def answer_of(reader: int, is_vain: Callable[[], bool], deadline: float) -> bytes:
    """Read one line, until the time is over or nobody needs it any more."""
    answer = b""
    while not answer.endswith(b"\n") and time.monotonic() < deadline and not is_vain():
        if select.select([reader], [], [], _TICK)[0]:
            chunk = os.read(reader, _CHUNK)
            answer += chunk
            if not chunk:
                break
    return answer


def is_green(outcomes: dict[str, str], before: dict[str, str]) -> bool:
    """Say whether nothing is red, what passed still passes, and each test that failed now passes.

    A red file or class that could not even be loaded is gone once it loads.
    """
    passed = {test for test, outcome in outcomes.items() if outcome == "passed"}
    stood = {test for test, outcome in before.items() if outcome == "passed"}
    red_before = {test for test, outcome in before.items() if outcome in _RED and test in outcomes}
    is_red = any(outcome in _RED for outcome in outcomes.values())
    return not is_red and stood | red_before <= passed and len(passed) > len(stood)


def mark(spec: dict[str, Any], word: str, index: int) -> None:
    Path(spec["board"], f"{word}-{index}").touch()


def claim(spec: dict[str, Any], index: int) -> bool:
    try:
        with Path(spec["board"], f"claimed-{index}").open("x") as file:
            file.write(str(spec["number"]))
    except FileExistsError:
        return False
    return True


def is_beaten(spec: dict[str, Any], index: int) -> bool:
    return any(int(path.name[4:]) < index for path in Path(spec["board"]).glob("won-*"))


def signature() -> dict[Path, tuple[int, ...]]:
    """Return what identifies the content of each file of the copy."""
    return {
        path: mark_of(path) for folder, _, names in os.walk(".") for path in map(Path(folder).joinpath, names)
    }


def mark_of(path: Path) -> tuple[int, ...]:
    """Return what identifies the content of a file."""
    seen = path.lstat()
    return (seen.st_size, seen.st_mtime_ns, seen.st_mode)


def restore(pristine: str, state: dict[Path, tuple[int, ...]]) -> None:
    """Put the copy back as it was, so that no candidate sees what an earlier one left behind."""
    now = signature()
    for path in now.keys() - state.keys():
        path.unlink()
    for path, seen in state.items():
        if now.get(path) != seen:
            with contextlib.suppress(OSError):
                path.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            source = Path(pristine, path)
            if source.is_symlink():
                path.symlink_to(os.readlink(source))  # noqa: PTH115  # Path has it since 3.9
            else:
                write_anew(path, source.read_bytes(), source.stat().st_mode)
            state[path] = mark_of(path)


def write_anew(path: Path, raw: bytes, mode: int) -> None:
    """Write a new file that has its mode from the start: a sandbox may refuse to set it later."""
    before = os.umask(0)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o777)
    finally:
        os.umask(before)
    with os.fdopen(target, "wb") as file:
        file.write(raw)


if __name__ == "__main__":
    main()
