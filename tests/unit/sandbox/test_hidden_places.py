"""What of hidden places commands see: an interpreter's own files, whatever a repository brings."""

import os
import shutil
from pathlib import Path

import pytest

from agentflow.sandbox.profile import CHECKS, SandboxOpenings
from tests.support.repo import Repo
from tests.unit.sandbox.conftest import Inside

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


PACKAGES = {"npm": ".npm-global/lib/node_modules/tool/cli", "pipx": ".local/share/pipx/venvs/tool/bin/tool"}


@pytest.mark.parametrize("target", PACKAGES.values(), ids=PACKAGES)
def test_a_program_on_path_that_is_a_link_to_its_package_is_found(
    inside: Inside, home: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    program, link = home / target, home / target.partition("/")[0] / "bin/tool"
    for folder in (program.parent, link.parent):
        folder.mkdir(parents=True)
    (program.parent.parent / "pyvenv.cfg").touch()
    program.write_text("#!/bin/sh\necho it runs\n")
    program.chmod(0o755)
    link.symlink_to(os.path.relpath(program, link.parent))
    assert "not found" in inside(CHECKS, "tool").tail
    monkeypatch.setenv("PATH", f"{link.parent}:{os.environ['PATH']}")
    assert inside(CHECKS, "tool").tail == "it runs\n"


@pytest.mark.parametrize("package", ["private/node_modules/tool", "private"])
def test_a_program_on_path_opens_nothing_to_which_the_repository_leads_it(
    inside: Inside, repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    program, link = home / package / "bin/cli", home / "own/bin/tool"
    for folder in (program.parent, link.parent):
        folder.mkdir(parents=True)
    (home / package / "pyvenv.cfg").touch()
    program.write_text("canary-secret\n")
    (repo.root / "tool").symlink_to(program)
    link.symlink_to(repo.root / "tool")
    monkeypatch.setenv("PATH", f"{link.parent}:{os.environ['PATH']}")
    assert "canary-secret" not in inside(CHECKS, f"cat {program}").tail


def test_a_link_on_path_opens_no_folder_that_holds_it(
    inside: Inside, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = interpreter(home / "own")
    (home / "own/pyvenv.cfg").touch()
    (program.parent / "tool").symlink_to(program.name)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert "canary-secret" not in inside(CHECKS, f"cat {home}/own/share/keyrings/login").tail


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
    said = inside(CHECKS, shell, opened=SandboxOpenings(readable=(environment,))).tail
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


def test_what_only_root_reads_of_the_system_is_read_by_no_command(inside: Inside) -> None:
    for who in ("explorer", "implementer", CHECKS):
        said = inside(who, "cat /etc/shadow /etc/gshadow 2>/dev/null; head -c 4 /etc/passwd").tail
        assert said == "root"
