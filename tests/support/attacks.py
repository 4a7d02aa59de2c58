"""Ways to write through a shell, and how to see from outside whether one succeeded."""

import hashlib
from pathlib import Path

WAYS = (
    "echo x > a.txt",
    "echo x >> a.txt",
    "rm -f a.txt",
    "mv a.txt c.txt",
    "sed -i s/a/x/ a.txt",
    "cp src/b.txt a.txt",
    "ln -sf /etc/passwd a.txt",
    "python3 -c \"open('a.txt', 'w').write('x')\"",
    "truncate -s 0 a.txt",
    "git -c user.name=x -c user.email=x@x commit --allow-empty -qm x",
    "git checkout -q -b other",
    "mkdir new && touch new/x",
    "tar cf - src | tar xf - -C . --transform s/src/copy/",
    "exec 3<>a.txt; echo x >&3",
    "install -m 755 /bin/true hook; dd if=/dev/zero of=a.txt bs=1 count=1",
    "bash -c 'setsid sh -c \"sleep 0.3; echo x > a.txt\" & disown'",
)
"""Into the repository, from its root."""
ALTERING = (
    "chmod 000 a.txt",
    "chmod -R 777 .",
    "touch -d 2001-01-01 src/b.txt",
    "touch a.txt",
    "cp -p --attributes-only /etc/hostname a.txt",
    "python3 -c \"import os; os.fchmod(os.open('a.txt', 0), 0o777)\"",
    "python3 -c \"import os; os.utime(os.open('a.txt', 0))\"",
    "python3 -c \"import os; os.chown('a.txt', -1, max(os.getgroups()))\"",
    "python3 -c \"import os; os.setxattr('a.txt', 'user.x', b'x')\"",
    "python3 -c \"import ctypes; ctypes.CDLL(None).syscall(452, -100, b'a.txt', 0o777, 0)\"",
    "python3 -c \"import fcntl; fcntl.ioctl(open('a.txt'), 0x40086602, b'@' + bytes(7))\"",
)
"""Modes, owners, times and attributes."""
POLICY = (
    "echo x > .git/hooks/pre-commit",
    "git config core.fsmonitor ./evil",
    "echo '{}x' > .claude/settings.json",
    "rm -rf .claude",
    "mv .claude elsewhere",
    "mv .git elsewhere",
    "mkdir -p .claude/agents; touch .claude/agents/evil.md",
    "rm -rf .git/*; rm -rf .git",
    "echo x > .claude/agentflow/ev-0001.json",
    "ln -sfn /tmp .claude",
    "python3 -c \"import os; os.rename('.git', 'src/git')\"",
    "echo x > .gitattributes",
)
"""What decides over roles, hooks and permissions, and what we wrote down."""


def state_of(folder: Path) -> dict[str, object]:
    """Everything about each file that a write could change."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = b"" if path.is_dir() or path.is_symlink() else path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, status.st_mtime_ns, digest)
    return found
