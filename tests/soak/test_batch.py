"""Many tasks, killed in the middle three times; AGENTFLOW_BATCH_TASKS=200 is the long form."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support import play
from tests.support.repo import COMMAND, Repo

TASKS = int(os.environ.get("AGENTFLOW_BATCH_TASKS", "8"))
REPOSITORIES = max(2, TASKS // 10)
KILLS = 3
JOBS = "4"
MAX_GROWTH_KB = 16_000
"""Between a tenth of the tasks and all of them."""


def test_every_task_is_done_once_in_a_stable_order_however_often_it_is_killed(tmp_path: Path) -> None:
    repos = [
        Repo(tmp_path / f"r{number}", tmp_path / "home").write(play.CALC).commit()
        for number in range(REPOSITORIES)
    ]
    model = repos[0].scripted(play.mending())
    plan = tmp_path / "plan.jsonl"
    common = {"text": "let add return the sum", "model": model}
    lines = [{**common, "id": f"t{n:03}", "repository": f"r{n % REPOSITORIES}"} for n in range(TASKS)]
    plan.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "plan.batch"
    words = ("batch", str(plan), "--jobs", JOBS, "--json")
    said = tmp_path / "said.jsonl"
    begun: dict[str, set[str]] = {}
    memory: list[int] = []

    def note() -> int:
        for place in out.glob("*/work/.claude/agentflow/*Z-*"):
            begun.setdefault(place.parents[3].name, set()).add(place.name)
        return len([*out.glob("*/result.json")])

    begin, kills = time.monotonic(), 0
    while True:
        with said.open("w") as file:
            again = ("--resume",) if out.exists() else ()
            process = repos[0].start(*words, *again, stdout=file, stderr=subprocess.DEVNULL)
        aim = TASKS * (kills + 1) // (KILLS + 1) if kills < KILLS else TASKS + 1
        while process.poll() is None and note() < aim:
            memory.append(resident(process.pid))
            time.sleep(0.1)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    took = time.monotonic() - begin
    process.communicate()
    assert (kills, process.returncode) == (KILLS, 0)
    found = [json.loads(line) for line in said.read_text().splitlines()]
    assert [result["id"] for result in found] == [line["id"] for line in lines]
    assert {result["exit_code"] for result in found} == {0}
    assert all(begun.get(result["id"], {result["task_id"]}) == {result["task_id"]} for result in found)
    assert not [*out.glob("*/work")]
    sizes = [size for size in memory if size]
    early, late = max(sizes[: max(1, len(sizes) // 10)]), max(sizes)
    assert late - early < MAX_GROWTH_KB, (early, late)
    beside = run_beside(tmp_path, model)
    print(  # noqa: T201  # the figures are what it is run for
        f"\n{TASKS} tasks, {REPOSITORIES} repositories, {JOBS} at once, killed {kills} times: {took:.1f} s "
        f"({TASKS / took * 60:.1f} a minute); xargs: {beside:.1f} s ({TASKS / beside * 60:.1f} a minute); "
        f"memory {early / 1024:.1f} to {late / 1024:.1f} MB",
        file=sys.stderr,
    )


def resident(pid: int) -> int:
    """Return how many KB of memory a process holds."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def run_beside(folder: Path, model: str) -> float:
    """Return how long xargs takes for the same tasks, in clones that it makes itself."""
    task = f"git clone -q {folder}/r$(( $1 % {REPOSITORIES} )) {folder}/x$1 && cd {folder}/x$1 && "
    task += f"{COMMAND} task let add return the sum -q --model {model}"
    asked = "".join(f"{number}\n" for number in range(TASKS))
    env = {**os.environ, "AGENTFLOW_HOME": str(folder / "home")}
    begin = time.monotonic()
    words = ("xargs", "-P", JOBS, "-n1", "sh", "-c", task, "sh")
    subprocess.run(words, input=asked, text=True, env=env, check=True, capture_output=True)
    return time.monotonic() - begin
