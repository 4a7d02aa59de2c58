"""The system calls that no command needs and that lead out of a sandbox, as a program for the kernel.

The standard library alone is imported here: `launch.py` runs without any other.
"""

import platform
import struct
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple


class Also(Enum):
    """The calls that a command is refused beyond those that every command is refused."""

    INTERNET = "internet"
    """Every socket of the internet, for where no network namespace keeps them in.

    Landlock's rule is for `connect` and `bind` alone: who listens on a socket without `bind` is reached.
    """
    ATTRIBUTES = "attributes"
    """Modes, owners, times and attributes of files, which Landlock does not know."""


class Architecture(NamedTuple):
    """The name of a processor, and the number of each system call."""

    audit: int
    has_x32: bool
    clone: int
    sockets: tuple[int, int]
    """`socket` and `socketpair`, whose arguments are the same."""
    sends: Mapping[int, int]
    """By the number of a call that sends, where its flags lie."""
    ioctl: int
    setrlimit: int
    prlimit: int
    denied: Mapping[str, int]
    attributes: Mapping[str, int]


_Table = Mapping[str, tuple[int | None, int | None]]
"""By the name of a system call its number on x86_64 and on aarch64."""
_DENIED: _Table = MappingProxyType(
    {
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "userfaultfd": (323, 282),
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "unshare": (272, 97),
        "setns": (308, 268),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "kexec_load": (246, 104),
        "kexec_file_load": (320, 294),
        "open_by_handle_at": (304, 265),
        **{
            f"io_uring_{name}": (425 + at, 425 + at) for at, name in enumerate(("setup", "enter", "register"))
        },
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        "open_tree_attr": (467, 467),
    }
)
_ATTRIBUTES: _Table = MappingProxyType(
    {
        "chmod": (90, None),
        "fchmod": (91, 52),
        "chown": (92, None),
        "fchown": (93, 55),
        "lchown": (94, None),
        "utime": (132, None),
        "setxattr": (188, 5),
        "lsetxattr": (189, 6),
        "fsetxattr": (190, 7),
        "removexattr": (197, 14),
        "lremovexattr": (198, 15),
        "fremovexattr": (199, 16),
        "utimes": (235, None),
        "fchownat": (260, 54),
        "futimesat": (261, None),
        "fchmodat": (268, 53),
        "utimensat": (280, 88),
        "fchmodat2": (452, 452),
        "setxattrat": (463, 463),
        "removexattrat": (466, 466),
        "file_setattr": (469, 469),
    }
)


def _column(table: _Table, place: int) -> Mapping[str, int]:
    return {name: number for name, row in table.items() if (number := row[place]) is not None}


