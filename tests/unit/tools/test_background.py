"""Commands in the background: a server is started, asked, read and stopped; nothing of it stays."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.tool import ToolContext
from agentflow.sandbox.background import MOST, BackgroundCommands
from agentflow.sandbox.profile import SandboxOpenings
from agentflow.tools.shell import BASH, BASH_OUTPUT, KILL_SHELL
from tests.support.boxes import boxed, landlocked, unboxed
from tests.unit.tools.bench import Bench

SERVE = "python3 -u -m http.server 8123 --bind 127.0.0.1"
ASK = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/a.txt\").read())' 2>&1"
ESCAPES = "setsid bash -c 'trap \"\" TERM HUP; exec -a {mark} sleep 4000' & exec -a {mark} sleep 4000"
OWNER = """
import sys, time
from pathlib import Path
from agentflow.core.evidence import Command
from agentflow.sandbox.background import BackgroundCommands
from tests.support.boxes import boxed
root = Path(sys.argv[1])
command = Command(argv=("bash", "-c", sys.argv[2]), cwd=str(root), timeout=3600)
BackgroundCommands().start(boxed(root).of("implementer"), command, Path(sys.argv[3]))
print("begun", flush=True)
time.sleep(3600)
"""


class WithBackground(Bench):
    background: BackgroundCommands

    def context(self, call_id: str = "call-0") -> ToolContext:
        context = super().context(call_id)
        return context.replace(shell=context.shell.replace(background=self.background))


@pytest.fixture
def at(root: Path, tmp_path: Path) -> Iterator[WithBackground]:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    bench = WithBackground(root, outputs)
    bench.background = BackgroundCommands()
    yield bench
    bench.background.close()


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def list_running(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").iterdir():
        try:
            words = (place / "cmdline").read_bytes() if place.name.isdecimal() else b""
        except OSError:
            continue
        if words.startswith(mark.encode()):
            found.append(place.name)
    return found


def begin(at: WithBackground, command: str) -> str:
    started = at(BASH, command=command, run_in_background=True).content
    assert started.startswith("bash_")
    return started.split()[0]


def test_a_server_is_started_asked_read_and_stopped_and_leaves_nothing(at: WithBackground) -> None:
    at.file("a.txt", "text of a\n")
    name = begin(at, f"touch lasting; {SERVE}")
    wait_for(lambda: "text of a" in at(BASH, command=ASK).content)
    said = at(BASH_OUTPUT, bash_id=name).content
    assert '"GET /a.txt HTTP/1.1" 200' in said
    assert said.endswith(f"[{name} runs]")
    assert at(BASH_OUTPUT, bash_id=name).content == f"[{name} runs]"
    assert at(KILL_SHELL, shell_id=name).content.endswith(f"[{name} was stopped]")
    assert "refused" in at(BASH, command=ASK).content
    assert not (at.root / "lasting").exists()


def test_what_a_role_may_not_reach_stays_out_of_reach(at: WithBackground, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret\n")
    connect = "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 80), 3)'"
    tries = f"cat {tmp_path}/outside; touch .git/x; {connect}"
    said = [at(BASH, command=f"{tries}; echo done; sleep 4000", run_in_background=True).content]
    name = said[0].split()[0]
    while "done" not in said[-1]:
        said.append(at(BASH_OUTPUT, bash_id=name).content)
    assert "secret" not in "".join(said)
    assert "unreachable" in "".join(said)
    assert not (at.root / ".git/x").exists()
    # a command in the foreground shares the network, and is not opened by that either
    reached = at(BASH, command=connect).content
    assert "unreachable" in reached


def test_a_command_that_ends_tells_how(at: WithBackground) -> None:
    name = begin(at, "echo one; exit 3")
    wait_for(lambda: "has ended, exit 3" in at(BASH_OUTPUT, bash_id=name).content)
    with pytest.raises(InvalidInput, match=f"no background command bash_9; there are: {name}"):
        at(KILL_SHELL, shell_id="bash_9")


def test_nothing_outlives_the_role(at: WithBackground, tmp_path: Path) -> None:
    mark = f"outlive-{tmp_path.parent.name}-{os.getpid()}"
    begin(at, ESCAPES.format(mark=mark))
    wait_for(lambda: len(list_running(mark)) == 2)
    at.background.close()
    assert list_running(mark) == []


def test_nothing_outlives_a_killed_agentflow(root: Path, tmp_path: Path) -> None:
    mark = f"killed-{tmp_path.parent.name}-{os.getpid()}"
    words = (sys.executable, "-c", OWNER, str(root), ESCAPES.format(mark=mark), str(tmp_path / "out"))
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"begun\n"
            wait_for(lambda: len(list_running(mark)) == 2)
        finally:
            owner.kill()
        owner.wait()
        wait_for(lambda: list_running(mark) == [])


def test_there_are_bounds(at: WithBackground) -> None:
    for _ in range(MOST):
        begin(at, "sleep 4000")
    with pytest.raises(NotAllowed, match=f"{MOST} commands run in the background already"):
        at(BASH, command="true", run_in_background=True)


@pytest.mark.parametrize("box", [landlocked, unboxed])
def test_without_the_full_sandbox_there_is_no_background(
    at: WithBackground, box: Callable[[Path], object]
) -> None:
    at.runner = box(at.root).of("implementer")  # type: ignore[attr-defined]
    with pytest.raises(NotAllowed, match="only in the full sandbox"):
        at(BASH, command="true", run_in_background=True)


def test_a_step_beside_others_has_none(bench: Bench) -> None:
    with pytest.raises(NotAllowed, match="beside others"):
        bench(BASH, command="true", run_in_background=True)


def test_a_caller_with_the_machine_s_network_stays_in_it(root: Path) -> None:
    opened = boxed(root).replace(opened=SandboxOpenings(network=("implementer",)))
    assert opened.of("implementer").share_network(1, discards=True).joined is None
    assert opened.of("explorer").share_network(1, discards=True).joined == 1
