"""Landlock: which files a process and all it starts may read and write, where there is no bubblewrap.

The standard library alone is imported here: `launch.py` runs without any other.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
READ = _EXECUTE | _READ_FILE | _READ_FOLDER
OLDEST = 3
"""The version of the interface, in Linux 6.2, before which any file of yours could be emptied."""
_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def version() -> int:
    """Return the version of the kernel's interface; 0 when it has none, or it is switched off."""
    return max(0, int(_kernel().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))


def restrict(
    listable: Iterable[str], readable: Iterable[str], writable: Iterable[str], *, network: bool
) -> None:
    """Take every right on files from this process but these, for good. Raises OSError."""
    found = version()
    kernel, every = _kernel(), (1 << (15 if found < 5 else 16)) - 1
    sizes = 8 if found < 4 else 16 if found < 6 else 24
    rules = struct.pack("=QQQ", every, 0 if network else _TCP, _ABSTRACT_SOCKETS_AND_SIGNALS)[:sizes]
    ruleset = _checked(kernel.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0))
    for paths, rights in ((listable, _READ_FOLDER), (readable, READ), (writable, every)):
        for path in paths:
            _allow(kernel, ruleset, path, rights & every)
    _checked(kernel.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), 0, 0, 0))
    _checked(kernel.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(kernel: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there, or not ours to see, needs no right
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, place)
        _checked(kernel.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(place)


def _kernel() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