_NUMBER, _AUDIT, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
"""Where the number of a call, the processor and its arguments lie."""
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "x86_64": Architecture(
            audit=0xC000003E,
            has_x32=True,
            clone=56,
            sockets=(41, 53),
            sends=MappingProxyType({44: _FOURTH, 46: _THIRD, 307: _FOURTH}),
            ioctl=16,
            setrlimit=160,
            prlimit=302,
            denied=_column(_DENIED, 0),
            attributes=_column(_ATTRIBUTES, 0),
        ),
        "aarch64": Architecture(
            audit=0xC00000B7,
            has_x32=False,
            clone=220,
            sockets=(198, 199),
            sends=MappingProxyType({206: _FOURTH, 211: _THIRD, 269: _FOURTH}),
            ioctl=29,
            setrlimit=164,
            prlimit=261,
            denied=_column(_DENIED, 1),
            attributes=_column(_ATTRIBUTES, 1),
        ),
    }
)
_CLONE3 = 435
_X32 = 0x40000000
_UNIX, _NETLINK = 1, 16
_INTERNET = (2, 10)
"""AF_INET and AF_INET6."""
_STREAM_OR_DATAGRAM = (1, 2)
_PROTOCOLS = (0, 6, 17)
"""The usual one, TCP, UDP: not multipath TCP, SCTP, DCCP, UDP-Lite, SMC, ICMP."""
_ROUTES, _SOCKETS = 0, 4
"""What programs ask netlink for: addresses of this machine, and its sockets (`ss`)."""
_FAST_OPEN = 0x20000000
"""MSG_FASTOPEN: it connects without asking Landlock."""
_SET_FLAGS = (0x40086602, 0x40046602, 0x401C5820)
"""FS_IOC_SETFLAGS, as 64 and as 32 bits have it, and FS_IOC_FSSETXATTR."""
_NAMESPACES = 0x7E020000
"""CLONE_NEW* except time, which clone cannot make."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_MARKED = 10
"""RLIMIT_LOCKS, by which `descendants.py` knows whatever a command started."""
_ALLOW = 0x7FFF0000
_EPERM, _EACCES, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP = (0x00050000 + n for n in (1, 13, 38, 93, 95))

SeccompStep = tuple[int, int, int, int]
"""Operation, how far to jump if true and if false, operand."""


def build_filter(also: Collection[Also] = (), machine: str = "") -> bytes | None:
    """Return the filter of this processor; None when we do not know its numbers."""
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    steps: list[SeccompStep] = [(_LOAD, 0, 0, _AUDIT), (_EQUAL, 1, 0, known.audit)]
    steps += [(_RETURN, 0, 0, _EPERM), (_LOAD, 0, 0, _NUMBER)]
    if known.has_x32:
        steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)]
    attributes = known.attributes if Also.ATTRIBUTES in also else {}
    for number in (*known.denied.values(), *attributes.values()):
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    if attributes:
        steps += _only_for(known.ioctl, _flags())
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ENOSYS)]  # its flags lie in memory, clone's do not
    steps += _only_for(
        known.setrlimit, [(_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, _MARKED), (_RETURN, 0, 0, _EPERM)]
    )
    steps += _only_for(known.prlimit, _new_mark())
    no_namespace = [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NAMESPACES), (_RETURN, 0, 0, _EPERM)]
    steps += _only_for(known.clone, no_namespace)
    for number in known.sockets:
        steps += _only_for(number, _sockets(also))
    for number, place in known.sends.items():
        steps += _only_for(
            number, [(_LOAD, 0, 0, place), (_ANY_BIT, 0, 1, _FAST_OPEN), (_RETURN, 0, 0, _EOPNOTSUPP)]
        )
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _only_for(number: int, steps: list[SeccompStep]) -> list[SeccompStep]:
    """Let the steps be taken for one system call only; the number is loaded before and after."""
    return [(_EQUAL, 0, len(steps) + 1, number), *steps, (_LOAD, 0, 0, _NUMBER)]


def _new_mark() -> list[SeccompStep]:
    """Refuse to set the limit; a call that only reads it passes no new one."""
    return [
        *((_LOAD, 0, 0, _SECOND), (_EQUAL, 0, 5, _MARKED)),
        *((_LOAD, 0, 0, _THIRD), (_EQUAL, 0, 2, 0)),
        *((_LOAD, 0, 0, _THIRD + 4), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _EPERM)),
    ]


def _flags() -> list[SeccompStep]:
    refused = [step for word in _SET_FLAGS for step in ((_EQUAL, 0, 1, word), (_RETURN, 0, 0, _EPERM))]
    return [(_LOAD, 0, 0, _SECOND), *refused]


def _sockets(also: Collection[Also]) -> list[SeccompStep]:
    """Refuse every socket but those of this machine, and of the internet by TCP and UDP."""
    if Also.INTERNET in also:
        internet: list[SeccompStep] = [(_RETURN, 0, 0, _EACCES)]
    else:
        kinds = _refuse_but(_STREAM_OR_DATAGRAM, _EPROTONOSUPPORT)
        internet = [
            *((_LOAD, 0, 0, _SECOND), (_AND, 0, 0, 0xF), *kinds),
            *((_LOAD, 0, 0, _THIRD), *_refuse_but(_PROTOCOLS, _EPROTONOSUPPORT)),
        ]
    netlink = [(_LOAD, 0, 0, _THIRD), *_refuse_but((_ROUTES, _SOCKETS), _EPROTONOSUPPORT)]
    load: SeccompStep = (_LOAD, 0, 0, _FIRST)
    first, second = _INTERNET
    return [
        *(load, *_refuse_but((_UNIX, _NETLINK, *_INTERNET), _EPERM)),
        *((_EQUAL, 1, 0, first), (_EQUAL, 0, len(internet) + 1, second), *internet, load),
        *((_EQUAL, 0, len(netlink), _NETLINK), *netlink),
    ]


def _refuse_but(known: Sequence[int], error: int) -> list[SeccompStep]:
    """Refuse what is loaded unless it is one of these."""
    jumps = [(_EQUAL, len(known) - place, 0, one) for place, one in enumerate(known)]
    return [*jumps, (_RETURN, 0, 0, error)]
