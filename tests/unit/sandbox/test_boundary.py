"""What commands can do, read from its effects."""

import fcntl
import json
import os
import threading
import time
from pathlib import Path

import pytest

from agentflow.sandbox.profile import CHECKS, SandboxOpenings
from tests.support.attacks import ALTERING, POLICY, WAYS, state_of
from tests.support.repo import Repo
from tests.unit.sandbox.conftest import Inside

READERS = ("planner", "reviewer", "somebody", "")


@pytest.mark.parametrize("shell", WAYS)
def test_what_a_reader_or_a_check_writes_is_not_there(inside: Inside, repo: Repo, shell: str) -> None:
    before = state_of(repo.root)
    for who in ("explorer", CHECKS):
        inside(who, shell)
    if "setsid" in shell:
        time.sleep(0.5)
    assert state_of(repo.root) == before


@pytest.mark.parametrize("who", READERS)
def test_no_role_that_only_reads_has_a_way_to_write(inside: Inside, repo: Repo, who: str) -> None:
    before = state_of(repo.root)
    inside(who, "\n".join(f"( {way} )" for way in WAYS))
    assert state_of(repo.root) == before


def test_a_reader_changes_no_mode_owner_time_or_attribute(inside: Inside, repo: Repo) -> None:
    before = state_of(repo.root), os.listxattr(repo.root / "a.txt"), flags_of(repo.root / "a.txt")
    inside("explorer", "\n".join(f"( {way} )" for way in ALTERING))
    assert before == (state_of(repo.root), os.listxattr(repo.root / "a.txt"), flags_of(repo.root / "a.txt"))


def flags_of(path: Path) -> bytes:
    """What chattr sets; 0x80086601 is FS_IOC_GETFLAGS."""
    with path.open() as file:
        try:
            return fcntl.ioctl(file, 0x80086601, bytes(8))
        except OSError:
            return b""  # this file system has none


def test_the_implementer_sets_modes(inside: Inside, repo: Repo) -> None:
    inside("implementer", "chmod 755 a.txt")
    assert (repo.root / "a.txt").stat().st_mode & 0o777 == 0o755


def test_what_is_masked_is_read_by_no_role_that_reads(inside: Inside, repo: Repo) -> None:
    repo.write({".env": "K=hunter2\n", "src/deep/.env": "K=hunter2\n", "src/deep/seen": "seen\n"})
    masked = tuple(repo.root / name for name in (".env", "src/deep/.env", ".git/objects"))
    shell = "grep -r hunter2 . ; cat .git/objects/*/* | wc -c; ls . src/deep; cat src/deep/seen"
    said = inside("explorer", shell, opened=SandboxOpenings(masked=masked)).tail
    assert "hunter2" not in said
    assert {"0", "a.txt", "seen", "src"} < set(said.split())
    assert "hunter2" not in inside("implementer", "cat .env", opened=SandboxOpenings(masked=masked)).tail
    assert "hunter2" in inside(CHECKS, "cat src/deep/.env", opened=SandboxOpenings(masked=masked)).tail


def test_a_check_sees_and_changes_its_own_view(inside: Inside) -> None:
    shell = "echo x > a.txt; rm src/b.txt; touch src/new; cat a.txt .venv/ignored.txt; ls src; git status -s"
    said = inside(CHECKS, shell).tail
    assert said.split("\n")[:3] == ["x", "seen", "new"]
    assert " M a.txt" in said
    assert " D src/b.txt" in said


def test_a_check_runs_at_the_repository_s_own_path(inside: Inside, repo: Repo, is_full: bool) -> None:
    said = inside(CHECKS, f"pwd; cat {repo.root}/a.txt").tail
    assert said.endswith("a\n")
    assert (said.splitlines()[0] == str(repo.root)) is is_full


def test_the_implementer_writes_the_repository(inside: Inside, repo: Repo, is_full: bool) -> None:
    inside("implementer", "echo x > a.txt; rm src/b.txt; echo n > src/new")
    assert (repo.read("a.txt"), repo.read("src/new")) == ("x\n", "n\n")
    assert not (repo.root / "src/b.txt").exists()
    assert inside("implementer", "touch top").exit_code == (0 if is_full else 1)


@pytest.mark.parametrize("shell", POLICY)
def test_the_implementer_cannot_touch_policy(inside: Inside, repo: Repo, shell: str) -> None:
    repo.write({".gitattributes": "* text\n", ".claude/agentflow/ev-0001.json": "{}"})
    before = state_of(repo.root)
    inside("implementer", shell)
    assert state_of(repo.root) == before


