"""Which files of a pull request its tasks account for: what honest people and attackers do around tasks."""

from pathlib import Path

import pytest

from agentflow.ci.review import Coverage, JudgedTask, find_coverage, find_start, lay_out_tree
from agentflow.core.errors import UsageError
from agentflow.core.task import TaskState
from agentflow.workspace.git import open_repository
from tests.support.repo import Repo

START = {"calc.py": "a - b\n", "test_calc.py": "strict\n", "README.md": "old\n"}
FIXED = {"calc.py": "a + b\n"}


class Branch:
    """A pull request: its commits, and what those of tasks were judged from and to."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder / "repo", folder / "home")
        self.repo.write(START).commit()
        self.repo.git("branch", "-M", "main")
        self.repo.git("checkout", "-q", "-b", "work")
        self.tasks: list[tuple[str, str, str]] = []

    def find_tree(self) -> str:
        return self.repo.git("rev-parse", "HEAD^{tree}").strip()

    def do(self, files: dict[str, str]) -> "Branch":
        """Let a task change files; its commit names it."""
        before = self.find_tree()
        self.repo.write(files).commit()
        self.tasks.append((before, self.find_tree(), self.repo.git("rev-parse", "HEAD").strip()))
        return self

    def edit(self, files: dict[str, str]) -> "Branch":
        """Let a person change files."""
        self.repo.write(files).commit()
        return self

    def advance_main(self, files: dict[str, str], *, merges: bool = True) -> "Branch":
        self.repo.git("checkout", "-q", "main")
        self.repo.write(files).commit()
        self.repo.git("checkout", "-q", "work")
        if merges:
            self.repo.git("merge", "-q", "--no-edit", "main")
        return self

    def judge(self) -> Coverage:
        git = open_repository(self.repo.root)
        tasks = [
            JudgedTask(state=_a_state(base, end), start=lay_out_tree(git, find_start(git, "main", commit)))
            for base, end, commit in self.tasks
        ]
        start = lay_out_tree(git, find_start(git, "main", "HEAD"))
        return find_coverage(git, start, lay_out_tree(git, git.head or ""), tasks)


def _a_state(base: str, end: str) -> TaskState:
    return TaskState(
        task_id="t", task="t", started_at="", max_iterations=1, model="m", base_tree=base, tree=end
    )


@pytest.fixture
def branch(tmp_path: Path) -> Branch:
    return Branch(tmp_path)


def test_tasks_alone_cover_all(branch: Branch) -> None:
    assert branch.do(FIXED).judge() == Coverage()
    assert branch.do({"calc.py": "b + a\n", "new.py": "1\n"}).judge() == Coverage()
    assert branch.advance_main({"main.py": "1\n"}, merges=False).judge() == Coverage()


def test_a_bug_and_a_gutted_test_before_an_honest_task_are_uncovered(branch: Branch) -> None:
    branch.edit({"other.py": "bug\n", "test_calc.py": "gutted\n"}).do(FIXED)
    assert branch.judge() == Coverage(uncovered=("other.py", "test_calc.py"))


def test_a_file_that_a_task_changed_after_somebody_else_is_uncovered(branch: Branch) -> None:
    branch.edit({"calc.py": "bug\n"}).do(FIXED)
    assert branch.judge() == Coverage(uncovered=("calc.py",))


def test_a_gutted_test_that_is_back_at_the_end_still_counts_for_the_task_in_between(branch: Branch) -> None:
    branch.edit({"test_calc.py": "gutted\n"}).do({"calc.py": "bug\n"})
    branch.edit({"test_calc.py": START["test_calc.py"]}).do({"new.py": "1\n"})
    assert branch.judge() == Coverage(uncovered=("test_calc.py",))


def test_what_is_deleted_made_executable_or_a_link_is_uncovered(branch: Branch) -> None:
    repo = branch.edit({"gone.py": "1\n"}).repo
    repo.git("branch", "-f", "main", "HEAD")
    repo.git("rm", "-q", "gone.py", "test_calc.py")
    (repo.root / "test_calc.py").symlink_to("calc.py")
    (repo.root / "README.md").chmod(0o755)
    branch.edit({}).do(FIXED)
    assert branch.judge() == Coverage(uncovered=("README.md", "gone.py", "test_calc.py"))


def test_what_changes_after_the_last_task_is_not_judged_but_for_documents(branch: Branch) -> None:
    branch.do(FIXED).edit({"README.md": "new\n"})
    assert branch.judge() == Coverage(uncovered=("README.md",))
    branch.edit({"calc.py": "bug\n"})
    assert branch.judge() == Coverage(uncovered=("README.md", "calc.py"), unjudged=("calc.py",))


def test_a_reverted_task_is_not_judged(branch: Branch) -> None:
    branch.do({**FIXED, "new.py": "1\n", "README.md": "new\n"}).edit({"calc.py": START["calc.py"]})
    assert branch.judge() == Coverage(unjudged=("calc.py",))
    branch.edit({**FIXED, "README.md": START["README.md"]})
    assert branch.judge() == Coverage(uncovered=("README.md",))


def test_files_of_main_are_not_those_of_the_pull_request(branch: Branch) -> None:
    branch.do(FIXED).advance_main({"main.py": "1\n", "README.md": "new\n"})
    assert branch.judge() == Coverage(merged=("README.md", "main.py"))
    assert branch.do({"new.py": "1\n"}).judge() == Coverage()


def test_what_a_merge_mixes_of_both_is_uncovered(branch: Branch) -> None:
    text = "1\n2\n3\n4\n5\n"
    branch.edit({"calc.py": text}).repo.git("branch", "-f", "main", "HEAD")
    branch.do({"calc.py": text.replace("1", "one")}).advance_main({"calc.py": text.replace("5", "five")})
    assert branch.judge() == Coverage(uncovered=("calc.py",), unjudged=("calc.py",))


def test_nothing_is_covered_by_a_task_whose_trees_this_clone_lacks(branch: Branch) -> None:
    branch.do(FIXED)
    (_, end, commit) = branch.tasks.pop()
    branch.tasks.append(("0" * 40, end, commit))
    assert branch.judge() == Coverage(uncovered=("calc.py",))


def test_what_lies_about_and_what_attributes_convert_is_no_change(branch: Branch) -> None:
    branch.edit({".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n"})
    branch.repo.git("branch", "-f", "main", "HEAD")
    branch.repo.git("checkout", "-q", "main", "--", ".")
    (branch.repo.root / "a.txt").unlink()
    branch.repo.git("checkout", "-q", "--", "a.txt")
    assert (branch.repo.root / "a.txt").read_bytes() == b"1\r\n"
    before = open_repository(branch.repo.root).write_tree()
    branch.do(FIXED)
    end = open_repository(branch.repo.root).write_tree()
    branch.tasks = [(before, end, branch.tasks[0][2])]
    branch.repo.write({"stray.egg-info": "1\n"})
    assert branch.judge() == Coverage()
    assert branch.edit({"a.txt": "bug\r\n"}).judge().unjudged == ("a.txt", "stray.egg-info")


def test_a_submodule_counts_as_its_files_lie_here(branch: Branch, tmp_path: Path) -> None:
    inner = Repo(tmp_path / "inner", tmp_path / "home").write({"a.py": "1\n"}).commit()
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "inner")
    branch.repo.git(*add)
    branch.edit({}).repo.git("branch", "-f", "main", "HEAD")
    before = open_repository(branch.repo.root).write_tree()
    branch.do(FIXED)
    branch.tasks = [(before, open_repository(branch.repo.root).write_tree(), branch.tasks[0][2])]
    assert branch.judge() == Coverage()
    Repo(branch.repo.root / "inner", tmp_path / "home").write({"a.py": "bug\n"}).commit()
    assert "inner" in "".join(branch.edit({}).judge().uncovered)


def test_branches_without_a_common_commit_are_refused(branch: Branch) -> None:
    branch.repo.git("checkout", "-q", "--orphan", "alone")
    branch.edit({"x": "1\n"})
    with pytest.raises(UsageError, match="no commit that main and HEAD share"):
        find_start(open_repository(branch.repo.root), "main", "HEAD")
