"""The run before a task is the user's own, test by test, however the repository lies on the disk."""

import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agentflow.core.evidence import Evidence
from agentflow.parse import decode
from agentflow.store.ledger import read_outcomes
from tests.support import play
from tests.support.repo import Repo

FILES = {
    "calc.py": play.CALC["calc.py"],
    "test_calc.py": "from calc import add, double\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_double():\n    assert double(2) == 4\n",
}
SOUGHT = "def test_sought():\n    assert {}\n"
READ = "from pathlib import Path\n\n\n" + SOUGHT
ASK_GIT = """import subprocess


def test_sought():
    said = subprocess.run(("git", {}), capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert {} in said.stdout
"""
LOCAL = ("-c", "protocol.file.allow=always")
Build = Callable[[Repo, Path], Repo]
"""Return where the user stands, from a repository with one commit and a folder beside it."""


def add(files: Mapping[str, str]) -> Build:
    """Let more files be there, and committed."""
    return lambda repo, _: repo.write(files).commit()


def at(root: Path, repo: Repo) -> Repo:
    """Return another work tree."""
    made = object.__new__(Repo)
    made.root, made.home, made.identity = root, repo.home, {}
    return made


def clone(*words: str, test: str = "") -> Build:
    def build(repo: Repo, beside: Path) -> Repo:
        repo.write({"far/test_far.py": "def test_far():\n    assert True\n", "test_more.py": test}).commit()
        repo.git("tag", "-am", "one", "v1.0")
        repo.git("config", "uploadpack.allowFilter", "true")
        repo.git("clone", "-q", *words, f"file://{repo.root}", str(beside / "clone"))
        return at(beside / "clone", repo)

    return build


def then(first: Build, *words: str) -> Build:
    """Run git in what was built."""

    def build(repo: Repo, beside: Path) -> Repo:
        made = first(repo, beside)
        made.git(*words)
        return made

    return build


def linked(repo: Repo, beside: Path) -> Repo:
    repo.write({"test_more.py": ASK_GIT.format("'log', '--format=%s'", "'state'")}).commit()
    repo.git("worktree", "add", "-q", str(beside / "linked"))
    return at(beside / "linked", repo)


def submodule(repo: Repo, beside: Path) -> Repo:
    Repo(beside / "lib", repo.home).write({"lib.txt": "lib\n"}).commit()
    repo.git(*LOCAL, "submodule", "--quiet", "add", str(beside / "lib"), "vendored")
    return add({"test_more.py": READ.format("Path('vendored/lib.txt').read_text() == 'lib\\n'")})(
        repo, beside
    )


def filtered(repo: Repo, beside: Path) -> Repo:
    repo.git("config", "filter.big.clean", "echo pointer")
    repo.git("config", "filter.big.smudge", "echo content")
    files = {".gitattributes": "*.big filter=big\n", "a.big": "content\n"}
    return add({**files, "test_more.py": READ.format("Path('a.big').read_text() == 'content\\n'")})(
        repo, beside
    )


def raw(name: bytes, content: bytes, test: str) -> Build:
    """Let a file have a name and a content that need not be text."""

    def build(repo: Repo, beside: Path) -> Repo:
        (repo.root / os.fsdecode(name)).write_bytes(content)
        return add({"test_more.py": READ.format(test)})(repo, beside)

    return build


def ignored(repo: Repo, beside: Path) -> Repo:
    repo.write({"data/rows.csv": "1,2\n", "local.ini": "x"})
    test = READ.format("Path('data/rows.csv').read_text() + Path('local.ini').read_text() == '1,2\\nx'")
    return add({".gitignore": "data/\nlocal.ini\n", "test_more.py": test})(repo, beside)


def linked_folders(repo: Repo, beside: Path) -> Repo:
    repo.write({"real/inside.txt": "in\n"})
    (repo.root / "by_link").symlink_to("real")
    (repo.root / "file_link").symlink_to("real/inside.txt")
    test = READ.format("Path('by_link/inside.txt').read_text() == Path('file_link').read_text() == 'in\\n'")
    return add({"test_more.py": test})(repo, beside)


def hard_links(repo: Repo, beside: Path) -> Repo:
    """Lay packages as uv and pnpm do: another name of each file lies in a cache."""
    (beside / "cache").mkdir()
    (beside / "cache/index.txt").write_text("cached\n")
    (repo.root / "node_modules/kept").mkdir(parents=True)
    os.link(beside / "cache/index.txt", repo.root / "node_modules/kept/index.txt")
    test = READ.format("Path('node_modules/kept/index.txt').read_text() == 'cached\\n'")
    return add({".gitignore": "node_modules/\n", "test_more.py": test})(repo, beside)


def executable(repo: Repo, beside: Path) -> Repo:
    (repo.root / "tool.sh").write_text("#!/bin/sh\necho ran\n")
    (repo.root / "tool.sh").chmod(0o755)
    test = f"import subprocess\n\n\n{SOUGHT}".format("subprocess.check_output(['./tool.sh']) == b'ran\\n'")
    return add({"test_more.py": test})(repo, beside)


