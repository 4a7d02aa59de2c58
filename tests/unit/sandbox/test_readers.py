"""Whatever a role that looks, reviews or verifies runs, refused by words or not: nothing of it lasts."""

import hashlib
import shlex
import socket
from functools import reduce
from pathlib import Path

import pytest

from tests.support.repo import Repo
from tests.unit.sandbox.conftest import Inside

ATTACKS = (
    "touch x",
    "echo x > x",
    "echo x > a.txt",
    ": > a.txt",
    "sed -i s/a/x/ a.txt",
    "sed -n 'w x' a.txt",
    "sed '1e touch x' a.txt",
    "awk 'BEGIN { system(\"touch x\") }'",
    "awk '{ print > \"x\" }' a.txt",
    'awk \'BEGIN { print "x" | "sh -c \\"cat > x\\"" }\'',
    "find . -name '*.txt' -exec sh -c 'echo x > {}' \\;",
    "find . -name '*.txt' -delete",
    "find . -fprint x",
    "ls | xargs touch x",
    "tar -cf x a.txt",
    "tar -cf - a.txt | tar -xf - --to-command='touch x'",
    "tar -cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec='touch x'",
    "sort -o a.txt /etc/hostname",
    'python3 -c \'open("x", "w")\'',
    "python3 - <<'E'\nimport shutil; shutil.rmtree('src')\nE",
    "perl -i -pe 's/a/x/' a.txt",
    "bash -c 'touch x'",
    "echo 'touch x' | sh",
    "eval touch x",
    "trap 'touch x' EXIT",
    "PATH=. LD_PRELOAD=./x BASH_ENV=./x touch x",
    "GIT_EXTERNAL_DIFF='touch x; true' git diff HEAD~0",
    "git -c core.fsmonitor='touch x' status",
    "git -c alias.z='!touch x' z",
    "git config core.pager 'touch x'",
    "git config --global core.pager 'touch x'",
    "git commit --allow-empty -m x",
    "git checkout -b x",
    "git stash",
    "git reset --hard HEAD",
    "git update-ref refs/heads/x HEAD",
    "git init x",
    "git worktree add x",
    "echo x >> .git/config",
    "echo x > .git/hooks/pre-commit",
    "echo '{\"hooks\": {}}' > .claude/settings.json",
    "rm -rf .git .claude src a.txt",
    "mv a.txt b.txt",
    "ln -s a.txt x",
    "chmod 000 a.txt",
    "touch -d 2001-01-01 a.txt",
    "mkdir -p x/y",
    "touch {home}/x",
    "touch {outside}/x",
    "(sleep 0.2; touch x) & disown",
    "setsid sh -c 'sleep 0.2; touch x' &",
    "mount --bind / /mnt",
    "unshare -r touch x",
    "nsenter -t 1 -m touch x",
    "exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'",
    "curl -s http://127.0.0.1:{port}/",
)


def state(folder: Path) -> dict[str, tuple[int, float, str]]:
    """Return mode, time and content of each file of a folder, git's own among them."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime if path.is_file() else 0,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("who", ["explorer", "reviewer", "verifier"])
def test_no_attack_of_a_reader_has_an_effect(
    who: str, inside: Inside, repo: Repo, is_full: bool, tmp_path: Path
) -> None:
    if not is_full:
        pytest.skip("elsewhere commands are judged by words")
    assert len(ATTACKS) >= 40
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = {"{home}": repo.home, "{outside}": tmp_path, "{port}": server.getsockname()[1]}
        lines = [
            reduce(lambda text, key: text.replace(key, str(given[key])), given, text) for text in ATTACKS
        ]
        before = state(repo.root), state(repo.home)
        script = "".join(f"timeout 5 bash -c {shlex.quote(line)} 2>&1 </dev/null\n" for line in lines)
        ran = inside(who, f"{script}sleep 0.5; echo came to its end", timeout=120)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert "came to its end" in ran.tail
    assert (state(repo.root), state(repo.home)) == before
    assert not (tmp_path / "x").exists()
