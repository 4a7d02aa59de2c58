"""The system calls that no command needs and that lead out of a sandbox, as a program for the kernel.

The standard library alone is imported here: `launch.py` runs without any other.
"""

import platform
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Architecture(NamedTuple):
    """What a processor calls itself, and the number of each system call."""

    audit: int
    has_x32: bool
    clone: int
    socket: int
    denied: Mapping[str, int]


_NAMES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "bpf", "perf_event_open", "userfaultfd"),
    *("add_key", "request_key", "keyctl", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "open_by_handle_at"),
)
_EVERYWHERE: Mapping[str, int] = MappingProxyType(
    {
        **{f"io_uring_{name}": 425 + place for place, name in enumerate(("setup", "enter", "register"))},
        "open_tree": 428,
        "move_mount": 429,
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "fspick": 433,
        "mount_setattr": 442,
        "open_tree_attr": 467,
    }
)
_X86_64 = (
    101,
    310,
    311,
    321,
    298,
    323,
    248,
    249,
    250,
    165,
    166,
    155,
    161,
    272,
    308,
    175,
    313,
    176,
    246,
    320,
    304,
)
_AARCH64 = (
    117,
    270,
    271,
    280,
    241,
    282,
    217,
    218,
    219,
    40,
    39,
    41,
    51,
    97,
    268,
    105,
    273,
    106,
    104,
    294,
    265,
)


def _denied(numbers: tuple[int, ...]) -> Mapping[str, int]:
    return MappingProxyType({**dict(zip(_NAMES, numbers, strict=True)), **_EVERYWHERE})


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "x86_64": Architecture(0xC000003E, True, 56, 41, _denied(_X86_64)),
        "aarch64": Architecture(0xC00000B7, False, 220, 198, _denied(_AARCH64)),
    }
)
_CLONE3 = 435
_X32 = 0x40000000
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_INTERNET = (2, 10)
_DATAGRAM, _RAW = 2, 3
_NAMESPACES = 0x7E020000
"""CLONE_NEW* except time, which clone cannot make."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _AUDIT, _FIRST, _SECOND = 0, 4, 16, 24
_ALLOW = 0x7FFF0000
_EPERM, _ENOSYS = 0x00050001, 0x00050026

Step = tuple[int, int, int, int]
"""Operation, how far to jump if true and if false, operand."""


def program(*, datagrams: bool = True, machine: str = "") -> bytes | None:
    """Return the filter of this processor; None when we do not know its numbers.

    `datagrams=False` also refuses UDP and raw sockets, for where no network namespace keeps them in.
    """
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    steps: list[Step] = [(_LOAD, 0, 0, _AUDIT), *_refuse_unless(known.audit), (_LOAD, 0, 0, _NUMBER)]
    if known.has_x32:
        steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)]
    for number in known.denied.values():
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ENOSYS)]  # its flags lie in memory, clone's do not
    no_namespace = [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _EPERM)]
    steps += _only_for(known.clone, no_namespace)
    steps += _only_for(known.socket, _sockets(datagrams=datagrams))
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _refuse_unless(audit: int) -> list[Step]:
    return [(_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _EPERM)]


def _only_for(number: int, steps: list[Step]) -> list[Step]:
    """Let the steps be taken for one system call only; the number is loaded before and after."""
    return [(_EQUAL, 0, len(steps) + 1, number), *steps, (_LOAD, 0, 0, _NUMBER)]


def _sockets(*, datagrams: bool) -> list[Step]:
    families = [(_EQUAL, len(_FAMILIES) - place, 0, family) for place, family in enumerate(_FAMILIES)]
    steps: list[Step] = [(_LOAD, 0, 0, _FIRST), *families, (_RETURN, 0, 0, _EPERM)]
    if not datagrams:
        kinds: list[Step] = [
            (_LOAD, 0, 0, _SECOND),
            (_AND, 0, 0, 0xF),
            (_EQUAL, 1, 0, _DATAGRAM),
            (_EQUAL, 0, 1, _RAW),
            (_RETURN, 0, 0, _EPERM),
        ]
        first, second = _INTERNET
        steps += [(_EQUAL, 1, 0, first), (_EQUAL, 0, len(kinds), second), *kinds]
    return steps
