"""Copies of a search are layers above one copy where that can be: no candidate reaches what lies below."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import ModelRejected
from agentflow.repair.bench import Bench, SearchWatch, open_copy, open_pristine
from agentflow.repair.sources import read_sources
from agentflow.repair.target import RepairRunner, Target
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox
from tests.support.boxes import boxed, landlocked, unboxed
from tests.support.places import temporary_files_in
from tests.unit.repair.bugs import module_tests
from tests.unit.repair.stage import UNITTEST, Stage

TRUTHS = ("is_full(3, 3)", "is_full(4, 3)", "not is_full(2, 3)")
REACHING = """import json
import os
import pathlib


def reach_below():
    spec = pathlib.Path("/proc/self/cmdline").read_bytes().decode().split("\\0")[-2]
    below = pathlib.Path(json.loads(pathlib.Path(spec).read_text())["pristine"])
    layers = [place for each in below.parent.parent.glob("*/layer/lower") for place in [each]]
    for place in (below, *layers, *(each.with_name("upper") for each in layers)):
        for act in (
            lambda: place.joinpath("whole.txt").write_text("reached"),
            lambda: place.joinpath("whole.txt").unlink(),
            lambda: place.joinpath("more.txt").write_text("reached"),
            lambda: place.joinpath("tests").rename(place / "other"),
            lambda: place.chmod(0),
        ):
            try:
                act()
            except OSError:
                pass
    pathlib.Path("whole.txt").unlink()
    os.mkdir("whole.txt")
    os.rename("data", "gone")


def is_full(count, limit):
    if open("whole.txt").read() != "whole" or not os.path.exists("data/a") or os.path.exists("more.txt"):
        raise RuntimeError("an earlier edit reached the files below")
    if count == 99:
        reach_below()
        return True
    return count > limit
"""


@pytest.mark.parametrize("box", [boxed, landlocked])
def test_no_candidate_writes_through_its_copy(box: Callable[[Path], Sandbox], tmp_path: Path) -> None:
    tests = module_tests("core", TRUTHS)
    files = {"core.py": REACHING, "tests/test_core.py": tests, "whole.txt": "whole", "data/a": "a"}
    stage = Stage(tmp_path, files, UNITTEST)
    stage.mend(box(stage.root))
    assert stage.changed() == {"core.py": (["return count > limit"], ["return count >= limit"])}


def open_bench(root: Path, sandbox: Sandbox, watch: SearchWatch) -> Bench:
    (root / "code.py").write_text("code")
    (root / "a folder").mkdir()
    (root / "a folder/ö.txt").write_text("text")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    target = Target(
        interpreter=sys.executable, runner=RepairRunner.UNITTEST, arguments=(), is_module=True, env={}
    )
    sources = read_sources(root, None)
    sources = sources.replace(overlay={"code.py": b"before"})
    return Bench(sandbox=sandbox, sources=sources, target=target, places=(".",), watch=watch)


@pytest.mark.parametrize("box", [boxed, landlocked, unboxed])
def test_a_copy_is_a_layer_where_bubblewrap_is_and_else_has_all_files(
    box: Callable[[Path], Sandbox], tmp_path: Path
) -> None:
    bench = open_bench(tmp_path, box(tmp_path), SearchWatch())
    with open_pristine(bench) as (below, layered), open_copy(layered) as copy:
        assert (below / "code.py").read_text() == "before"
        assert (copy.layer is not None) == (bench.sandbox.level is Level.FULL)
        if copy.layer is None:
            assert copy.folder != below
        assert (copy.folder / "code.py").read_text() == "before"
        assert (copy.folder / "a folder/ö.txt").read_text() == "text"
    assert not below.exists()
    assert not copy.folder.exists()


def test_copying_ends_at_once_where_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "temporary").mkdir()
    stopped = threading.Event()
    bench = open_bench(tmp_path / "repo", boxed(tmp_path / "repo"), SearchWatch(cancelled=stopped.is_set))
    with temporary_files_in(tmp_path / "temporary"):
        with open_copy(bench):
            stopped.set()
        with pytest.raises(ModelRejected, match="the search was stopped"), open_copy(bench):
            (tmp_path / "reached").touch()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "reached").exists()
