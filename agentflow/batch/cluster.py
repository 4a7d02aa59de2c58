"""The tasks of a batch on the machines of a Ray cluster; the door to Ray.

Ray never tries a task again by itself: a lost machine may have spent the share of its task, and what is
begun anew needs a share of its own.
"""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from agentflow import __version__
from agentflow.batch.folder import TaskFolder, report_unbegun
from agentflow.batch.parcel import accept_files, do_here, pack_parcel
from agentflow.batch.results import BatchResult, add_lost, read_lost, save_lost, save_result
from agentflow.batch.run import BatchOptions, DoTask, RayCluster, do_task, read_state, to_usage
from agentflow.core.errors import AgentflowError, ConfigError, Exit
from agentflow.core.pending import Budget
from agentflow.redact import to_one_line

_FAULTS = (WorkerCrashedError, NodeDiedError, OutOfMemoryError, ObjectLostError)
"""The machine is to blame, or the way from it, and not the task."""
_GIGABYTE = 1_000_000_000
_LOCAL = "local"
_ANSWER_SECONDS = 5.0
"""Ray itself tries for minutes."""


@contextmanager
def open_cluster(wish: RayCluster, log: Path) -> Iterator[tuple[DoTask, int]]:
    """Yield what carries out a task on a cluster, and how many tasks fit on it. Raises ConfigError."""
    address = wish.address or os.environ.get("RAY_ADDRESS") or _LOCAL
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address.startswith("ray://"):
        hint = "run the batch on one of its machines, with --address auto"
        raise ConfigError("a Ray cluster is not used through ray://", hint=hint)
    _require_answer(address)
    dashboard = False if address == _LOCAL else None
    with _write_log(log):
        try:
            with chdir("/"):  # its processes import from the folder in which it is started
                ray.init(address, log_to_driver=False, include_dashboard=dashboard)
        except Exception as error:  # noqa: BLE001  # of a machine that is too busy Ray says no more than that
            problem = f"cannot use the Ray cluster at {address}: {to_one_line(str(error))}"
            raise ConfigError(problem, hint=f"see {log}") from None
        try:
            yield partial(_do_task, needs=wish), _count_room(wish)
        finally:
            ray.shutdown()


def _require_answer(address: str) -> None:
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
        except OSError as error:
            problem = f"no Ray cluster answers at {address}: {error.strerror or error}"
            raise ConfigError(problem, hint="ray status prints the address of one") from None


@contextmanager
def _write_log(log: Path) -> Iterator[None]:
    """Let what Ray says to people be written down: stdout is for results, and stderr for how far they are."""
    said, record = logging.getLogger("ray"), logging.FileHandler(log, encoding="utf-8")
    before, said.handlers = said.handlers, [record]
    try:
        with redirect_stdout(record.stream):
            yield
    finally:
        said.handlers = before
        record.close()


def _count_room(needs: RayCluster) -> int:
    asked = {"CPU": needs.cpus, "memory": (needs.memory or 0) * _GIGABYTE}
    found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    rooms = (min(have.get(name, 0) / amount for name, amount in asked.items() if amount) for have in found)
    if room := sum(map(int, rooms)):
        return room
    raise ConfigError("no machine of the Ray cluster has what a task needs", hint="lower --cpus or --memory")


async def _do_task(
    folder: TaskFolder, share: Budget, options: BatchOptions, needs: RayCluster
) -> BatchResult | None:
    """Do one task on the cluster; here, where its clone is, if it was begun on this machine."""
    if await anyio.to_thread.run_sync(read_state, folder) is not None:
        return await do_task(folder, share, options)
    try:
        assignment, parcel = await anyio.to_thread.run_sync(pack_parcel, folder, share, options)
        files = await _send(folder, share, needs, assignment, parcel)
        if files is None:
            return None
        result = await anyio.to_thread.run_sync(accept_files, folder, files, options)
    except AgentflowError as error:
        result = report_unbegun(folder, error.exit_code, str(error))
    except RayTaskError as error:
        result = report_unbegun(folder, Exit.INTERNAL, to_one_line(f"on its machine: {error.cause!r}"))
    except RayError as error:
        result = report_unbegun(folder, Exit.INTERNAL, to_one_line(f"Ray: {error}"))
    except OSError as error:
        result = report_unbegun(folder, Exit.CONFIG, f"{error.strerror}: {error.filename}")
    save_result(folder.place, result)
    return result


async def _send(
    folder: TaskFolder, share: Budget, needs: RayCluster, assignment: bytes, parcel: bytes
) -> dict[str, bytes] | None:
    """Until the files come back, the whole share counts as used."""
    before = read_lost(folder.place)
    add_lost(folder.place, to_usage(share))
    memory = {"memory": int(needs.memory * _GIGABYTE)} if needs.memory else {}
    remote = ray.remote(do_here).options(
        name=folder.task.id, num_cpus=needs.cpus, max_retries=0, retry_exceptions=False, **memory
    )
    reference = remote.remote(__version__, assignment, parcel)
    try:
        files: dict[str, bytes] = await reference
    except _FAULTS:
        return None
    finally:
        ray.cancel(reference, force=True)  # of one that has ended it stops nothing
    save_lost(folder.place, before)
    return files
