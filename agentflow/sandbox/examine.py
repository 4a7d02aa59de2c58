"""Attack our own profiles, and tell what they held; what was written is judged from outside."""

import json
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.parse import fit
from agentflow.sandbox import seccomp
from agentflow.sandbox.profile import CHECKS
from agentflow.sandbox.protection import find_hidden_places
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder

ATTACK = Path(__file__).with_name("attack.py")
WHO = ("explorer", "implementer", CHECKS)
"""One caller of each profile."""
_SECONDS = 60.0
_LATE_SECONDS = 0.6
_FILES: Mapping[str, tuple[str, ...]] = {
    "write the repository": ("a.txt", "new.txt", "folder/new.txt"),
    "write git's folder": (".git/hooks/pre-commit", ".git/config"),
    "write policy": (".claude/settings.json", ".claude/agents/new.md"),
    "write evidence": (".claude/agentflow/ev-0001.json",),
    "make missing policy": (".mcp.json", ".agents/skills/new.md"),
    "write configuration": (".gitattributes", "AGENTS.md"),
    "make missing configuration": (".env", ".envrc", ".vscode/tasks.json", "CLAUDE.md", ".husky/pre-push"),
}
_MADE = (
    *("a.txt", ".git/config", ".claude/settings.json", ".claude/agentflow/ev-0001.json"),
    *(".gitattributes", "AGENTS.md"),
)
"""Of those, what is there before."""
_ITS_WORK = "write the repository"
ATTRIBUTES = "change modes and times"
_ALTERED = (".git/config", ".claude/settings.json", "../secret")


class Attack(Record):
    """One way out, and whose profile held it."""

    name: str
    held: dict[str, bool]


def attack_profiles(sandbox: Sandbox) -> tuple[Attack, ...]:
    """Attack the profiles of a sandbox from inside, in a repository made for it."""
    with make_scratch_folder() as folder, _open_targets(folder) as spec:
        found = [_attack_profile(sandbox, who, folder / who, spec) for who in WHO]
    names = tuple(dict.fromkeys(name for one in found for name in one))
    return tuple(
        Attack(name=name, held={who: one[name] for who, one in zip(WHO, found, strict=True) if name in one})
        for name in names
    )


def _attack_profile(sandbox: Sandbox, who: str, root: Path, spec: dict[str, Any]) -> dict[str, bool]:
    """Return what one profile held."""
    for name in _MADE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("before", "ascii")
    outside = _list_outside(root)
    late = root / "late.txt"
    writes = {name: [root / path for path in paths] for name, paths in _FILES.items()} | outside
    before = {path: _content(path) for paths in writes.values() for path in paths}
    altered = [root / path for path in _ALTERED]
    attributes = [_attributes(path) for path in altered]
    given = {
        **spec,
        "writes": [str(path) for path in before],
        "attributes": [str(path) for path in altered],
        "late": str(late),
    }
    argv = (sys.executable, "-I", "-S", str(ATTACK), json.dumps(given))
    command = Command(argv=argv, cwd=str(root), timeout=_SECONDS)
    finished = sandbox.replace(root=root).of(who).run(command, root.parent / f"{who}.out")
    time.sleep(_LATE_SECONDS)
    through = fit(dict[str, bool], json.loads(finished.tail.strip().rpartition("\n")[2] or "{}"))
    held = {name: all(_content(path) == before[path] for path in paths) for name, paths in writes.items()}
    if who == "implementer":
        del held[_ITS_WORK]
    calls = {name: got for name, got in through.items() if name.startswith("call ")}
    others = {name: not got for name, got in through.items() if name not in calls}
    return {
        **held,
        ATTRIBUTES: [_attributes(path) for path in altered] == attributes,
        "outlive the command": not late.exists(),
        **others,
        f"{len(calls)} system calls": bool(calls) and not any(calls.values()),
    }


def _list_outside(root: Path) -> dict[str, list[Path]]:
    """Return where a command must never write, by a name for it."""
    name = f"agentflow-doctor-{root.parent.name}"
    return {
        "write home": [Path.home() / name, Path.home() / ".config" / name],
        "write temporary folders": [root.parent / name, Path("/tmp", name), Path("/var/tmp", name)],  # noqa: S108
        "write the system": [
            Path("/", name),
            Path("/etc", name),
            Path("/usr/local", name),
            Path("/run", name),
        ],
        "write shared memory": [Path("/dev/shm", name)],  # noqa: S108
    }


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _attributes(path: Path) -> tuple[object, ...]:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, os.listxattr(path)


@contextmanager
def _open_targets(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what there is to reach: services of this machine, secrets, this very process."""
    home = Path.home().resolve()
    places = find_hidden_places(folder, os.environ)
    shown = {path.relative_to(home).parts[0] for path in places.readable if path.is_relative_to(home)}
    names = sorted(path.name for path in home.iterdir()) if home.is_dir() and os.access(home, os.R_OK) else []
    temporary = folder / "secret"
    temporary.write_text("secret", "ascii")
    known = seccomp.ARCHITECTURES.get(platform.machine())
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=_answer, args=(udp,), daemon=True).start()
        abstract, named = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        abstract.bind(f"\0{folder.name}")
        named.bind(str(folder / "socket"))
        abstract.listen()
        named.listen()
        yield {
            "home_folder": str(home),
            "home_names": [name for name in names if name not in shown],
            "home": [str(home / name) for name in names if (home / name).is_file()],
            "temporary": str(temporary),
            "pid": os.getpid(),
            "cmdline": os.fsdecode(Path("/proc/self/cmdline").read_bytes()),
            "disks": [str(path) for path in sorted(Path("/dev").iterdir()) if path.is_block_device()],
            "port": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "network": os.readlink("/proc/self/ns/net"),  # noqa: PTH115  # it leads to no path
            "abstract": folder.name,
            "socket": str(folder / "socket"),
            "calls": dict(known.denied) if known else {},
        }


def _answer(udp: socket.socket) -> None:
    try:
        while True:
            _, sender = udp.recvfrom(16)
            udp.sendto(b"answer", sender)
    except OSError:
        return  # the examination is over