@pytest.mark.parametrize("make", ["echo x > {}", "mkdir {}", "ln -s /etc/passwd {}", "mkfifo {}"])
def test_missing_protected_names_are_not_left_standing(
    inside: Inside, repo: Repo, tmp_path: Path, is_full: bool, make: str
) -> None:
    before = state_of(repo.root)
    names = (".MCP.json", ".agents", "CLAUDE.md", "AGENTS.md", ".env", ".env.local", ".envrc", ".vscode")
    finished = inside("implementer", "\n".join(make.format(name) for name in names))
    assert state_of(repo.root) == before
    made = sorted(path.name for path in (tmp_path / "output.set-aside").glob("*"))
    assert made == (sorted(names) if is_full else [])
    assert len(finished.notes) == len(made)


def test_a_protected_link_and_what_it_leads_to_stay(inside: Inside, repo: Repo) -> None:
    repo.write({"shared/rules/settings.json": "{}", "docs/agents.md": "old\n"})
    (repo.root / ".agents").symlink_to("shared/rules")
    (repo.root / "AGENTS.md").symlink_to("docs/agents.md")
    before = held(repo.root)
    for shell in (
        "rm .agents; mkdir .agents; echo x > .agents/x; rm AGENTS.md; echo x > AGENTS.md",
        "echo x > AGENTS.md; echo x > shared/rules/settings.json; ln -sfn /tmp .agents",
        "mv shared s2; mkdir -p shared/rules; echo evil > shared/rules/settings.json; rm AGENTS.md",
    ):
        inside("implementer", shell)
    assert held(repo.root) == before


def test_no_command_makes_or_changes_a_repository_inside(
    inside: Inside, repo: Repo, tmp_path: Path, is_full: bool
) -> None:
    repo.git("init", "-q", "vendor/lib")
    before = held(repo.root)
    finished = inside(
        "implementer",
        "git init -q src; git -C src config core.fsmonitor 'touch /tmp/x'; mkdir -p src/env/.GIT; "
        "echo 'gitdir: ../a' > src/env/.git; cp -r src/.git vendor/lib/deeper.git; mv src/.git src/env/kept; "
        "echo x > vendor/lib/.git/hooks/post-checkout; mv vendor other; git -C vendor/lib config a.b c; "
        "git init -q src",
    )
    after = held(repo.root)
    folders = {path for path in after if "/.git/" in path.lower().removeprefix(f"{repo.root}/.git/")}
    assert {path: after[path] for path in folders} == {path: before[path] for path in folders}
    assert not list(repo.root.glob("src/**/.[gG][iI][tT]"))
    assert sum("is protected" in note for note in finished.notes) == (5 if is_full else 4)
    assert (tmp_path / "output.set-aside/src/.git~/HEAD").is_file()
    inside("implementer", "echo fine > vendor/lib/new.txt")
    if is_full:
        assert repo.read("vendor/lib/new.txt") == "fine\n"


def test_no_command_leaves_a_repository_among_packages_or_a_bare_one(inside: Inside, repo: Repo) -> None:
    repo.write(
        {"node_modules/x/a.js": "a\n", "src/config": "mine\n", "src/objects/a": "a\n", "lib/HEAD": "my\n"}
    )
    repo.git("init", "-q", "node_modules/there")
    repo.git("init", "-q", "--bare", "src/old.git")
    before = held(repo.root)
    finished = inside(
        "implementer",
        "git init -q node_modules/x; git init -q .venv/y; git init -q --bare src/bare; "
        "mkdir src/refs; echo 'ref: refs/heads/x' > src/HEAD; mkdir src/z; echo x > src/z/HEAD; "
        "echo . > src/z/commondir; "
        "git -C src/old.git config core.fsmonitor x; git -C node_modules/there config core.fsmonitor x; "
        "echo changed > node_modules/x/a.js; echo also > lib/HEAD",
    )
    after = held(repo.root)
    assert (
        before.items()
        - {str(repo.root / "node_modules/x/a.js"): b"a\n"}.items()
        - {str(repo.root / "lib/HEAD"): b"my\n"}.items()
        <= after.items()
    )
    found = {
        str(path.relative_to(repo.root)) for path in repo.root.rglob("*") if path.name in (".git", "HEAD")
    }
    assert {path for path in found if not path.startswith((".git/", "node_modules/there/.git/"))} == {
        *(".git", "node_modules/there/.git", "src/old.git/HEAD", "lib/HEAD")
    }
    assert sum("is protected" in note for note in finished.notes) >= 2
    assert (repo.read("node_modules/x/a.js"), repo.read("lib/HEAD")) == ("changed\n", "also\n")


