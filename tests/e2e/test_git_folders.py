"""Where git keeps its files is another folder: shown to commands if it is the repository's, else refused."""

import os
import shutil
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest

from tests.support import play
from tests.support.attacks import state_of
from tests.support.repo import Done, Repo


@pytest.fixture(params=["full", "partial"])
def path(request: pytest.FixtureRequest, bare_path: str) -> str:
    """Where programs are: all of them, or all but bubblewrap."""
    return os.environ["PATH"] if request.param == "full" else bare_path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a secret, and a repository whose history is nobody else's business."""
    folder = tmp_path / "myhome"
    (folder / ".ssh/objects").mkdir(parents=True)
    (folder / ".ssh/refs").mkdir()
    (folder / ".ssh/id").write_text("canary-secret")
    Repo(folder / "other", tmp_path / "settings").write({"id": "canary-secret"}).commit()
    return folder


@pytest.fixture
def archive(home: Path, tmp_path: Path) -> Repo:
    """What came out of an archive, which holds no folder of git's."""
    made = Repo(home / "archive", tmp_path / "settings").write(play.GREEN)
    shutil.rmtree(made.root / ".git")
    return made


def tried(archive: Repo, home: Path, path: str) -> Done:
    """Let every role look for the secret."""
    shell = f"cat {home}/.ssh/id; git log -p; git --git-dir={home}/other/.git show HEAD"
    look = play.turn(play.call("Bash", command=shell))
    script = [
        play.findings(),
        play.plan("calc.py"),
        play.role("explorer", look),
        play.role("implementer", look),
    ]
    return archive.task("find out why", script=script, env={"HOME": str(home), "PATH": path})


def names(target: str) -> Callable[[Repo, Path], None]:
    """Plant a `.git` file."""

    def plant(archive: Repo, home: Path) -> None:
        (archive.root / ".git").write_text(target.format(home=home))

    return plant


def common(said: str, kind: str = "file") -> Callable[[Repo, Path], None]:
    """Plant a folder of git's that shares another one's objects."""

    def plant(archive: Repo, _home: Path) -> None:
        place = archive.root / (".git" if kind == "folder" else "meta/worktrees/one")
        place.mkdir(parents=True)
        (place / "HEAD").write_text("ref: refs/heads/master\n")
        (place / "commondir").write_text(said)
        (place / "gitdir").write_text(f"{archive.root}/.git\n")
        if said.startswith("\t"):  # where git looks, whose name begins with the tab
            (place / "\t..").mkdir()
            for name in ("objects", "refs"):
                (Path(os.path.normpath(place / said)) / name).mkdir(parents=True)
        if kind == "file":
            (archive.root / ".git").write_text("gitdir: meta/worktrees/one\n")

    return plant


def link(archive: Repo, _home: Path) -> None:
    (archive.root / ".git").symlink_to("../other/.git")


def work_tree_of_another(archive: Repo, home: Path) -> None:
    other = Repo(home / "other", home)
    other.git("worktree", "add", "-q", "../one")
    (archive.root / ".git").write_text(f"gitdir: {home}/other/.git/worktrees/one\n")


def apart(archive: Repo, home: Path) -> None:
    """Name a folder that says nothing of its work tree."""
    other = Repo(home / "other", home)
    other.git("init", "-q", f"--separate-git-dir={home}/apart")
    (archive.root / ".git").write_text(f"gitdir: {home}/apart\n")
    (archive.root / "id").write_text("canary-secret")


def apart_by_a_link(archive: Repo, home: Path) -> None:
    """The same, with links to the other one's files."""
    Repo(home / "other", home).write({"src/a": "a"}).commit()
    apart(archive, home)
    (archive.root / "src").symlink_to(home / "other/src")


PLANTED = {
    "another repository": names("gitdir: {home}/other/.git\n"),
    "a folder with a tab": common("\t../../../../.ssh"),
    "a folder that is none": common("../../../../.ssh\n"),
    "the objects of another": common("../../../../other/.git\n"),
    "the objects of another, in a plain folder": common("../../other/.git\n", kind="folder"),
    "a link": link,
    "the work tree of another": work_tree_of_another,
    "a separate folder": apart,
    "a separate folder, and links": apart_by_a_link,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_folder_that_does_not_lead_back_is_refused_and_nothing_is_written(
    archive: Repo, home: Path, path: str, name: str
) -> None:
    PLANTED[name](archive, home)
    before = state_of(home)
    done = tried(archive, home, path)
    assert done.code == 2, done.err
    assert done.err.startswith("agentflow: ")
    assert state_of(home) == before
    assert "canary-secret" not in done.out + done.err


def test_an_ordinary_folder_whose_rules_lie_elsewhere_is_not_written_there(archive: Repo, home: Path) -> None:
    archive.git("init", "-q")
    archive.commit()
    shutil.rmtree(archive.root / ".git/info")
    (archive.root / ".git/info").symlink_to(home / "other/.git/info")
    before = state_of(home / "other")
    assert tried(archive, home, os.environ["PATH"]).code != 2
    assert state_of(home / "other") == before


def linked(main: Repo, place: Path) -> None:
    main.git("worktree", "add", "-q", str(place))


def submodule(main: Repo, place: Path) -> None:
    around = Repo(place.parent, main.home)
    source = str(main.root)
    around.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", source, place.name)


def separate(main: Repo, place: Path) -> None:
    folder = place.parent / "kept.git"
    main.git("clone", "-q", f"--separate-git-dir={folder}", str(main.root), str(place))


def declared(main: Repo, place: Path) -> None:
    """A separate folder that says where its work tree is, and has not seen it."""
    separate(main, place)
    copied = place.with_name("copied")
    shutil.copytree(place, copied)
    shutil.rmtree(place)
    copied.rename(place)
    main.git("-C", str(place), "config", "core.worktree", str(place))


HONEST = {"linked": linked, "submodule": submodule, "separate": separate, "declared": declared}


@pytest.mark.parametrize("name", HONEST)
def test_honest_folders_work_and_are_seen(tmp_path: Path, home: Path, path: str, name: str) -> None:
    main = Repo(tmp_path / "main", tmp_path / "settings").write(play.GREEN).commit()
    (home / "inner").mkdir()
    HONEST[name](main, home / "inner/tree")
    tree = copy(main)
    tree.root = home / "inner/tree"
    env = {"HOME": str(home), "PATH": path}
    assert tree.run("verify", env=env).code == 0
    look = play.role("explorer", play.turn(play.call("Bash", command="git log --format=said:%s")))
    done = tree.task("explain calc.py", script=[look, play.findings()], env=env)
    assert done.code != 2, done.err
    (result,) = tree.runs("explorer")[0].results[:1]
    assert "said:state" in str(result["content"])


def test_an_empty_separate_folder_works(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "settings").write(play.GREEN)
    shutil.rmtree(repo.root / ".git")
    repo.git("init", "-q", f"--separate-git-dir={tmp_path}/kept")
    assert repo.run("verify").code == 0
