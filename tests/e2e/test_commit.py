"""A verified task becomes one commit that holds its change and nothing else."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

HOOK = "#!/bin/sh\ngit diff --cached --name-only > .git/seen\n"
NEW_TAIL = "\n\ndef triple(a):\n    return 3 * a\n"


def run_task(repo: Repo, *turns: dict[str, Any], end: int = 0) -> None:
    """Run a task that corrects calc.py after these turns."""
    done = repo.task(script=play.mending(*turns))
    assert done.code == end, done.err


def add_hook(repo: Repo, text: str, name: str = "pre-commit") -> None:
    hook = repo.root / ".git/hooks" / name
    hook.write_text(text)
    hook.chmod(0o755)


def set_author(repo: Repo) -> None:
    repo.git("config", "user.name", "t")
    repo.git("config", "user.email", "t@localhost")


def list_committed(repo: Repo) -> list[str]:
    return repo.git("show", "--name-only", "--no-renames", "--format=", "HEAD").split()


def read_files(root: Path) -> Mapping[str, bytes]:
    places = (place for place in root.rglob("*") if place.is_file())
    return {str(place): place.read_bytes() for place in places if ".git/" not in str(place)}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "a repository", tmp_path / "home").write(play.QUICK).commit()
    set_author(made)
    return made


@pytest.fixture
def mended(done: Repo) -> Repo:
    """The repository after a task that corrected calc.py."""
    set_author(done)
    return done


def test_the_commit_holds_the_change_of_the_task_beside_edits_and_staged_files(repo: Repo) -> None:
    add_hook(repo, HOOK)
    repo.write({"calc.py": play.CALC["calc.py"] + NEW_TAIL, "staged.txt": "staged\n", "other.txt": "new\n"})
    repo.git("add", "staged.txt")
    done = repo.task(play.WHOLE_CREW, "--commit", script=play.mending())
    assert done.code == 0, done.err
    assert "committed" in done.err
    assert list_committed(repo) == ["calc.py"] == repo.read(".git/seen").split()
    committed = repo.git("show", "HEAD:calc.py")
    assert "a + b" in committed
    assert "triple" not in committed
    assert "triple" in repo.read("calc.py")
    assert repo.git("diff", "--cached", "--name-only").split() == ["staged.txt"]
    assert repo.git("diff", "--name-only").split() == ["calc.py"]
    message = repo.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == "All tests pass"
    assert f"Task: {play.WHOLE_CREW}" in message
    assert f"Agentflow-Task: {repo.folder.name}" in message
    assert "Agentflow-Verdict: verified" in message
    again = repo.run("commit")
    assert again.code == 2
    assert "nothing to commit" in again.err


def test_a_commit_on_no_branch_says_so_and_how_it_is_kept(repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach")
    assert repo.task(play.WHOLE_CREW, script=play.mending()).code == 0
    first, *_, last = repo.run("commit").out.splitlines()
    assert first == f"committed  {repo.git('rev-parse', 'HEAD')[:10]} on no branch: All tests pass"
    assert "git switch -c NAME" in last


def test_a_new_branch_takes_the_commit_and_a_hook_that_fails_leaves_everything_as_it_was(
    mended: Repo,
) -> None:
    repo = mended
    first = repo.git("rev-parse", "--abbrev-ref", "HEAD", "HEAD").split()
    before, index = read_files(repo.root), repo.git("ls-files", "--stage")
    add_hook(repo, "#!/bin/sh\necho no commits on mondays >&2\nexit 1\n")
    refused = repo.run("commit", "--branch", "fix/add")
    assert refused.code == 2
    assert "no commits on mondays" in refused.err
    assert repo.git("rev-parse", "--abbrev-ref", "HEAD", "HEAD").split() == first
    assert repo.git("branch", "--list", "fix/add") == ""
    assert read_files(repo.root) == before
    assert repo.git("ls-files", "--stage") == index
    add_hook(repo, "#!/bin/sh\nexit 1\n")
    silent = repo.run("commit")
    assert (silent.code, ".git/hooks/pre-commit" in silent.err) == (2, True), silent.err
    add_hook(repo, "#!/bin/sh\ntrue\n")
    done = repo.run("commit", "--branch", "fix/add", "--json")
    assert done.code == 0, done.err
    assert done.json["branch"] == "fix/add"
    assert not done.json["changed_by_hooks"]
    for name, why in (("fix/add", "exists"), ("--upload", "not a name"), ("a..b", "not a name")):
        refused = repo.run("commit", f"--branch={name}")
        assert refused.code == 2, why
        assert "Traceback" not in refused.err


FORMAT = "sed -i 's/a + b$/a + b  # formatted/' calc.py"
FRAMEWORK = f"""#!/bin/sh
git stash list >/dev/null
git show :calc.py | grep -q formatted && exit 0
{FORMAT}
echo files were modified by this hook
exit 1
"""
FORMATTERS = {
    "fails once": FRAMEWORK,
    "adds": f"#!/bin/sh\n{FORMAT} && git add calc.py\n",
    "adds another file": f"#!/bin/sh\n{FORMAT} && echo x > made.txt && git add calc.py made.txt\n",
}


@pytest.mark.parametrize("kind", FORMATTERS)
@pytest.mark.parametrize("own", ["", NEW_TAIL])
def test_what_a_formatter_changes_after_verification_is_committed_only_if_accepted(
    repo: Repo, kind: str, own: str
) -> None:
    repo.write({"calc.py": play.CALC["calc.py"] + own})
    run_task(repo)
    if own and kind != "fails once":
        own = ""  # `git add` takes the whole file
        repo.write({"calc.py": play.GREEN["calc.py"]})
    add_hook(repo, FORMATTERS[kind])
    before, head, index = (
        read_files(repo.root),
        repo.git("rev-parse", "HEAD"),
        repo.git("ls-files", "--stage"),
    )
    for _ in range(2):
        refused = repo.run("commit")
        assert refused.code == 2
        assert "a git hook changed calc.py" in refused.err
        assert "+    return a + b  # formatted" in refused.err
        assert "--accept-hook-changes" in refused.err
        assert {**read_files(repo.root), str(repo.root / "made.txt"): b""} == {
            **before,
            str(repo.root / "made.txt"): b"",
        }
        assert (repo.git("rev-parse", "HEAD"), repo.git("ls-files", "--stage")) == (head, index)
    done = repo.run("commit", "--accept-hook-changes", "--json")
    assert done.code == 0, done.err
    assert done.json["files_changed_by_hooks"][0] == "calc.py"
    formatted = play.GREEN["calc.py"].replace("a + b", "a + b  # formatted")
    assert repo.git("show", "HEAD:calc.py") == formatted
    assert repo.read("calc.py") == formatted + own
    assert repo.git("show", ":calc.py") == formatted
    assert "Agentflow-Changed-By-Hook: calc.py" in repo.git("log", "-1", "--format=%(trailers)")
    assert repo.git("rev-list", "--count", "HEAD").strip() == "2"


def test_a_hook_that_refuses_what_it_formats_leaves_everything(mended: Repo) -> None:
    add_hook(mended, "#!/bin/sh\necho x >> calc.py\necho no, never\nexit 1\n")
    before = read_files(mended.root)
    refused = mended.run("commit", "--accept-hook-changes")
    assert (refused.code, read_files(mended.root)) == (2, before), refused.err
    assert "each time" in refused.err


def test_a_caveat_is_accepted_by_name(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    set_author(repo)
    run_task(repo, end=4)
    refused = repo.run("commit")
    assert (refused.code, "--accept-caveat" in refused.err) == (2, True), refused.err
    assert repo.git("rev-list", "--count", "HEAD").strip() == "1"
    assert repo.run("commit", "--accept-caveat").code == 0
    assert "Agentflow-Verdict: verified_with_caveat" in repo.git("log", "-1", "--format=%B")


def test_a_repository_without_a_commit_is_told_to_make_the_first(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home").write(play.QUICK)
    repo.git("init", "-q")
    set_author(repo)
    run_task(repo)
    refused = repo.run("commit")
    assert (refused.code, "no commit yet" in refused.err) == (2, True), refused.err
    assert "git add -A && git commit" in refused.err


@pytest.mark.parametrize(
    ("summary", "subject"),
    [
        ("round up. The last page was lost.", "Round up"),
        ("add returns the sum", "add returns the sum"),
        ("parse_date accepts weeks", "parse_date accepts weeks"),
        ("`pages` rounds up", "`pages` rounds up"),
    ],
)
def test_the_first_line_is_what_was_done_and_names_keep_their_case(
    repo: Repo, summary: str, subject: str
) -> None:
    done = play.turn(play.call("SubmitChange", summary=summary, files=["calc.py"]))
    task = repo.task("add() is wrong!! fix it", script=play.crew(*play.MENDED, done))
    assert task.code == 0, task.err
    assert repo.run("commit").code == 0
    message = repo.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == subject
    assert "Task: add() is wrong!! fix it" in message


def test_what_could_not_be_committed_in_the_end_is_refused_before_the_task(repo: Repo) -> None:
    repo.git("branch", "taken")
    taken = repo.task(play.WHOLE_CREW, "--branch", "taken", script=play.mending())
    assert (taken.code, "there is a branch taken already" in taken.err) == (2, True), taken.err
    (repo.root / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD"))
    merging = repo.task(play.WHOLE_CREW, "--commit", script=play.mending())
    assert (merging.code, "a merge, rebase" in merging.err) == (2, True), merging.err
    assert repo.tasks == []


def test_what_cannot_be_told_apart_from_the_users_own_changes_is_refused(repo: Repo) -> None:
    repo.write({"notes.py": "x = 1\n", "calc.py": play.CALC["calc.py"].replace("a - b", "a - b - 0")})
    script = [
        *play.edit("notes.py", "x = 1", "x = 2"),
        *play.edit("calc.py", "a - b - 0", "a + b"),
        play.submit("calc.py", "notes.py"),
    ]
    done = repo.task(script=play.crew(*script))
    assert done.code in {0, 4}, done.err
    before, head = read_files(repo.root), repo.git("rev-parse", "HEAD")
    refused = repo.run("commit")
    assert refused.code == 2
    assert "calc.py" in refused.err
    assert "notes.py" in refused.err
    assert repo.git("rev-parse", "HEAD") == head
    assert read_files(repo.root) == before


def test_a_hook_that_the_task_changed_never_runs(repo: Repo) -> None:
    repo.write({".githooks/pre-commit": "#!/bin/sh\ntrue\n"}).commit()
    (repo.root / ".githooks/pre-commit").chmod(0o755)
    repo.commit().git("config", "core.hooksPath", ".githooks")
    planted = play.edit(".githooks/pre-commit", "true", "touch .git/planted")
    assert repo.task(script=play.mending(*planted)).code in {0, 4}
    refused = repo.run("commit", "--accept-caveat")
    assert refused.code == 2
    assert ".githooks/pre-commit" in refused.err
    assert not (repo.root / ".git/planted").exists()


def test_only_a_verified_change_of_ones_own_is_committed(repo: Repo) -> None:
    failed = repo.task(
        play.WHOLE_CREW, "--commit", "--max-iterations", "1", script=play.crew(play.submit("calc.py"))
    )
    assert failed.code != 0
    assert "not committed" in failed.err
    assert "not verified" in repo.run("commit").err
    run_task(repo)
    repo.git("checkout", "-q", "-b", "other")
    (repo.root / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD"))
    assert "under way" in repo.run("commit").err
    (repo.root / ".git/MERGE_HEAD").unlink()
    assert repo.run("undo").code == 0
    assert "undone" in repo.run("commit").err
    assert repo.git("rev-list", "--count", "HEAD").strip() == "1"


def test_line_ends_new_files_and_deleted_files_are_committed_as_git_would(
    new_repo: NewRepo,
) -> None:
    repo = new_repo({**play.CALC, ".gitattributes": "* text=auto eol=crlf\n", "old.txt": "x\n"})
    set_author(repo)
    (repo.root / "calc.py").write_bytes(play.CALC["calc.py"].replace("\n", "\r\n").encode())
    shell = play.turn(play.call("Bash", command="rm old.txt && printf 'x\\r\\n' > new.txt"))
    done = repo.task(script=play.mending(shell, evidence="ev-0003"))
    assert done.code in {0, 4}, done.err
    assert repo.run("commit", "--accept-caveat").code == 0
    assert sorted(list_committed(repo)) == ["calc.py", "new.txt", "old.txt"]
    stored = subprocess.run(
        ["git", "show", "HEAD:new.txt"], cwd=repo.root, check=True, capture_output=True
    ).stdout
    assert stored == b"x\n"
    assert repo.git("status", "--porcelain") == ""


def test_a_task_that_came_with_the_repository_is_not_committed(mended: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "clone", tmp_path / "other home")
    subprocess.run(["cp", "-a", f"{mended.root}/.", str(other.root)], check=True)
    refused = other.run("commit")
    assert refused.code == 2
    assert "not continued" in refused.err or "no record" in refused.err
