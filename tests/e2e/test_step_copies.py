"""The copies in which steps of a plan are carried out: what they hold, what comes back, what kills leave."""

import os
from pathlib import Path
from typing import Any

from tests.e2e.test_parallel import FILES, WORKERS, merged, plan, step, worker
from tests.support import play
from tests.support.repo import Done, NewRepo, Repo, eventually

SECRET = "TOKEN=not-for-roles"
OTHERS = {
    "old/a.txt": "a\n",
    "old/b.txt": "b\n",
    "run.sh": "echo\n",
    "link": "x\n",
    "folder/in.txt": "1\n",
    ".gitignore": "*.log\nbuild/\n",
}
WORDS = ("--parallel", "2", "--pause-after", "implementation")
TWO = plan(step("one"), step("two"))
AGAIN = play.role("implementer", play.submit(), contains="another step changed some of the same files")


def bash(*commands: str) -> list[dict[str, Any]]:
    return [play.turn(play.call("Bash", command=each)) for each in commands]


def carry_out(repo: Repo, *workers: dict[str, Any]) -> Done:
    script = [play.findings("one.py"), TWO, AGAIN, *workers]
    return repo.task(play.WHOLE_CREW, *WORDS, script=script)


def test_no_copy_holds_what_no_role_may_read_and_none_is_left(new_repo: NewRepo) -> None:
    repo = new_repo({**FILES, ".env": SECRET}).write({"credentials.json": SECRET})
    look = bash("sleep 0.3; grep -r not-for-roles .; echo $((40+2))")
    done = carry_out(
        repo, worker(1, "one", *look, play.submit()), worker(2, "two", *look, play.turn(text="no"))
    )
    assert done.code == 1, done.err
    said = [str(run.results) for run in repo.runs("implementer")[:2]]
    assert all("42" in each for each in said)
    assert not any("TOKEN" in each for each in said)
    assert repo.read("credentials.json") == repo.read(".env") == SECRET
    assert not (repo.folder / "steps").exists()


def test_all_kinds_of_changes_come_back_and_are_undone(new_repo: NewRepo) -> None:
    repo = new_repo({**FILES, **OTHERS}).write({"kept.log": "mine\n"})
    change = bash(
        "mkdir -p new/deep && mv old/a.txt new/deep/ä\\ b.txt && rm old/b.txt && chmod +x run.sh",
        "ln -sf one.py link; rm -r folder; echo f > folder; head -c 300 /dev/urandom > blob.bin",
        "echo x > kept.log; mkdir build; echo 1 > build/out; true",
    )
    done = carry_out(repo, worker(1, "one", *change, play.submit()), WORKERS[1])
    assert [each[0] for each in merged(repo)] == [1, 2], done.err
    assert repo.read("kept.log") == "mine\n"
    assert not (repo.root / "build").exists()
    assert repo.read("new/deep/ä b.txt") == "a\n"
    assert os.access(repo.root / "run.sh", os.X_OK)
    assert (repo.root / "link").readlink() == Path("one.py")
    assert repo.read("folder") == "f\n"
    assert not (repo.root / "old").exists()
    assert repo.run("undo").code == 0
    assert repo.git("status", "--porcelain") == ""


def test_changes_of_one_file_come_together_where_they_do_not_touch(new_repo: NewRepo) -> None:
    spread = "def one(a, b):\n    return a - b\n\n\n# between\n\n\nLAST = 1\n"
    repo = new_repo({**FILES, "one.py": spread, "notes.txt": "begin\n"})
    note = "echo {0} > note; echo {0} >> notes.txt; echo {0} >> new.txt; sed -i '{1}' one.py; "
    note += r"printf 'name,value\n{0},1\n' > table.csv"
    first, second = bash(note.format("first", "s/a - b/a + b/")), bash(note.format("second", "s/= 1/= 2/"))
    done = carry_out(repo, worker(1, "one", *first, play.submit()), worker(2, "two", *second, play.submit()))
    assert merged(repo)[1] == (2, ["new.txt", "notes.txt", "one.py"], ["note", "table.csv"]), done.err
    assert repo.read("one.py") == spread.replace("a - b", "a + b").replace("= 1", "= 2")
    assert (repo.read("notes.txt"), repo.read("note")) == ("begin\nfirst\nsecond\n", "first\n")
    assert repo.read("new.txt") == "first\nsecond\n"
    assert repo.read("table.csv") == "name,value\nfirst,1\n"
    (again,) = (run for run in repo.runs("implementer") if run.head["angle"].endswith("(again)"))
    assert "+second" in again.brief
    assert "notes.txt" not in again.brief.split("# Your step")[1]
    assert repo.run("undo").code == 0
    assert repo.git("status", "--porcelain") == ""


def test_a_file_of_the_user_that_git_ignores_is_not_written_over(new_repo: NewRepo) -> None:
    repo = new_repo({**FILES, ".gitignore": "*.log\n"}).write({"my.log": "mine\n"})
    spoil = bash("rm .gitignore; echo other > my.log")
    done = carry_out(repo, worker(1, "one", *spoil, play.submit(".gitignore", "my.log")), WORKERS[1])
    assert merged(repo)[0] == (1, [".gitignore"], ["my.log"]), done.err
    assert repo.read("my.log") == "mine\n"


def test_a_kill_while_a_change_is_put_in_leaves_it_to_undo(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    many = bash("mkdir many; for i in $(seq 120); do echo $i > many/$i.txt; done")
    script = [play.findings("one.py"), TWO, worker(1, "one", *many, play.submit()), WORKERS[1]]
    process = repo.start_task(script, *WORDS)
    eventually((repo.root / "many/1.txt").exists)
    process.kill()
    process.communicate()
    assert merged(repo) == []
    repo.run("resume")
    assert [each[0] for each in merged(repo)] == [1, 2]
    assert len(merged(repo)[0][1]) == 120
    assert repo.run("undo").code == 0
    assert list(repo.root.glob("many/*.txt")) == []
    assert repo.diff() == ""


def test_what_a_protected_link_leads_to_is_not_reached_through_its_folder(new_repo: NewRepo) -> None:
    repo = new_repo({**FILES, "docs/rules.md": "good\n"})
    (repo.root / "CLAUDE.md").symlink_to("docs/rules.md")
    repo.commit()
    way = bash("mv docs other; true", "echo evil > other/rules.md; mv docs gone; mv other docs; true")
    carry_out(repo, worker(1, "one", *way, play.submit()), WORKERS[1])
    assert [each[0] for each in merged(repo)] == [1, 2]
    assert repo.read("docs/rules.md") == "good\n"
