import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo, eventually

Files = dict[str, tuple[int, bytes]]


def files(repo: Repo) -> Files:
    """Return mode and bytes of every file that is the user's."""
    found: Files = {}
    for place, folders, names in os.walk(repo.root):
        folders[:] = [name for name in folders if name not in {".git", "agentflow", "__pycache__"}]
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in (*names, *links)):
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(repo.root))] = (stat.S_IMODE(path.lstat().st_mode), content)
    return {name: file for name, file in found.items() if name != ".claude/orchestration.local.md"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "repo", tmp_path / "home")
    repo.write({**play.LIGHT, "kept.txt": "committed\n", "crlf.txt": "x", ".gitattributes": "* text=auto\n"})
    repo.write({".gitignore": "*.log\nignored/\n", "script.sh": "#!/bin/sh\n"}).commit()
    (repo.root / "crlf.txt").write_bytes(b"one\r\ntwo\nthree\r\n")
    (repo.root / "kept.txt").write_text("not committed\n")
    (repo.root / "staged.txt").write_text("staged\n")
    repo.git("add", "staged.txt")
    repo.write({"notes/mine.txt": "untracked\n", "run.log": "ignored\n", "ignored/x": "ignored"})
    (repo.root / "notes/mine.txt").chmod(0o600)
    (repo.root / "script.sh").chmod(0o750)
    (repo.root / "link").symlink_to("kept.txt")
    return repo


def crew(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    last = play.turn(play.call("SubmitChange", summary="done", files=["calc.py"]))
    return [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *turns, last),
        play.verified("$TESTS"),
    ]


def shell(command: str) -> dict[str, Any]:
    return play.turn(play.call("Bash", command=command))


ATTACKS = (
    "git reset -q --hard",
    "git checkout -q . ; git clean -fdq -e .claude",
    "rm -rf notes kept.txt src script.sh link crlf.txt tests",
    "rm -rf notes && ln -s /tmp notes && chmod 777 script.sh && rm link && mkdir link && echo x > link/y",
    "git stash -q -u && git stash drop -q && git reflog expire --expire=now --all && git gc -q --prune=now",
    "git add -A && git -c user.name=a -c user.email=b commit -qm x && git rm -qr . && git gc -q --prune=now",
    "echo '*.txt' >> .gitignore; rm staged.txt; echo new > notes/other.txt",
    "printf 'x' > .gitignore; echo more >> crlf.txt; mkdir -p a/b/c; echo x > a/b/c/d; chmod 600 calc.py",
    "rm -rf ignored run.log && git clean -fdxq -e .claude; echo new > run.log",
    "mv ignored notes/other; ln -s /tmp ignored; echo x > secret.txt",
    "mv notes elsewhere; mv kept.txt kept2.txt; printf '\\377' > 'odd \n name'",
)


@pytest.mark.parametrize("command", [ATTACKS[1], ATTACKS[3], ATTACKS[4]])
def test_whatever_a_command_did_the_users_files_are_put_back_byte_for_byte(repo: Repo, command: str) -> None:
    before = files(repo)
    repo.task(script=crew(*play.MENDED, shell(command)))
    assert files(repo) != before
    done = repo.run("undo", repo.folder.name)
    assert (done.code, done.err) == (0, "")
    assert files(repo) == before
    assert not (repo.root / "a").exists()


def test_the_index_refs_and_stash_are_not_touched_by_recording(repo: Repo) -> None:
    before = (repo.root / ".git/index").read_bytes(), repo.git("for-each-ref"), repo.git("stash", "list")
    repo.task(script=crew(*play.MENDED))
    assert before == (
        (repo.root / ".git/index").read_bytes(),
        repo.git("for-each-ref"),
        repo.git("stash", "list"),
    )


def test_a_dry_run_shows_what_it_would_do_and_does_nothing(repo: Repo) -> None:
    repo.task(script=crew(*play.MENDED, shell("echo x > new.py; rm staged.txt")))
    changed = files(repo)
    said = repo.run("undo", repo.folder.name, "--dry-run")
    assert said.code == 0
    assert [line.split() for line in said.out.splitlines()[1:]] == [
        ["restore", "calc.py"],
        ["restore", "staged.txt"],
        ["remove", "new.py"],
    ]
    told = repo.run("undo", repo.folder.name, "--dry-run", "--json").json
    assert (told["state"], told["restored"], told["removed"]) == (
        "would_undo",
        ["calc.py", "staged.txt"],
        ["new.py"],
    )
    assert files(repo) == changed


def test_a_file_that_the_user_changed_since_is_named_and_nothing_is_undone(repo: Repo) -> None:
    repo.task(script=crew(*play.MENDED, shell("echo x > new.py")))
    (repo.root / "calc.py").write_text("mine now\n")
    (repo.root / "later.txt").write_text("mine too\n")
    changed = files(repo)
    said = repo.run("undo", repo.folder.name)
    assert (said.code, said.out) == (2, "")
    assert "calc.py" in said.err
    assert "later.txt" not in said.err
    assert "--force" in said.err
    assert files(repo) == changed


