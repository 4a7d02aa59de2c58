"""A batch on a Ray cluster, one of two nodes killed in the middle; AGENTFLOW_BATCH_TASKS=40 is long."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Repo

TASKS = int(os.environ.get("AGENTFLOW_BATCH_TASKS", "8"))
BYTES = 80_000_000
"""Of each node's object store."""
NODES = """
import sys
from ray.cluster_utils import Cluster

head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": %(bytes)d}
cluster = Cluster(head_node_args=head, initialize_head=True)
nodes = [cluster.add_node(num_cpus=2, object_store_memory=%(bytes)d) for _ in range(2)]
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(nodes[0], allow_graceful=False)
print("killed", flush=True)
sys.stdin.read()
cluster.shutdown()
"""


def test_every_task_is_done_once_when_a_node_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # where Ray keeps its token
    repo = Repo(tmp_path / "repo", tmp_path / "home").write(play.CALC).commit()
    model = repo.scripted([{**entry, "delay": 0.2} for entry in play.mending()])
    names = [f"t{number:03}" for number in range(TASKS)]
    plan = tmp_path / "plan.jsonl"
    common = {"repository": "repo", "text": "let add return the sum", "model": model, "max_tokens": 1000}
    plan.write_text("".join(json.dumps({**common, "id": name}) + "\n" for name in names))
    out = tmp_path / "plan.batch"
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", NODES % {"bytes": BYTES}],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=repo.environment,
        text=True,
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        address = next(line for line in cluster.stdout if ":" in line and " " not in line).strip()
        words = ("--engine", "ray", "--address", address, "--cpus", "1", "--no-input", "--json")
        with (tmp_path / "said.jsonl").open("w") as said:
            limit = ("--max-tokens", str(1000 * (TASKS + 4)))
            process = repo.start("batch", str(plan), *words, *limit, stdout=said, stderr=subprocess.PIPE)
        while process.poll() is None and len([*out.glob("*/result.json")]) < TASKS // 4:
            time.sleep(0.1)
        time.sleep(1)  # whoever has just ended a task begins the next one first
        assert process.poll() is None
        cluster.stdin.write("\n")
        cluster.stdin.flush()
        assert "killed" in next(iter(cluster.stdout.readline, ""))
        _, err = process.communicate()
        took = time.monotonic() - begin
        cluster.stdin.close()
    found = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    assert process.returncode == 0, err
    assert [result["id"] for result in found] == names
    assert {result["exit_code"] for result in found} == {0}
    assert len({result["task_id"] for result in found}) == TASKS
    assert sorted(line.split()[1] for line in err.splitlines()) == names
    lost = sorted(place.parent.name for place in out.glob("*/lost.json"))
    assert lost, "no task was in the middle"
    for name in names:
        kept = sorted(file.name for file in (out / name).iterdir() if file.name != "lost.json")
        assert kept == ["change.patch", "result.json", "task.agentflow"]
    print(  # noqa: T201  # the figures are what it is run for
        f"\n{TASKS} tasks on two nodes, one killed: {took:.1f} s with the start of Ray "
        f"({TASKS / took * 60:.1f} a minute); done anew: {', '.join(lost)}",
        file=sys.stderr,
    )
