"""What another machine is sent of a task, and what is believed of what it sends back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.batch.folder import BUNDLE, TaskFolder
from agentflow.batch.parcel import accept_files, do_here, pack_parcel
from agentflow.batch.plan import BatchTask, HiddenCheck
from agentflow.batch.results import RESULT, BatchResult, read_lost
from agentflow.batch.run import BatchOptions
from agentflow.core.errors import AgentflowError, Exit
from agentflow.core.messages import Usage
from agentflow.core.pending import Budget
from agentflow.core.record import encode
from agentflow.core.task import Status
from agentflow.parse import decode
from agentflow.store.bundle import PATCH
from tests.support import play
from tests.support.repo import Repo

OPTIONS = BatchOptions(switches=("--no-input",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskFolder:
    """A task with a hidden check, in a repository whose packages only this machine has."""
    repo = Repo(tmp_path / "repo", tmp_path / "home").write({**play.CALC, ".gitignore": ".venv\n"}).commit()
    monkeypatch.setenv("AGENTFLOW_HOME", str(repo.home))
    (repo.root / ".venv").mkdir()
    hidden = tmp_path / "hidden/tests/test_hidden.py"
    hidden.parent.mkdir(parents=True)
    hidden.write_text(play.CALC["tests/test_calc.py"].replace("add(1, 2), 3", "add(5, 5), 10"))
    check = HiddenCheck(
        command="python3 -m unittest discover -s tests", folder=str(hidden.parents[1]), files={}
    )
    task = BatchTask(
        id="one",
        text=play.WHOLE_CREW,
        repository=str(repo.root),
        model=repo.scripted(play.mending()),
        check=check,
    )
    return TaskFolder(task=task, place=tmp_path / "out/one")


def test_a_task_is_done_with_nothing_but_what_was_sent(folder: TaskFolder, tmp_path: Path) -> None:
    assignment, parcel = pack_parcel(folder, Budget(), OPTIONS)
    assert [*folder.place.iterdir()] == []
    (tmp_path / "repo").rename(tmp_path / "elsewhere")  # as on a machine that has none of it
    (tmp_path / "hidden").rename(tmp_path / "elsewhere/hidden")
    (tmp_path / "home/script.yaml").unlink()
    files = do_here("0.1.0", assignment, parcel)
    result = accept_files(folder, files, OPTIONS)
    assert (result.exit_code, result.hidden and result.hidden.resolved) == (0, True), result
    assert result.model == folder.task.model
    assert "+    return a + b" in (folder.place / PATCH).read_text()
    assert not [*(tmp_path / "home/.config/agentflow").rglob("trust/*")]

    for forged, why in forgeries(files):
        (folder.place / PATCH).write_text("of an earlier attempt")
        with pytest.raises(AgentflowError, match=why):
            accept_files(folder, forged, OPTIONS)
        assert (folder.place / PATCH).read_text() == "of an earlier attempt"


def forgeries(files: dict[str, bytes]) -> Iterator[tuple[dict[str, bytes], str]]:
    """Yield what a machine may send back that is no result of this task, and why it is refused."""
    result = decode(BatchResult, files[RESULT], "result")
    at = len(files[BUNDLE]) // 2
    flipped = files[BUNDLE][:at] + bytes([files[BUNDLE][at] ^ 1]) + files[BUNDLE][at + 1 :]
    yield {**files, BUNDLE: flipped}, "not a complete record"
    yield {**files, BUNDLE: b""}, "not a complete record"
    yield {name: files[name] for name in (RESULT, PATCH)}, "not a complete record"
    other = result.replace(task_id="20260101T000000Z-0000")
    yield {**files, RESULT: encode(other)}, "of another task"
    better = result.replace(status=Status.VERIFIED_WITH_CAVEAT)
    yield {**files, RESULT: encode(better)}, "of another result"
    yield {**files, RESULT: b"{}"}, "one"


def test_another_version_on_the_machine_is_one_message(folder: TaskFolder) -> None:
    result = accept_files(folder, do_here("0.0.9", b"", b""), OPTIONS)
    assert (result.id, result.exit_code, result.is_settled) == ("one", Exit.CONFIG, False)
    assert "has agentflow 0.1.0, and the batch was begun by 0.0.9" in result.reason


def test_what_an_unfinished_attempt_used_counts_later(folder: TaskFolder) -> None:
    folder.place.mkdir(parents=True)
    used = Usage(input=10, output=5, cost_usd=0.5)
    waiting = BatchResult(id="one", status=Status.SUSPENDED, exit_code=6, reason="no model", usage=used)
    for times in (1, 2):
        accept_files(folder, {RESULT: encode(waiting)}, OPTIONS)
        assert (read_lost(folder.place).tokens, read_lost(folder.place).cost_usd) == (15 * times, 0.5 * times)