def test_force_puts_back_what_was_changed_since_and_leaves_all_other_edits(repo: Repo) -> None:
    before = files(repo)
    repo.task(script=crew(*play.MENDED))
    (repo.root / "calc.py").write_text("mine now\n")
    repo.write({"later.txt": "mine too\n", "kept.txt": "edited later\n"})
    undone = repo.run("undo", repo.folder.name, "--force")
    assert undone.code == 0
    back = undone.out.splitlines()[-1].partition("kept: ")[2].replace("FILE", "calc.py")
    assert subprocess.run(["bash", "-c", back], cwd=repo.root, capture_output=True, check=True).stdout == (
        b"mine now\n"
    )
    after = files(repo)
    assert after.pop("later.txt")[1] == b"mine too\n"
    assert after.pop("kept.txt")[1] == b"edited later\n"
    assert after == {name: file for name, file in before.items() if name != "kept.txt"}


def test_undoing_twice_says_so(repo: Repo) -> None:
    repo.task(script=crew(*play.MENDED))
    repo.run("undo", repo.folder.name)
    again = repo.run("undo", repo.folder.name)
    assert again.code == 0
    when = repo.state()["undone"]["at"]
    assert again.out == f"task {repo.folder.name} was undone {when}; nothing to do\n"


def test_a_task_that_changed_nothing_has_nothing_to_undo(repo: Repo) -> None:
    repo.task(script=[play.findings()])
    assert "nothing to do" in repo.run("undo", repo.folder.name).out


def test_what_git_ignored_is_never_removed(repo: Repo) -> None:
    repo.task(script=crew(*play.MENDED, shell("printf '' > .gitignore")))
    assert repo.run("undo", repo.folder.name).code == 0
    assert repo.read("run.log") == "ignored\n"
    assert repo.read("ignored/x") == "ignored"
    assert repo.read(".gitignore") == "*.log\nignored/\n"


def test_an_ignored_file_that_was_written_again_since_is_left(repo: Repo) -> None:
    repo.task(script=crew(*play.MENDED, shell("echo task > run.log; rm ignored/x")))
    repo.write({"run.log": "mine again\n"})
    assert repo.run("undo", repo.folder.name).code == 0
    assert (repo.read("run.log"), repo.read("ignored/x")) == ("mine again\n", "ignored")


def test_large_ignored_files_and_what_tools_make_are_not_kept(repo: Repo) -> None:
    (repo.root / "big.log").write_bytes(bytes(9 << 20))
    repo.write(
        {
            "ignored/build/made": "x",
            "node_modules/a/index.js": "x",
            "venv/.gitignore": "*\n",
            "venv/pyvenv.cfg": "x",
            ".gitignore": "*.log\nignored/\nnode_modules\n",
        }
    )
    names = "big.log ignored/build/made node_modules/a/index.js venv/pyvenv.cfg"
    repo.task(script=crew(*play.MENDED, shell(f"rm {names} ignored/x")))
    assert repo.run("undo", repo.folder.name).code == 0
    assert repo.read("ignored/x") == "ignored"
    assert not any((repo.root / name).exists() for name in names.split())


def test_what_is_kept_of_secrets_is_seen_by_no_command(repo: Repo) -> None:
    repo.write({".gitignore": ".env\n", ".env": "TOKEN=hunter2hunter2\n"})
    find = "for d in .git/agentflow/objects .git/objects; do GIT_OBJECT_DIRECTORY=$d git cat-file"
    shell_all = find + " --batch-all-objects --batch --buffer; done; ls .git/agentflow"
    repo.write({"all.sh": shell_all}).commit()
    repo.task(script=crew(shell("sh all.sh"), *play.MENDED))
    kept = [path.read_text("utf-8", "replace") for path in repo.folder.rglob("*") if path.is_file()]
    assert any("all.sh" in text for text in kept)
    assert not any("hunter2hunter2" in text for text in kept)


def test_after_a_kill_what_the_task_had_done_is_undone_and_later_edits_stay(repo: Repo) -> None:
    before = files(repo)
    wait = "until [ -e goon ]; do sleep 0.05; done"
    process = repo.start_task(crew(*play.MENDED, shell("echo x > new.py"), shell(wait)))
    eventually(lambda: sum(len(run.results) for run in repo.runs("implementer")) == 3, 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (repo.root / "goon").touch()
    (repo.root / "goon").unlink()
    assert repo.run("undo", repo.folder.name).code == 0
    assert files(repo) == before


def test_after_a_kill_within_a_command_its_changes_are_named_not_guessed(repo: Repo) -> None:
    before = files(repo)
    process = repo.start_task(
        crew(shell("sleep 0.3; echo x > new.py; echo y > kept.txt; until [ -e goon ]; do sleep 0.05; done"))
    )
    eventually(lambda: repo.read("kept.txt") == "y\n", 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    said = repo.run("undo", repo.folder.name)
    assert said.code == 2
    assert "new.py" in said.err
    assert "kept.txt" in said.err
    assert repo.run("undo", repo.folder.name, "--force").code == 0
    (repo.root / "goon").touch()
    (repo.root / "goon").unlink()
    assert files(repo) == before


def test_what_the_user_edits_while_a_task_waits_is_theirs(repo: Repo) -> None:
    script = crew(*play.MENDED)
    assert repo.task(play.WHOLE_CREW, "--pause-after", "planning", script=script).code == 75
    repo.write({"kept.txt": "edited while it waited\n"})
    before = files(repo)
    repo.run("resume")
    assert files(repo) != before
    assert repo.run("undo", repo.folder.name).code == 0
    assert files(repo) == before


def test_no_task_no_undo(repo: Repo) -> None:
    assert repo.run("undo", "2026").code == 2
