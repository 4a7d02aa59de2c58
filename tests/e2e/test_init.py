"""`init` sets a repository up, shows what it found, and never overwrites."""

import os
import re
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.terminal import at_terminal

SETTINGS = ".claude/agentflow.yaml"
BLOCK = "# >>> agentflow managed >>>\n.claude/agentflow/\n.claude/*.local.*\n# <<< agentflow managed <<<\n"


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.CALC)


def test_a_repository_is_set_up_and_told_what_was_found(repo: Repo) -> None:
    made = repo.run("init")
    assert made.code == 0, made.err
    rows = made.out.splitlines()
    assert rows[0].split() == ["files", SETTINGS, "written"]
    assert rows[1].split() == [".gitignore", "written"]
    assert rows[2].startswith("checks     tests  ")
    assert "unittest" in rows[2]
    assert rows[3].startswith("sandbox    ")
    assert rows[4].startswith("model      No model is configured. The built-in repair engine")
    assert rows[-1] == "next       agentflow verify  runs these checks, without a model"
    assert repo.read(".gitignore") == BLOCK


def test_what_it_writes_changes_nothing_and_needs_no_trust(repo: Repo) -> None:
    before = repo.run("verify", "--dry-run").out
    repo.run("init")
    assert repo.run("verify", "--dry-run").out == before
    assert "settings" not in repo.run("ask", "where?", "--model", repo.scripted([play.findings()])).err
    assert repo.run("check").code == 0
    trusted = repo.run("trust")
    assert (trusted.code, trusted.out.splitlines()[-1]) == (0, "Everything is trusted.")


def test_every_key_that_it_offers_is_one_that_counts(repo: Repo) -> None:
    repo.run("init")
    text = re.sub(r"^#(?! \S)", "", repo.read(SETTINGS), flags=re.MULTILINE)
    repo.write({SETTINGS: text})
    checked = repo.run("check")
    assert checked.code == 0, checked.out
    trusted = repo.run("trust", "--yes")
    assert "sets checks, required, routing, limits, surface" in trusted.out
    assert "python -m pytest -q" in repo.run("verify", "--dry-run").out


def test_a_change_of_the_file_has_to_be_trusted_again(repo: Repo) -> None:
    repo.run("init")
    repo.write({SETTINGS: "checks: {tests: 'true'}\n"})
    assert repo.run("trust").code == 2
    told = repo.run("init")
    assert f"untrusted  {SETTINGS} (ignored until trusted)" in told.out
    assert told.out.splitlines()[-1].startswith("next       agentflow trust")


def test_a_second_time_is_byte_for_byte_the_same(repo: Repo) -> None:
    repo.run("init")
    before = repo.read(SETTINGS), repo.read(".gitignore")
    again = repo.run("init", "--json")
    assert again.code == 0
    assert again.json["files"] == [
        {"path": SETTINGS, "state": "exists"},
        {"path": ".gitignore", "state": "has_block"},
    ]
    assert again.json["next"] == "agentflow verify"
    assert [check["check"] for check in again.json["checks"]] == ["tests"]
    assert (repo.read(SETTINGS), repo.read(".gitignore")) == before


def test_what_a_person_wrote_is_kept(repo: Repo) -> None:
    (repo.root / ".gitignore").write_bytes(b"*.pyc\r\n/dist")
    repo.write({SETTINGS: "limits: {iterations: 3}\n"})
    repo.run("init")
    assert repo.read(SETTINGS) == "limits: {iterations: 3}\n"
    expected = b"*.pyc\r\n/dist\r\n" + BLOCK.replace("\n", "\r\n").encode()
    assert (repo.root / ".gitignore").read_bytes() == expected


@pytest.mark.parametrize(
    "text", ["# >>> agentflow managed >>>\n/build\n", "/a\n# <<< agentflow managed <<<\n"]
)
def test_a_block_without_its_other_end_is_left_alone(repo: Repo, text: str) -> None:
    repo.write({".gitignore": text})
    assert "its managed block has no beginning or no end" in repo.run("init").out
    assert repo.read(".gitignore") == text


def test_the_ignore_file_is_left_to_who_wants_no_help(repo: Repo) -> None:
    made = repo.run("init", env={"AGENTFLOW_NO_GITIGNORE": "1"})
    assert made.code == 0
    assert "AGENTFLOW_NO_GITIGNORE is set" in made.out
    assert not (repo.root / ".gitignore").exists()


def test_a_link_in_place_of_a_file_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (repo.root / ".gitignore").symlink_to(outside)
    (repo.root / ".claude").mkdir()
    (repo.root / SETTINGS).symlink_to(tmp_path / "nowhere")
    told = repo.run("init", "--json").json["files"]
    assert [file["state"] for file in told] == ["exists", "link"]
    assert outside.read_text() == "mine\n"
    assert not (tmp_path / "nowhere").exists()


def test_bad_surroundings_are_one_line(repo: Repo, tmp_path: Path) -> None:
    (repo.root / ".claude").write_text("")
    (tmp_path / "plain").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for words, said in (
        ((), ".claude is not a folder"),
        (("-C", str(tmp_path / "plain")), "not in a git repository"),
    ):
        refused = repo.run("init", *words)
        assert (refused.code, refused.out) == (2, "")
        assert len(refused.err.splitlines()) == 2
        assert said in refused.err
    (repo.root / ".claude").unlink()
    (repo.root / ".claude").symlink_to(tmp_path / "elsewhere")
    assert repo.run("init").code == 2
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_init_that_fails_leaves_no_settings_behind(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = repo.run("init", env={"AGENTFLOW_HOME": str(tmp_path / "file")})
    assert refused.code == 2
    assert "set HOME to one that you can write" in refused.err
    assert not (repo.root / SETTINGS).exists()
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("parallel: [2]\n")
    assert repo.run("init").code == 2
    assert not (repo.root / SETTINGS).exists()
    assert not (repo.root / ".gitignore").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="modes do not bind root")
def test_a_folder_that_cannot_be_written_is_one_line(repo: Repo) -> None:
    repo.root.chmod(0o500)
    refused = repo.run("init")
    repo.root.chmod(0o700)
    assert refused.code == 2
    assert "cannot write" in refused.err


def test_a_repository_without_checks_is_told_where_to_name_them(new_repo: NewRepo) -> None:
    repo = new_repo({"notes.txt": "nothing\n"})
    rows = repo.run("init").out.splitlines()
    assert rows[2].split() == ["checks", "none", "found"]
    assert rows[-1].startswith(
        "next       agentflow trust  after you have written your test command into .claude/agentflow.yaml"
    )


@pytest.mark.parametrize("width", [80, 120])
def test_what_it_tells_fits_a_terminal(repo: Repo, width: int) -> None:
    rows = at_terminal(repo, "init", columns=width).text.splitlines()
    assert rows[-1].startswith("next")
    assert all(len(row) <= width for row in rows)
