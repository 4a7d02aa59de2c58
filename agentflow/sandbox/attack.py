"""Run inside a profile by a bare Python: tries to get out of it, and prints what it reached, one JSON object.

    attack.py SPEC

Nothing it does harms if it gets through. What it wrote is judged from outside. The standard library alone is
imported here.
"""

import ctypes
import json
import os
import re
import resource
import socket
import struct
import subprocess  # noqa: TID251  # this is the attacker
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

_REFUSED = (1, 38)
"""EPERM and ENOSYS."""
_FAMILIES = (40, 17, 38, 31, 44, 43, 30)
"""AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_XDP, AF_SMC, AF_TIPC."""
_STREAM, _DATAGRAM, _SEQUENCE = 1, 2, 5
_PROTOCOLS = ((_STREAM, 132), (_SEQUENCE, 0), (6, 33), (_STREAM, 256), (_DATAGRAM, 136), (_DATAGRAM, 1))
"""Kind and number of SCTP, twice, DCCP, SMC, UDP-Lite, ICMP."""
_MULTIPATH = 262
_FAST_OPEN = 0x20000000
_SECRET = re.compile(rb"(?:^|\0)[A-Z_]*(?:KEY|TOKEN|SECRET|PASSWORD)[A-Z_]*=")
_LATER = "sleep 0.4; echo late > {}"


def run_attacks(spec: dict[str, Any]) -> None:
    through = {name: _try(attack) for name, attack in _attacks(spec).items()}
    for place in spec["writes"]:
        _try(partial(_write, Path(place)))
    for place in spec["attributes"]:
        for alter in (partial(os.chmod, mode=0o777), partial(os.utime, times=(0, 0)), _mark, _chown):
            _try(partial(_try_change, alter, place))
    _try(partial(_leave_behind, spec["late"]))
    for name, number in spec["calls"].items():
        through[f"call {name}"] = _call(number)
    print(json.dumps(through))  # noqa: T201  # its answer


def _attacks(spec: dict[str, Any]) -> dict[str, Callable[[], bool]]:
    return {
        "read home": lambda: any(_try(partial(_open, path)) for path in spec["home"]),
        "list home": lambda: bool(set(os.listdir(spec["home_folder"])) & set(spec["home_names"])),  # noqa: PTH208
        "read temporary files": lambda: _open(spec["temporary"]),
        "environment of processes": _others_environment,
        "own environment": partial(_holds_secret, Path("/proc/self/environ")),
        "signal other processes": lambda: _signal(spec["pid"], spec["cmdline"]),
        "kernel settings": lambda: _open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "kernel trigger": lambda: _open("/proc/sysrq-trigger", os.O_WRONLY),
        "kernel memory": lambda: _open("/proc/kcore") or _open("/dev/mem"),
        "kernel log": lambda: _open("/dev/kmsg"),
        "disks": lambda: any(_try(partial(_open, path)) for path in spec["disks"]),
        "control groups": lambda: _open("/sys/fs/cgroup/cgroup.procs", os.O_WRONLY),
        "capabilities": _has_capabilities,
        "gain rights by a program": lambda: ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 0,
        "TCP to this machine": lambda: _connect(socket.AF_INET, ("127.0.0.1", spec["port"])),
        "TCP to the internet": lambda: _connect(socket.AF_INET, ("1.1.1.1", 53)),
        "multipath TCP": lambda: _connect(socket.AF_INET, ("127.0.0.1", spec["port"]), _MULTIPATH),
        "TCP fast open": lambda: any(_try(partial(_fast_open, way, spec["port"])) for way in _SENDS),
        "TCP from outside": lambda: _listen() and os.readlink("/proc/self/ns/net") == spec["network"],  # noqa: PTH115
        "UDP": lambda: _datagram(spec["udp"]),
        "raw sockets": lambda: bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
        "abstract sockets": lambda: _connect(socket.AF_UNIX, f"\0{spec['abstract']}"),
        "sockets of services": lambda: _connect(socket.AF_UNIX, spec["socket"]),
        "other kinds of socket": _other_socket,
        "nested namespaces": _nest,
    }


def _try(attack: Callable[[], bool]) -> bool:
    try:
        return attack()
    except (OSError, ValueError):
        return False


