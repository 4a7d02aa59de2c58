"""What commands can do, read from its effects."""

import fcntl
import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from agentflow.sandbox.profile import CHECKS, Opened
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
    said = inside("explorer", shell, opened=Opened(masked=masked)).tail
    assert "hunter2" not in said
    assert {"0", "a.txt", "seen", "src"} < set(said.split())
    assert "hunter2" not in inside("implementer", "cat .env", opened=Opened(masked=masked)).tail
    assert "hunter2" in inside(CHECKS, "cat src/deep/.env", opened=Opened(masked=masked)).tail


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


LINKS = {
    ".venv": ("{}", "cat .venv/id"),
    ".venv/bin/python": ("{}/deep/er", "true"),
    "AGENTS.md": ("{}/id", "cat AGENTS.md"),
    ".vscode": ("{}", "cat .vscode/id"),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_of_the_repository_opens_no_hidden_folder(
    inside: Inside, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    secret = tmp_path / "myhome/.ssh"
    (secret / "deep").mkdir(parents=True)
    (secret / "id").write_text("canary-secret")
    monkeypatch.setenv("HOME", str(secret.parent))
    shutil.rmtree(repo.root / ".venv")
    (repo.root / name).parent.mkdir(parents=True, exist_ok=True)
    target, shell = LINKS[name]
    (repo.root / name).symlink_to(target.format(secret))
    for who in ("explorer", "implementer", CHECKS):
        finished = inside(who, f"{shell}; cat {secret}/id; echo done")
        assert "canary-secret" not in finished.tail
        assert finished.tail.endswith("done\n")


def interpreter(prefix: Path, *, library: bool = True) -> Path:
    """Make what looks like an installed Python; it prints the files it is given."""
    program = prefix / "bin/python3.11"
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/cat", program)
    (program.with_name("python3")).symlink_to(program.name)
    (prefix / "lib/python3.11/site-packages").mkdir(parents=True, exist_ok=True)
    if library:
        (prefix / "lib/python3.11/os.py").write_text("the library\n")
    (prefix / "share/keyrings").mkdir(parents=True, exist_ok=True)
    (prefix / "share/keyrings/login").write_text("canary-secret")
    return program


@pytest.fixture
def home(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the user, and no environment in the repository."""
    folder = tmp_path / "myhome"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    shutil.rmtree(repo.root / ".venv")
    return folder


PLANTED = {
    "a folder": (".venv/bin/python", ".local/lib/python3.11"),
    "a folder above": (".venv/bin/python", ".local/share/keyrings"),
    "a script": (".venv/bin/python", ".local/bin/python3-script"),
    "a script of another name": (".venv/bin/python", ".local/bin/python"),
    "an interpreter": (".venv/bin/python", ".local/bin/python3.11"),
    "a link to an interpreter": (".venv/bin/python", ".local/bin/python3"),
    "the folder of an interpreter": (".venv/bin", ".local/bin"),
    "an environment": (".venv", ".local"),
    "another environment": ("env", ".local"),
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("is_active", [False, True])
def test_an_environment_of_the_repository_opens_nothing_beside_an_interpreter(
    inside: Inside, repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch, planted: str, is_active: bool
) -> None:
    interpreter(home / ".local")
    for name in ("python3-script", "python"):
        (home / ".local/bin" / name).write_text("#!/bin/sh\n")
        (home / ".local/bin" / name).chmod(0o755)
    (home / ".local/pyvenv.cfg").write_text("home = /usr/bin\n")
    link, target = PLANTED[planted]
    (repo.root / link).parent.mkdir(parents=True, exist_ok=True)
    (repo.root / link).symlink_to(os.path.relpath(home / target, (repo.root / link).parent))
    folder = repo.root / link.partition("/")[0]
    if is_active:
        monkeypatch.setenv("VIRTUAL_ENV", str(folder))
        monkeypatch.setenv("PATH", f"{folder}/bin:{folder}:{os.environ['PATH']}")
    keys = ".local/share/keyrings/login"
    shell = f"cat {home}/{keys} {link}/../../../{keys} {link}/../share/keyrings/login {link}/login; echo done"
    for who in ("explorer", "implementer", CHECKS):
        said = inside(who, shell).tail
        assert "canary-secret" not in said
        assert said.endswith("done\n")


def test_an_interpreter_of_the_user_opens_nothing_beside_it(
    inside: Inside, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = interpreter(home / "own")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    said = inside(
        CHECKS, f"cat {home}/own/share/keyrings/login; python3 {home}/own/lib/python3.11/os.py"
    ).tail
    assert "canary-secret" not in said
    assert said.endswith("the library\n")


def test_a_home_with_an_interpreter_s_library_is_no_interpreter(
    inside: Inside, repo: Repo, home: Path
) -> None:
    program = interpreter(home / "own", library=False)
    (repo.root / ".venv/bin").mkdir(parents=True)
    (repo.root / ".venv/bin/python").symlink_to(program)
    assert "the library" not in inside(CHECKS, f".venv/bin/python {home}/own/lib/python3.11/os.py").tail


def test_an_environment_works_wherever_its_interpreter_lies(inside: Inside, repo: Repo, home: Path) -> None:
    interpreter(home / "pythons/3.11.7")
    (home / "pythons/now").symlink_to("3.11.7")
    (repo.root / ".venv/bin").mkdir(parents=True)
    (repo.root / ".venv/pyvenv.cfg").write_text(f"home = {home}/pythons/now/bin\n")
    (repo.root / ".venv/bin/python").symlink_to(home / "pythons/now/bin/python3")
    for who in ("explorer", "implementer", CHECKS):
        said = inside(who, f".venv/bin/python {home}/pythons/now/lib/python3.11/os.py").tail
        assert said == "the library\n"


def test_an_environment_that_is_opened_works_wherever_its_interpreter_lies(
    inside: Inside, home: Path, tmp_path: Path
) -> None:
    interpreter(home / "own")
    environment = tmp_path / "other/.venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(home / "own/bin/python3")
    shell = f"{environment}/bin/python {home}/own/lib/python3.11/os.py {home}/own/share/keyrings/login"
    said = inside(CHECKS, shell, opened=Opened(readable=(environment,))).tail
    assert "the library\n" in said
    assert "canary-secret" not in said


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_that_the_user_names_is_shown(
    inside: Inside, repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (home / ".venvs/x/bin").mkdir(parents=True)
    (home / ".venvs/x/pyvenv.cfg").touch()
    (home / ".venvs/x/tool.txt").write_text("a tool\n")
    (repo.root / ".venv").symlink_to(home / ".venvs/x")
    assert "a tool" not in inside(CHECKS, "cat .venv/tool.txt").tail
    monkeypatch.setenv(variable, str(home / ".venvs/x"))
    assert inside(CHECKS, "cat .venv/tool.txt").tail == "a tool\n"


def test_a_git_file_opens_nothing_by_itself(inside: Inside, repo: Repo, home: Path, tmp_path: Path) -> None:
    other = Repo(home / "other", tmp_path / "home").write({"id": "x"}).commit()
    shutil.rmtree(repo.root / ".git")
    (repo.root / ".git").write_text(f"gitdir: {other.root}/.git\n")
    said = inside("explorer", f"cat {other.root}/.git/HEAD").tail
    assert "Permission denied" in said or "No such file" in said


def test_a_folder_of_what_is_masked_cannot_be_moved_away(inside: Inside, repo: Repo, is_full: bool) -> None:
    repo.write({"src/deep/.env": "K=hunter2\n"})
    opened = Opened(masked=(repo.root / "src/deep/.env",))
    inside("implementer", "mv src other; mv src/deep other", opened=opened)
    if is_full:
        assert "hunter2" not in inside("implementer", "cat */.env */*/.env", opened=opened).tail


def test_a_name_that_the_user_opened_is_written(inside: Inside, repo: Repo, is_full: bool) -> None:
    repo.write({"AGENTS.md": "old\n"})
    inside("implementer", "echo new > AGENTS.md; echo K=1 > .env", opened=Opened(names=("AGENTS.md", ".env")))
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
    said = inside("explorer", "echo $LICENSE", opened=Opened(environment={"LICENSE": "abc"}))
    assert said.tail == "abc\n"


def test_the_network_is_closed(inside: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('through')"
        for who in ("explorer", "implementer", CHECKS):
            assert "through" not in inside(who, f'python3 -c "{connect}"').tail
            opened = inside(who, f'python3 -c "{connect}"', opened=Opened(network=(who,)))
            assert "through" in opened.tail


AROUND = {
    "multipath TCP": "socket.socket(2, 1, 262).connect(to)",
    "fast open by sendto": "socket.socket().sendto(b'x', 0x20000000, to)",
    "fast open by sendmsg": "socket.socket().sendmsg([b'x'], [], 0x20000000, to)",
    "fast open by connect": "s = socket.socket(); s.setsockopt(6, 30, 1); s.connect(to); s.send(b'x')",
}


@pytest.mark.parametrize("way", AROUND)
def test_no_way_around_connect_leads_out(inside: Inside, way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; to = {server.getsockname()}; {AROUND[way]}; print('through')"
        for who in ("explorer", "implementer", CHECKS):
            assert "through" not in inside(who, f'python3 -c "{code}"').tail
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_nobody_reaches_a_command_that_listens(inside: Inside, is_full: bool) -> None:
    code = "import os, socket; s = socket.socket(); s.listen(); print('on', os.readlink('/proc/self/ns/net'))"
    said = inside("explorer", f'python3 -c "{code}"').tail
    assert ("on net:" in said) is is_full
    assert Path("/proc/self/ns/net").readlink().name not in said


KINDS = {"UDP-Lite": (2, 2, 136), "SCTP": (2, 1, 132), "SMC": (2, 1, 256), "SMC itself": (43, 1, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_other_protocols_are_refused_also_with_a_network(inside: Inside, kind: str) -> None:
    code = f"import socket; socket.socket{KINDS[kind]}; print('through')"
    for opened in (Opened(), Opened(network=("explorer",))):
        assert "through" not in inside("explorer", f'python3 -c "{code}"', opened=opened).tail


def test_sockets_of_this_machine_go_on_working(inside: Inside) -> None:
    code = """import multiprocessing, socket
socket.socketpair(); socket.socketpair(type=socket.SOCK_SEQPACKET)
socket.if_nameindex(); socket.socket(16, 3, 0); socket.socket(16, 2, 4)
with multiprocessing.Manager() as manager:
    print('works', manager.list([1]))"""
    for who in ("explorer", "implementer", CHECKS):
        assert inside(who, f'python3 -c "{code}"').tail == "works [1]\n"


def test_an_open_network_carries_datagrams(inside: Inside) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        code = f"import socket; socket.socket(2, 2).sendto(b'asked', {server.getsockname()})"
        inside("explorer", f'python3 -c "{code}"', opened=Opened(network=("explorer",)))
        server.settimeout(5)
        assert server.recv(5) == b"asked"


def test_the_loopback_is_private(inside: Inside, is_full: bool) -> None:
    shell = """python3 -c "
import socket
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname(), 2)
print('through')" """
    assert ("through" in inside("explorer", shell).tail) is is_full


def test_a_service_s_socket_is_out_of_reach(inside: Inside, repo: Repo, is_full: bool) -> None:
    code = "import socket; socket.socket(socket.AF_UNIX).connect('s'); print('through')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{repo.root}/s")
        server.listen()
        assert ("through" in inside("explorer", f'python3 -c "{code}"').tail) is not is_full


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
