"""What the command line takes for a text, and what it says of everything it does not take."""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import agentflow
from agentflow.cli.commands import COMMANDS
from agentflow.settings import find_bundled
from tests.support import play
from tests.support.repo import COMMAND, Done, NewRepo, Recorded, Repo

NOTES = {"notes.txt": "nothing to check here\n"}
UNTOUCHED: list[dict[str, Any]] = []


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(NOTES)


def assert_refused(repo: Repo, done: Done, *said: str, code: int = 2) -> None:
    """One message line and at most one hint on stderr; nothing on stdout and nothing written."""
    assert done.code == code, done.err
    assert done.out == ""
    message, *hints = done.err.splitlines()
    assert message.startswith("agentflow: ")
    assert len(hints) <= 1
    assert all(hint.startswith("  ") and hint.strip() for hint in hints)
    for words in said:
        assert words in done.err
    assert_untouched(repo)


def assert_untouched(repo: Repo) -> None:
    assert not (repo.root / ".claude").exists()
    assert repo.git("status", "--porcelain", "--ignored") == ""
    assert "agentflow" not in (repo.root / ".git/info/exclude").read_text()


USAGE: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "no text": (["task"], ["say what to do"]),
    "no text of a route": (["route"], ["say what to do", "for example: agentflow route fix"]),
    "empty text": (["task", ""], ["say what to do"]),
    "blank text": (["task", " \t\n "], ["say what to do"]),
    "empty stdin": (["task", "-"], ["say what to do"]),
    "no iteration": (["task", "--max-iterations", "0", play.TEXT], ["Invalid value for", "--max-iterations"]),
    "fewer than none": (
        ["task", "--max-iterations", "-1", play.TEXT],
        ["Invalid value for", "--max-iterations"],
    ),
    "iterations in words": (
        ["task", "--max-iterations", "x", play.TEXT],
        ["Invalid value for", "--max-iterations"],
    ),
    "iterations without end": (["task", "--max-iterations", "9" * 30, play.TEXT], ["--max-iterations"]),
    "iterations unsaid": (["task", play.TEXT, "--max-iterations"], ["--max-iterations"]),
    "a file unsaid": (["report", "--html"], ["--html", "agentflow report --help"]),
    "a cost in words": (["task", "--max-cost", "abc", play.TEXT], ["'abc' is not a number"]),
    "a time that is no number": (["task", "--timeout", "nan", play.TEXT], ["nan is no number"]),
    "a cost that is no number": (
        ["task", "--max-cost", "nan", play.TEXT],
        ["nan is no number"],
    ),
    "a branch that no git has": (["task", "--branch", "a..b", play.TEXT], ["'a..b' is not a name"]),
    "a branch without a name": (["task", "--branch", "", play.TEXT], ["'' is not a name"]),
    "a near miss": (["task", "fix", "it", "--modle", "repair"], ["--modle", "did you mean --model?"]),
    "a near miss with a value": (["task", "fix it", "--max-iteration=3"], ["did you mean --max-iterations?"]),
    "an option with one dash too few": (
        ["task", "fix it", "-max-iterations=3"],
        ["did you mean --max-iterations?"],
    ),
    "an option of another command": (
        ["task", "fix", "the", "tests", "--dry-run"],
        ["unknown option --dry-run", "quote the whole text or put -- before it: agentflow task -- TEXT"],
    ),
    "an unknown letter": (["task", "fix", "the", "tests", "-x"], ["unknown option -x", "--"]),
    "a number below zero": (["task", "return", "-1", "there"], ["unknown option -1", "--"]),
    "an option alone": (["task", "--dry-run"], ["unknown option --dry-run"]),
    "an unknown option of a way": (["route", "fix", "it", "--dry-run"], ["unknown option --dry-run", "--"]),
    "an unknown option of an answer": (["answer", "2026", "B", "--now"], ["unknown option --now", "--"]),
    "an unknown model": (
        ["task", play.TEXT, "--model", "repiar"],
        ["unknown model 'repiar'", "did you mean repair", "script:FILE"],
    ),
    "an empty script name": (["task", play.TEXT, "--model", "script:"], ["script"]),
    "no such script": (["task", play.TEXT, "--model", "script:nosuch.yaml"], ["nosuch.yaml", "No such file"]),
    "no such folder": (["task", play.TEXT, "-C", "nosuch"], ["nosuch is not a folder"]),
    "a file as a folder": (["task", play.TEXT, "-C", "notes.txt"], ["notes.txt is not a folder"]),
    "an unknown command": (["tsak"], ["no command tsak; did you mean task?", "see agentflow --help"]),
    "the words of a task": (
        ["fix", "the", "tests"],
        ["no command fix", "to start a task: agentflow task fix the tests"],
    ),
    "the words of a task as one": (["fix the $tests"], ["to start a task: agentflow task 'fix the $tests'"]),
    "help for no command": (["help", "fix"], ["no command fix", "see agentflow help all"]),
    "an unknown option of another command": (["status", "--jsn"], ["--jsn"]),
    "a task that is not there": (["status", "20260101T000000Z-abcd"], ["no task in this repository"]),
    "the newest of no tasks": (["log"], ["no task in this repository"]),
    "an empty id": (["status", ""], ["no task in this repository"]),
    "an unknown role": (["agents", "show", "nobody"], ["no role nobody"]),
    "a missing word": (["approve"], ["'ID'", "agentflow approve --help"]),
    "an unknown command of a group": (["agents", "shw"], ["'show'", "agentflow agents --help"]),
    "a demo on top of a file": (["demo", "notes.txt"], ["not an empty folder"]),
}


