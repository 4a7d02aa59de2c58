"""Run by a bare Python in a process of its own: mount an overlay or give up rights, then become a command.

    overlay LOWER SCRATCH WORD…     mount an overlay
    cache LOWER SCRATCH WORD…       the same; where it cannot be mounted, its folder stays empty
    restrict SPEC WORD…             give up rights
    tie WORD…                       end with the process that starts it
    hold                            keep a network of this process alone until its input ends
    join PROCESS WORD…              enter the network that a process holds

SPEC is a JSON object: the `rights` on files that Landlock leaves, the descriptor of the seccomp program to
load as `filter`, and that of where the start is noted as `status`. Every command pays for what is imported
here.
"""

import ctypes
import os
import stat
import struct
import sys
import time

FAILED = 125
"""The exit code when the command was not started."""
_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_SET_FLAGS, _IS_UP = 0x8914, 0x41
_BIND, _PRIVATE = 0x1000, 0x40000 | 0x4000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_STEP_BYTES = 8
_DIE_WITH_PARENT, _KILL, _END = 1, 9, 15
_DROP_BOUND, _CAPABILITY_VERSION = 24, 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
OLDEST_LANDLOCK = 3
"""The version of the interface, in Linux 6.2, before which any file of yours could be emptied."""
_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def become_command() -> None:
    """Do what the words of this process say."""
    try:
        _run_step(sys.argv[1], sys.argv[2:])
    except OSError as error:
        sys.stderr.write(f"agentflow: the sandbox could not be set up: {error}\n")
        raise SystemExit(FAILED) from None


def _run_step(step: str, words: list[str]) -> None:
    """Prepare this process and become the command. Raises OSError."""
    kernel = ctypes.CDLL(None, use_errno=True)
    if step == "overlay":
        lower, scratch, *words = words
        _mount_overlay(kernel, lower, scratch)
    elif step == "cache":
        lower, scratch, *words = words
        try:  # contextlib takes long to load
            _mount_overlay(kernel, lower, scratch)
        except OSError:
            pass
    elif step == "hold":
        _hold_network(kernel)
        return
    elif step == "join":
        holder, *words = words
        _join_network(kernel, holder)
    elif step == "tie":
        _check(kernel.prctl(_DIE_WITH_PARENT, ctypes.c_ulong(_END), 0, 0, 0), "prctl")
    else:
        spec, *words = words
        _give_up(kernel, spec)
    os.execvp(words[0], words)  # noqa: S606  # there is nothing for a shell to do


def find_landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 when it has none, or it is switched off."""
    kernel = ctypes.CDLL(None, use_errno=True)
    return max(0, int(kernel.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))


def _mount_overlay(kernel: ctypes.CDLL, lower: str, scratch: str) -> None:
    """Show a folder at `scratch`/merged, writable; what is written lies beside it."""
    _own_mounts(kernel)
    base = f"{scratch}/lower"
    _mount(kernel, lower, base, None, _BIND, None)  # a name of our own, whatever characters the folder's has
    work = f"{scratch}/work/{os.getpid()}-{time.monotonic_ns()}"
    os.mkdir(work)  # noqa: PTH102  # a volatile one cannot be mounted again; pathlib takes long to load
    options = f"lowerdir={base},upperdir={scratch}/upper,workdir={work}"
    if os.geteuid() != 0:
        options += ",userxattr"
    try:  # or else its end writes all that the disk still has to write, of whatever process
        _mount(kernel, "overlay", f"{scratch}/merged", "overlay", 0, f"{options},volatile")
    except OSError:  # older than Linux 5.10
        _mount(kernel, "overlay", f"{scratch}/merged", "overlay", 0, options)


def _own_mounts(kernel: ctypes.CDLL) -> None:
    """Enter a mount namespace of our own, for which an ordinary user needs a user namespace too."""
    user, group = os.geteuid(), os.getegid()
    _check(kernel.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER), "unshare")
    if user != 0:
        _map_ids(user, group)
    _mount(kernel, "none", "/", None, _PRIVATE, None)


def _hold_network(kernel: ctypes.CDLL) -> None:
    """Have a network with nothing but a loopback, tell of it, and wait until our input ends."""
    import fcntl  # noqa: PLC0415  # no other step needs them
    import socket  # noqa: PLC0415

    user, group = os.geteuid(), os.getegid()
    _check(kernel.unshare(_NEW_NETWORK if user == 0 else _NEW_NETWORK | _NEW_USER), "unshare")
    if user != 0:
        _map_ids(user, group)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _IS_UP))
    os.write(1, b"held\n")
    os.read(0, 1)


def _join_network(kernel: ctypes.CDLL, holder: str) -> None:
    for kind in ("net",) if os.geteuid() == 0 else ("user", "net"):
        descriptor = os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        _check(kernel.setns(descriptor, 0), "setns")
        os.close(descriptor)


def _map_ids(user: int, group: int) -> None:
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def _mount(
    kernel: ctypes.CDLL, source: str, target: str, kind: str | None, flags: int, options: str | None
) -> None:
    words = [word if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    _check(kernel.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _give_up(kernel: ctypes.CDLL, spec: str) -> None:
    """Leave this process the rights that the spec names, and say that its command starts."""
    import json  # noqa: PLC0415  # an overlay does without

    told = json.loads(spec)
    _check(kernel.prctl(_DIE_WITH_PARENT, ctypes.c_ulong(_KILL), 0, 0, 0), "prctl")
    _drop_capabilities(kernel)
    _restrict_files(kernel, **told["rights"])
    load_filter(kernel, told["filter"])
    os.write(told["status"], b"started")
    os.close(told["status"])


def _drop_capabilities(kernel: ctypes.CDLL) -> None:
    """Be an ordinary user even as root: Landlock knows files, and root reads others' memory."""
    number = 0
    while kernel.prctl(_DROP_BOUND, ctypes.c_ulong(number), 0, 0, 0) == 0:
        number += 1
    head, nothing = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _check(kernel.capset(head, nothing), "capset")


def _restrict_files(
    kernel: ctypes.CDLL, listable: list[str], readable: list[str], writable: list[str], *, network: bool
) -> None:
    """Take every right on files from this process but these, for good. Raises OSError."""
    found = find_landlock_version()
    every = (1 << (15 if found < 5 else 16)) - 1
    sizes = 8 if found < 4 else 16 if found < 6 else 24
    rules = struct.pack("=QQQ", every, 0 if network else _TCP, _ABSTRACT_SOCKETS_AND_SIGNALS)[:sizes]
    ruleset: int = kernel.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
    _check(ruleset, "landlock")
    for paths, rights in ((listable, _READ_FOLDER), (readable, _READ), (writable, every)):
        for path in paths:
            _allow(kernel, ruleset, path, rights & every)
    _check(kernel.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), 0, 0, 0), "prctl")
    _check(kernel.syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
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
        _check(kernel.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), "landlock")
    finally:
        os.close(place)


def load_filter(kernel: ctypes.CDLL, descriptor: int) -> None:
    """Load the filter in a file into the kernel; it cannot be removed again."""
    steps = os.pread(descriptor, 1 << 16, 0)
    memory = ctypes.create_string_buffer(steps, len(steps))
    head = struct.pack("@HP", len(steps) // _STEP_BYTES, ctypes.addressof(memory))
    _check(kernel.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), 0, 0, 0), "prctl")
    _check(kernel.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), head, 0, 0), "seccomp")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