def uncommitted(repo: Repo, _: Path) -> Repo:
    repo.write({"new.txt": "new\n", "test_more.py": READ.format("Path('new.txt').read_text() == 'new\\n'")})
    repo.git("add", "test_more.py")
    return repo


def nested(repo: Repo, beside: Path) -> Repo:
    inner = Repo(repo.root / "inner", repo.home).write({"seen.txt": "in\n"}).commit()
    assert inner.root.is_dir()
    return add({"test_more.py": READ.format("Path('inner/seen.txt').read_text() == 'in\\n'")})(repo, beside)


def moved_folder(repo: Repo, beside: Path) -> Repo:
    repo.write({"test_more.py": ASK_GIT.format("'status', '--porcelain'", "''")}).commit()
    shutil.move(repo.root / ".git", beside / "elsewhere.git")
    (repo.root / ".git").write_text(f"gitdir: {beside}/elsewhere.git\n")
    repo.git("config", "core.worktree", str(repo.root))
    return repo


DESCRIBE = ASK_GIT.format("'describe', '--tags', '--dirty'", "'v1.0'")
COUNT = ASK_GIT.format("'rev-list', '--count', 'HEAD'", "'1'")
NFD = unicodedata.normalize("NFD", "\u00e9t\u00e9.txt")
SPARSE = ("sparse-checkout", "set", "--cone")
LAYOUTS: Mapping[str, Build] = {
    "plain": add({}),
    "history: describe": then(add({"test_more.py": DESCRIBE}), "tag", "v1.0"),
    "history: packed": then(then(add({"test_more.py": DESCRIBE}), "tag", "-am", "x", "v1.0"), "gc", "-q"),
    "history: scm version": then(
        add({"test_more.py": ASK_GIT.format("'log', '-1', '--format=%ct'", "''")}), "tag", "v1"
    ),
    "clone": clone(test=DESCRIBE),
    "clone: shallow": clone("--depth=1", test=COUNT),
    "clone: blobless": clone("--filter=blob:none", test=DESCRIBE),
    "clone: shared objects": clone("--no-hardlinks", "--single-branch", test=DESCRIBE),
    "sparse: cone": then(clone(test=DESCRIBE), *SPARSE, "docs"),
    "sparse: index": then(clone(test=DESCRIBE), *SPARSE, "--sparse-index", "docs"),
    "sparse: blobless": clone("--filter=blob:none", "--sparse", test=DESCRIBE),
    "linked work tree": linked,
    "git folder elsewhere": moved_folder,
    "submodule": submodule,
    "repository inside": nested,
    "filter (LFS)": filtered,
    "ignored data": ignored,
    "folders by links": linked_folders,
    "hard links of packages": hard_links,
    "executable": executable,
    "not committed": uncommitted,
    "decomposed name": raw(NFD.encode(), b"x", f"Path({NFD!a}).read_text() == 'x'"),
    "name of no encoding": raw(b"\xff.txt", b"x", "Path('\\udcff.txt').read_text() == 'x'"),
    "latin-1 and CRLF": raw(b"l.txt", b"\xe9\r\n", "Path('l.txt').read_bytes() == b'\\xe9\\r\\n'"),
    "UTF-16": raw(
        b"u.txt", "\ufeff\u00e9".encode("utf-16-le"), "Path('u.txt').read_text('utf-16') == '\\u00e9'"
    ),
    "empty file": raw(b"none", b"", "Path('none').read_bytes() == b''"),
    "manifest below": add(
        {"pkg/pyproject.toml": "[tool.pytest.ini_options]\n", "pkg/test_in.py": SOUGHT.format("True")}
    ),
}


def user_run(repo: Repo, command: str) -> dict[str, str]:
    """Return what the user sees of each test by the same command."""
    shell = f"{command} -rA -p no:cacheprovider"
    env = {**repo.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(
        shell, shell=True, cwd=repo.root, env=env, capture_output=True, text=True, check=False
    )
    lines = [line.split(" - ")[0].split() for line in said.stdout.splitlines()]
    return {
        words[1]: words[0].lower() for words in lines if len(words) == 2 and words[0] in ("PASSED", "FAILED")
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_run_before_a_task_is_the_user_s_own(name: str, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    start = Repo(tmp_path / "repo", tmp_path / "home").write({**FILES, "pytest.ini": "[pytest]\n"}).commit()
    repo = LAYOUTS[name](start, beside)

    done = repo.task(script=play.crew(*play.MENDED, play.submit("calc.py")))
    (first,) = [
        each for each in repo.evidence() if each.get("code") == "base" and each.get("surface") == "base"
    ][:1]
    evidence = decode(Evidence, (repo.folder / f"evidence/{first['id']}.json").read_bytes(), "evidence")
    seen = {test: str(outcome) for test, outcome in read_outcomes(repo.folder, evidence).items()}
    repo.git("checkout", "-q", "calc.py")
    assert seen == user_run(repo, first["command"]) != {}
    assert done.code == 0, done.out + done.err