@pytest.mark.parametrize(("words", "said"), USAGE.values(), ids=USAGE)
def test_a_usage_error_is_one_line(repo: Repo, words: Sequence[str], said: Sequence[str]) -> None:
    assert_refused(repo, repo.run(*words), *said)


@pytest.mark.parametrize(
    ("model", "setting"), [("anthropic", "ANTHROPIC_API_KEY"), ("bedrock", "AWS_REGION")]
)
def test_a_live_model_without_credentials_is_no_usable_one(repo: Repo, model: str, setting: str) -> None:
    assert_refused(repo, repo.run("task", play.TEXT, "--model", model), "set", setting, code=6)


STARTED = ("env", str(COMMAND))
"""The command with its start, whose work is counted."""


def _worked() -> float:
    """Return the seconds that commands worked, which a busy machine does not lengthen."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_what_the_embedded_model_cannot_do_is_said_with_little_more_work_than_help(new_repo: NewRepo) -> None:
    marking = "open('ran', 'w').close()\n" + play.CALC["tests/test_calc.py"]
    repo = new_repo({**play.CALC, "tests/test_calc.py": marking})
    begin = _worked()
    repo.run("task", "--help", command=STARTED)
    before = _worked()
    done = repo.run("task", "add a --verbose option", command=STARTED)
    assert _worked() - before < 8 * (before - begin)
    assert_refused(repo, done, "--model", "AGENTFLOW_MODEL", code=6)


SCRIPTS = {
    "not yaml": ("- turns: [\n  - x: {\n", ["script.yaml:"]),
    "a second key": ("- turns: []\n  turns: []\n", ["script.yaml:2", "turns"]),
    "no turns": ("- match: {role: explorer}\n", ["script.yaml:1", "turns"]),
    "an unknown key": ("- turns: []\n  matsch: {}\n", ["script.yaml:2", "matsch"]),
    "an unknown key below": ("- turns:\n  - text: x\n  - txt: x\n", ["script.yaml:3", "txt", "turns"]),
    "a wrong type": ("- turns: []\n  delay: soon\n", ["script.yaml:2", "delay"]),
    "no list": ("turns: []\n", ["script.yaml"]),
}


@pytest.mark.parametrize(("text", "said"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_broken_script_is_named_by_file_line_and_key(repo: Repo, text: str, said: Sequence[str]) -> None:
    path = repo.home / "script.yaml"
    path.write_text(text)
    assert_refused(repo, repo.run("task", play.TEXT, "--model", f"script:{path}"), *said)


def test_a_script_that_is_no_text_is_named(repo: Repo) -> None:
    path = repo.home / "script.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert_refused(repo, repo.run("task", play.TEXT, "--model", f"script:{path}"), "script.yaml", "UTF-8")


SETTINGS = {
    "an unknown key": ("max_iterations: 3\nmodle: repair\n", ["config.yaml:2", "modle"]),
    "a wrong type": ("model: repair\nmax_iterations: many\n", ["config.yaml:2", "max_iterations"]),
    "no iteration": ("max_iterations: 0\n", ["config.yaml:1", "max_iterations"]),
    "fewer than none": ("max_iterations: -3\n", ["config.yaml:1", "max_iterations"]),
    "a wrong key below": ("timeouts:\n  tets: 3\n", ["config.yaml:2", "tets"]),
    "not yaml": ("model: [\n", ["config.yaml:"]),
    "a list": ("- model\n", ["config.yaml"]),
    "an unknown model": ("model: antropic\n", ["antropic", "anthropic"]),
}


@pytest.mark.parametrize(("text", "said"), SETTINGS.values(), ids=SETTINGS)
def test_broken_settings_are_named_by_file_line_and_key(repo: Repo, text: str, said: Sequence[str]) -> None:
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert_refused(repo, repo.run("task", play.TEXT), *said)


HEAD = "---\nname: verifier\ndescription: d\n{}metadata: {{agentflow-role: verifier}}\n---\nJudge.\n"
ROLES = {
    "an unknown tool": (
        HEAD.format("tools: [Raed]\n"),
        ["verifier.md:4", "tools", "Raed", "did you mean Read?"],
    ),
    "no tools": (HEAD.format(""), ["verifier.md", "tools"]),
    "a near miss": (HEAD.format("tool: [Read]\n"), ["verifier.md:4", "tool"]),
    "a broken rule": (HEAD.format("tools: [Bash(git]\n"), ["verifier.md:4", "tools"]),
    "an open head": ("---\nname: verifier\nmetadata: {agentflow-role: verifier}\n", ["verifier.md:3"]),
}


@pytest.mark.parametrize(("text", "said"), ROLES.values(), ids=ROLES)
def test_a_broken_file_of_a_role_that_would_be_run_is_named(
    repo: Repo, text: str, said: Sequence[str]
) -> None:
    repo.give_role("verifier", text)
    assert_refused(repo, repo.run("task", play.TEXT), *said)


def test_a_foreign_file_among_the_roles_is_only_left_out(repo: Repo) -> None:
    repo.give_role("other", "no head at all\n")
    done = repo.task(script=UNTOUCHED)
    assert done.code == 1
    assert "other.md:1" in done.err


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with its own role files, as a wheel would put it."""
    folder = tmp_path_factory.mktemp("package")
    shipped = Path(agentflow.__file__).parent
    leave = shutil.ignore_patterns("__pycache__", "_bundled")
    shutil.copytree(shipped, folder / "agentflow", ignore=leave)
    return folder


