"""What the pool does with tasks whose machine is lost; what does a task is played."""

from pathlib import Path

import anyio

from agentflow.batch.folder import TaskFolder
from agentflow.batch.plan import BatchTask
from agentflow.batch.results import BatchResult, add_lost, read_result, save_result
from agentflow.batch.run import BatchOptions, TaskBegun, TaskPool
from agentflow.core.messages import Usage
from agentflow.core.pending import Budget
from agentflow.core.task import Status

LOST = None


class Play:
    """A machine park that ends the attempts at each task as told, by exit code, or loses them."""

    def __init__(self, place: Path, ends: dict[str, list[int | None]], options: BatchOptions) -> None:
        self.begun: list[str] = []
        self.told: list[BatchResult] = []
        self._ends = ends
        tasks = (BatchTask(id=name, text="do", repository="r", max_tokens=600) for name in ends)
        self.folders = [TaskFolder(task=task, place=place / task.id) for task in tasks]
        for folder in self.folders:
            folder.place.mkdir(exist_ok=True)
        self.pool = TaskPool(self.folders, options, self._tell, self._do)
        anyio.run(self.pool.run)

    def _tell(self, news: TaskBegun | BatchResult) -> None:
        if isinstance(news, BatchResult):
            self.told.append(news)
        else:
            assert news.id in self._ends

    async def _do(self, folder: TaskFolder, share: Budget, options: BatchOptions) -> BatchResult | None:
        assert (share.tokens, options.keep) == (600, False)
        self.begun.append(folder.task.id)
        code = self._ends[folder.task.id].pop(0)
        await anyio.sleep(0.05 if code is LOST else 0)
        if code is LOST:
            return None
        status = Status.FAILED if code else Status.VERIFIED
        result = BatchResult(id=folder.task.id, status=status, exit_code=code, reason="", task_id="t")
        result = result.replace(usage=Usage(input=100))
        save_result(folder.place, result)
        return result

    @property
    def codes(self) -> dict[str, int]:
        return {result.id: result.exit_code for result in self.told}


def test_a_lost_attempt_is_made_again_and_a_failed_one_is_not(tmp_path: Path) -> None:
    played = Play(tmp_path, {"a": [LOST, LOST, 0], "b": [1, 0]}, BatchOptions(jobs=1))
    assert (played.begun, played.codes) == (["a", "a", "a", "b"], {"a": 0, "b": 1})


def test_three_lost_machines_are_an_end_that_is_tried_again_later(tmp_path: Path) -> None:
    played = Play(tmp_path, {"a": [LOST] * 9, "b": [0]}, BatchOptions(jobs=1))
    assert (played.begun, played.codes) == (["a", "a", "a", "b"], {"a": 70, "b": 0})
    result = read_result(played.folders[0].place)
    assert result is not None
    assert (result.reason, result.is_settled) == ("its machine was lost 3 times", False)


def test_the_share_of_a_lost_attempt_is_used_up(tmp_path: Path) -> None:
    tight = BatchOptions(jobs=1, budget=Budget(tokens=1100))
    played = Play(tmp_path, {"a": [LOST, 0]}, tight)
    assert (played.begun, played.told, played.pool.is_over) == (["a"], [], True)
    wide = BatchOptions(jobs=1, budget=Budget(tokens=1200))
    assert Play(tmp_path, {"b": [LOST, 0]}, wide).codes == {"b": 0}


def test_what_an_earlier_run_lost_is_used_up_as_well(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for _ in range(2):
        add_lost(tmp_path / "a", Usage(input=300))
    options = BatchOptions(jobs=1, budget=Budget(tokens=1100))
    assert Play(tmp_path, {"a": [0]}, options).begun == []
    assert Play(tmp_path, {"a": [0]}, options.replace(budget=Budget(tokens=1200))).codes == {"a": 0}


def test_fail_fast_begins_no_lost_task_again(tmp_path: Path) -> None:
    options = BatchOptions(jobs=2, fail_fast=True)
    played = Play(tmp_path, {"a": [LOST, 0], "b": [1], "c": [0]}, options)
    assert (sorted(played.begun), played.codes) == (["a", "b"], {"b": 1})