def held(folder: Path) -> dict[str, str | bytes]:
    """What each link leads to and each file holds."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes() for path in found}


def test_a_folder_of_what_is_masked_cannot_be_moved_away(inside: Inside, repo: Repo, is_full: bool) -> None:
    repo.write({"src/deep/.env": "K=hunter2\n"})
    opened = SandboxOpenings(masked=(repo.root / "src/deep/.env",))
    inside("implementer", "mv src other; mv src/deep other", opened=opened)
    if is_full:
        assert "hunter2" not in inside("implementer", "cat */.env */*/.env", opened=opened).tail


def test_a_name_that_the_user_opened_is_written(inside: Inside, repo: Repo, is_full: bool) -> None:
    repo.write({"AGENTS.md": "old\n"})
    inside(
        "implementer",
        "echo new > AGENTS.md; echo K=1 > .env",
        opened=SandboxOpenings(names=("AGENTS.md", ".env")),
    )
    assert repo.read("AGENTS.md") == "new\n"
    if is_full:
        assert repo.read(".env") == "K=1\n"


def test_nothing_is_left_behind(inside: Inside, repo: Repo, tmp_path: Path) -> None:
    before = state_of(repo.root)
    for who in ("explorer", "implementer", CHECKS):
        inside(who, "true")
    assert state_of(repo.root) == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("agentflow")) == []


def test_home_and_temporary_files_are_hidden(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "myhome"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("canary-secret")
    monkeypatch.setenv("HOME", str(home))
    for who in ("explorer", "implementer", CHECKS):
        said = inside(
            who,
            f"cat {home}/.ssh/id; ls {home}/.ssh {tmp_path}; echo x > {home}/new; echo x > {tmp_path}/new",
        )
        assert "canary-secret" not in said.tail
    assert not (home / "new").exists()
    assert not (tmp_path / "new").exists()


def test_no_child_sees_the_key(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GH_TOKEN", "HTTPS_PROXY", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "canary-secret")
    for who in ("explorer", "implementer", CHECKS):
        said = inside(who, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
        assert "canary-secret" not in said.tail


def test_a_variable_that_the_user_passes_on_is_seen(inside: Inside) -> None:
    said = inside("explorer", "echo $LICENSE", opened=SandboxOpenings(environment={"LICENSE": "abc"}))
    assert said.tail == "abc\n"


def test_a_group_is_gone_soon_after_its_limit(inside: Inside) -> None:
    mark = f"agentflow-{os.getpid()}-{time.monotonic_ns()}"
    shell = f"""
trap '' TERM
for i in 1 2 3; do setsid bash -c "trap '' TERM; exec -a {mark} sleep 60" & done
nohup bash -c "exec -a {mark} sleep 60" &
exec -a {mark} sleep 60"""
    begin = time.monotonic()
    finished = inside("implementer", shell, timeout=1)
    assert finished.timed_out
    assert time.monotonic() - begin < 30
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in words_of(path)]


def words_of(cmdline: Path) -> bytes:
    """Return what a process was started with; nothing of one that ends meanwhile or is another user's."""
    try:
        return cmdline.read_bytes()
    except OSError:
        return b""


def test_a_bomb_is_killed_whoever_lit_it(inside: Inside) -> None:
    threads = "for _ in range(2_300): threading.Thread(target=time.sleep, args=(60,)).start()"
    for who in ("implementer", CHECKS):
        finished = inside(who, f"python3 -c 'import threading, time\n{threads}'; sleep 60", timeout=50)
        assert finished.notes == ("it was killed: it had more than 2,048 processes and threads at once",)


ESCAPE = """
import os, resource, time
for limit in ((7, resource.getrlimit(10)[1]), (7, 7)):
    try: resource.setrlimit(10, limit)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sh', ['sh', '-c', 'sleep 1; echo late > a.txt'], {})
"""


def test_no_process_sheds_the_mark_by_which_it_is_killed(inside: Inside, repo: Repo) -> None:
    repo.write({"src/escape.py": ESCAPE})
    inside("implementer", "python3 src/escape.py; sleep 0.2")
    time.sleep(1.2)
    assert repo.read("a.txt") == "a\n"
    assert inside("explorer", "ulimit -a | grep -c .").exit_code == 0


def test_a_child_that_holds_the_output_does_not_hang_us(inside: Inside, repo: Repo) -> None:
    begin = time.monotonic()
    finished = inside("implementer", "setsid bash -c 'sleep 1; echo late >> a.txt; sleep 60' & echo done")
    assert finished.exit_code == 0
    assert finished.tail == "done\n"
    assert time.monotonic() - begin < 20
    time.sleep(1.2)
    assert repo.read("a.txt") == "a\n"


def test_commands_can_run_side_by_side(inside: Inside) -> None:
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: said.append(inside("explorer", f"echo {n}").tail.strip()))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4


def test_a_large_file_ends_the_command(inside: Inside) -> None:
    finished = inside(CHECKS, "python3 -c \"open('big', 'wb').truncate(2 << 30)\" && echo made; ls -l big")
    assert "made" not in finished.tail


def test_a_command_s_ending_is_told(inside: Inside) -> None:
    assert inside("explorer", "exit 7").exit_code == 7
    assert inside("explorer", "echo '\"exit-code\" started'; exit 125").exit_code == 125
    assert inside("explorer", "no-such-program").exit_code == 127
    assert json.loads(inside("explorer", "echo '{}'").tail) == {}