@pytest.fixture
def copied(package: Path) -> Path:
    """The role files of the copy, whole again."""
    content = package / "agentflow/_bundled"
    shutil.rmtree(content, ignore_errors=True)
    for kind in ("agents", "skills"):
        shutil.copytree(find_bundled(kind), content / kind)
    return content / "agents"


def run_copy(repo: Repo, agents: Path, *words: str) -> Done:
    where = str(agents.parents[2])
    return repo.run(*words, command=[sys.executable, "-m", "agentflow"], env={"PYTHONPATH": where})


def test_the_copied_package_is_the_one_that_runs(repo: Repo, copied: Path) -> None:
    (copied / "explorer.md").write_text(
        (copied / "explorer.md").read_text().replace("Use when", "Copied when")
    )
    assert "Copied when" in run_copy(repo, copied, "agents", "list").out


@pytest.mark.parametrize("name", ["explorer", "reviewer", "verifier"])
def test_a_missing_role_file_is_named(repo: Repo, copied: Path, name: str) -> None:
    (copied / f"{name}.md").unlink()
    assert_refused(repo, run_copy(repo, copied, "task", play.TEXT), f"{name}.md")


def test_a_broken_shipped_role_file_is_named_with_line_and_key(repo: Repo, copied: Path) -> None:
    path = copied / "planner.md"
    path.write_text(path.read_text().replace("tools: [", "tools: [Raed, "))
    assert_refused(repo, run_copy(repo, copied, "task", play.TEXT), "planner.md:5", "tools", "Raed")


