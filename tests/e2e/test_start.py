"""What stands between a command and its first request: processes and modules, counted and not timed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import play
from tests.support.messages_server import Answer, Asked, refuses, serving
from tests.support.repo import NewRepo, Repo

CALLS = (
    "rev-parse",  # where everything lies, and what is committed
    "config",  # the user's rules, once for all trees
    "ls-files",  # what is ignored and no tool makes anew
    "status",  # that each file is as it is committed: the tree, and every byte
    "rev-list",  # which memory is the repository's
)
UNUSED = {
    *("anthropic", "httpx2", "httpcore2", "pydantic", "filelock", "git", "rich", "prompt_toolkit"),
    *("tomllib", "urllib.request", "http.client", "email", "importlib.metadata"),
    *("tree_sitter", "sqlite3", "multiprocessing", "agentflow.repair", "agentflow.model.sdk"),
}
"""What a live task in a repository of plain files has no use for before its first request."""


WRAPPER = """\
#!/bin/bash
for word; do [[ $word == -c || $word == *=* || $word == --literal-pathspecs ]] || break; done
echo "$word" >> {log}
exec {git} "$@"
"""


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo({"notes.txt": "one\n"})


def asked_once(repo: Repo, environ: dict[str, str], seen: Callable[[], None] = lambda: None) -> str:
    """Run a task to its first request, which is refused, and return what stands in stderr."""

    def refused(_: Asked) -> Answer:
        seen()
        return refuses(400)

    with serving(policy=refused) as server:
        environ = {"ANTHROPIC_BASE_URL": server.address, **environ}
        done = repo.task("--model", "anthropic", "--no-sandbox", "add a line to notes.txt", env=environ)
    assert done.code == 6, done.err
    assert len(server.asked) == 1
    return done.err


def wrap(git: Path, log: Path) -> None:
    """Write a program that notes what git is asked, and asks it."""
    git.parent.mkdir()
    git.write_text(WRAPPER.format(log=log, git=shutil.which("git")))
    git.chmod(0o755)


def told(log: Path) -> tuple[str, ...]:
    return tuple(log.read_text().split())


def test_git_is_started_for_nothing_twice_before_the_first_request(repo: Repo, tmp_path: Path) -> None:
    log, git = tmp_path / "log", tmp_path / "bin/git"
    wrap(git, log)
    before: list[tuple[str, ...]] = []
    path = f"{git.parent}:{repo.environment['PATH']}"
    asked_once(repo, {"PATH": path}, lambda: before.append(told(log)))
    assert before == [CALLS]


def test_what_the_first_request_does_not_need_is_not_loaded_before_it(repo: Repo) -> None:
    lines = asked_once(repo, {"PYTHONPROFILEIMPORTTIME": "1"}).splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert {"agentflow.model.direct", "h11", "yaml"} <= loaded
    assert {name for name in loaded if any(f"{name}.".startswith(f"{top}.") for top in UNUSED)} == set()


def test_a_whole_task_starts_git_less_than_forty_times(new_repo: NewRepo, tmp_path: Path) -> None:
    repo, log, git = new_repo(play.CALC), tmp_path / "log", tmp_path / "bin/git"
    wrap(git, log)
    done = repo.task(script=play.mending(), env={"PATH": f"{git.parent}:{repo.environment['PATH']}"})
    assert done.code == 0, done.err
    assert len(told(log)) < 40, told(log)