def _write(place: Path) -> bool:
    if place.exists():
        place.write_text("attacked", "ascii")
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("made", "ascii")
    return True


def _try_change(alter: Callable[[str], None], place: str) -> bool:
    alter(place)
    return True


def _mark(place: str) -> None:
    os.setxattr(place, "user.attacked", b"attacked")


def _chown(place: str) -> None:
    os.chown(place, -1, max(os.getgroups(), default=-1))


def _leave_behind(place: str) -> bool:
    words = ["/bin/sh", "-c", _LATER.format(place)]
    _try(_without_mark)
    subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL, env={})
    return True


def _without_mark() -> bool:
    """Change the resource limit by which we recognise what a command started."""
    resource.setrlimit(10, (7, resource.getrlimit(10)[1]))
    return True


def _open(path: str, flags: int = os.O_RDONLY) -> bool:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    readable = flags != os.O_RDONLY or bool(os.read(descriptor, 1))
    os.close(descriptor)
    return readable


def _others_environment() -> bool:
    return any(_try(partial(_holds_secret, path)) for path in Path("/proc").glob("[0-9]*/environ"))


def _holds_secret(path: Path) -> bool:
    return _SECRET.search(path.read_bytes()) is not None


def _other_socket() -> bool:
    kinds = (*((socket.AF_INET, *kind) for kind in _PROTOCOLS), *((one, _DATAGRAM, 0) for one in _FAMILIES))
    return any(_try(partial(_socket, *kind)) for kind in (*kinds, (30, _SEQUENCE, 0), (43, _STREAM, 0)))


def _socket(family: int, kind: int, protocol: int) -> bool:
    with socket.socket(family, kind, protocol):
        return True


def _nest() -> bool:
    return subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True).returncode == 0


def _signal(pid: int, cmdline: str) -> bool:
    os.kill(pid, 0)
    return Path(f"/proc/{pid}/cmdline").read_bytes() == os.fsencode(cmdline)


def _has_capabilities() -> bool:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return any(line.startswith(("CapEff", "CapPrm")) and int(line.split()[1], 16) for line in lines)


def _connect(family: int, address: Any, protocol: int = 0) -> bool:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as client:
        client.settimeout(1)
        client.connect(address)
    return True


def _fast_open(send: Callable[[socket.socket, tuple[str, int]], object], port: int) -> bool:
    """Connect by sending, which is no `connect`."""
    with socket.socket() as client:  # Python's own time limit makes it one that does not wait
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 1, 0))
        send(client, ("127.0.0.1", port))
    return True


def _send_many(client: socket.socket, address: tuple[str, int]) -> None:
    """Call `sendmmsg`, which Python does not have, with one message."""
    to = ctypes.create_string_buffer(
        struct.pack("=HH4s8x", 2, socket.htons(address[1]), bytes((127, 0, 0, 1)))
    )
    word = ctypes.create_string_buffer(b"x")
    part = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(word), 1))
    message = struct.pack("@PIPNPNiI", ctypes.addressof(to), 16, ctypes.addressof(part), 1, 0, 0, 0, 0)
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.sendmmsg(client.fileno(), ctypes.create_string_buffer(message + bytes(8)), 1, _FAST_OPEN) != 1:
        raise OSError(ctypes.get_errno(), "sendmmsg")


_SENDS: tuple[Callable[[socket.socket, tuple[str, int]], object], ...] = (
    lambda client, address: client.sendto(b"x", _FAST_OPEN, address),
    lambda client, address: client.sendmsg([b"x"], [], _FAST_OPEN, address),
    _send_many,
)


def _listen() -> bool:
    """Listen on a port that the kernel chooses, without `bind`."""
    with socket.socket() as server:
        server.listen()
    return True


def _datagram(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.connect(("127.0.0.1", port))
        client.send(b"ask")
        return client.recv(6) == b"answer"


def _call(number: int) -> bool:
    kernel = ctypes.CDLL(None, use_errno=True)
    nothing = [ctypes.c_ulong(0)] * 6
    return kernel.syscall(ctypes.c_long(number), *nothing) != -1 or ctypes.get_errno() not in _REFUSED


if __name__ == "__main__":
    run_attacks(json.loads(sys.argv[1]))