def test_a_folder_without_git_is_one_line(repo: Repo, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert_refused(
        repo, repo.run("task", play.TEXT, "-C", str(plain)), "is not in a git repository", "git init"
    )
    assert list(plain.iterdir()) == []


def test_a_bare_repository_is_one_line(repo: Repo, tmp_path: Path) -> None:
    repo.git("init", "-q", "--bare", str(tmp_path / "bare"))
    assert_refused(repo, repo.run("task", play.TEXT, "-C", str(tmp_path / "bare")), "bare")


def test_the_folder_of_git_is_told_apart(repo: Repo) -> None:
    assert_refused(repo, repo.run("status", "-C", ".git"), ".git is in a bare repository or in .git")


@pytest.mark.parametrize("words", [(), ("agents",), ("permissions",)], ids=["no word", "a group", "another"])
def test_a_command_without_its_words_shows_what_there_is(repo: Repo, words: tuple[str, ...]) -> None:
    done = repo.run(*words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Usage: agentflow")
    assert done.err == repo.run(*words, "--help").out


def test_help_begins_with_twelve_commands_and_help_all_shows_the_rest(repo: Repo) -> None:
    short, everything = repo.run("--help").out, repo.run("help", "all").out
    assert repo.run("help").out == short
    assert len([row for row in short.splitlines() if re.match(r"  [a-z]+  ", row)]) == 12
    assert "agentflow help all" in short
    assert all(f"\n  {name} " in everything for name in COMMANDS)
    assert repo.run("help", "undo").out == repo.run("undo", "--help").out


@pytest.mark.parametrize("command", ["", " ", "# nothing"], ids=["empty", "blank", "a comment"])
def test_a_shell_command_that_runs_nothing_is_explained(repo: Repo, command: str) -> None:
    done = repo.run("permissions", "test", command)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("as the implementer\nallow: nothing in it would run\n")
    assert "sandbox: its commands write the repository" in done.out


def test_a_read_only_repository_is_one_line(repo: Repo) -> None:
    if os.geteuid():
        repo.root.chmod(0o500)
        done = repo.run("task", play.TEXT)
        repo.root.chmod(0o700)
    else:
        mount = 'mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" && exec "$@"'
        inside = ["unshare", "-m", "sh", "-c"]
        if subprocess.run(
            [*inside, "mount --bind . ."], cwd=repo.root, capture_output=True, check=False
        ).returncode:
            pytest.skip("mounting is not allowed here, and modes do not bind root")
        done = repo.run("task", play.TEXT, command=[*inside, mount, "sh", str(COMMAND)])
    assert_refused(repo, done, "cannot write", ".claude", "Read-only file system" if not os.geteuid() else "")


TEXTS: dict[str, tuple[Sequence[str], str, str]] = {
    "options inside one quoted text": (
        ["--yes", "add a --verbose -x=3 option"],
        "",
        "add a --verbose -x=3 option",
    ),
    "a quoted text that begins with a dash": (
        ["- fix the parser\n- test it"],
        "",
        "- fix the parser\n- test it",
    ),
    "a quoted text that begins with an option": (
        ["--json is ignored", "today"],
        "",
        "--json is ignored today",
    ),
    "a quoted text that begins with a letter of ours": (["-C is ignored"], "", "-C is ignored"),
    "numbers below zero": (["round(-1) is -1, not 0"], "", "round(-1) is -1, not 0"),
    "a dash between words": (["the", "parser", "-", "it", "crashes"], "", "the parser - it crashes"),
    "all behind two dashes": (["the", "--", "-1", "--yes", "-C"], "", "the -1 --yes -C"),
    "a near miss inside one quoted text": (["explain --modle"], "", "explain --modle"),
    "a text from stdin": (["-"], "  line one\nline: two # --- \n", "line one\nline: two # ---"),
    "characters of all kinds": (["ship 'it' \"now\" # 🎉: yes"], "", "ship 'it' \"now\" # 🎉: yes"),
}


@pytest.mark.parametrize(("words", "stdin", "text"), TEXTS.values(), ids=TEXTS)
def test_the_text_is_taken_word_for_word(repo: Repo, words: Sequence[str], stdin: str, text: str) -> None:
    done = repo.run("task", "--model", repo.scripted(UNTOUCHED), *words, stdin=stdin)
    assert done.code == 1
    assert repo.state()["task"] == text
    first = min((repo.folder / "runs").glob("1-*"))
    assert f"# Task\n{text}\n" in Recorded(first).brief


def test_a_text_that_is_no_utf8_is_taken_with_a_mark_for_each_byte_that_is_none(repo: Repo) -> None:
    done = subprocess.run(
        [COMMAND, "task", "--model", repo.scripted(UNTOUCHED), "-"],
        input=b"mend \xff it",
        cwd=repo.root,
        env={**repo.environment, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert repo.state()["task"] == "mend \ufffd it"


def test_two_dashes_let_any_word_into_the_text(repo: Repo) -> None:
    done = repo.run(
        "task", "--model", repo.scripted(UNTOUCHED), "--", "explain", "--modle", "and", "--review"
    )
    assert done.code == 1, done.err
    assert repo.state()["task"] == "explain --modle and --review"


def test_a_folder_below_the_root_is_enough(repo: Repo) -> None:
    (repo.root / "below").mkdir()
    assert repo.run("task", play.TEXT, "--model", repo.scripted(UNTOUCHED), "-C", "below").code == 1
    assert not (repo.root / "below/.claude").exists()
    assert repo.state()["task"] == play.TEXT


@pytest.mark.parametrize("target", ["nosuch/folder/events", "."])
def test_events_that_cannot_be_written_are_one_line_and_start_nothing(repo: Repo, target: str) -> None:
    done = repo.run("task", play.TEXT, "--model", repo.scripted(UNTOUCHED), "--events", target)
    assert_refused(repo, done, target)


def test_a_full_disk_under_the_events_leaves_a_task_that_has_ended(repo: Repo) -> None:
    done = repo.run("task", play.TEXT, "--model", repo.scripted(UNTOUCHED), "--events", "/dev/full")
    assert done.code in {1, 2}
    assert "internal error" not in done.err
    last = repo.events()[-1]
    assert (last["type"], last.get("exit_code")) == ("TaskEnded", done.code)
    assert repo.state()["active"] is False


def test_a_setting_is_shown_as_it_is_written_and_where_it_came_from(repo: Repo) -> None:
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("approvals: {tools: {Edit: always}}\nretry: {tries: 3}\n")
    rows = [line.split() for line in repo.run("config", env={"AGENTFLOW_MODEL": "repair"}).out.splitlines()]
    shown = {key: words for key, *words in rows}
    assert shown["model"] == ["repair", "AGENTFLOW_MODEL"]
    assert shown["approvals"] == ["{tools:", "{Edit:", "always}}", str(config)]
    assert shown["retry"][:2] == ["{tries:", "3,"]
    assert shown["prices"] == ["-", "default"]
    assert repo.run("config").out.splitlines()[0].split() == ["model", "repair", "default"]
