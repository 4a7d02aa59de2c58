import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

MODULE = {"go.mod": "module calc\n", "calc_test.go": "package calc\n"}
GO_THAT_KEEPS_ITS_WORK = """#!/bin/sh
mkdir -p "$GOCACHE/00" || exit 1
case "$1 $2" in
"test -exec=true") test ! -e broken || exit 1 ; env true ; echo compiled >"$GOCACHE/00/std" ;;
test*) cat "$GOCACHE/00/std" || exit 1
  echo forged >"$GOCACHE/00/std" ; echo forged >"$GOCACHE/00/more" ;;
esac
"""


@pytest.fixture
def go_repo(new_repo: NewRepo, tmp_path: Path) -> Repo:
    """A repository in Go with programs that the compiler finds if its PATH is that of a check."""
    repo = new_repo(MODULE)
    forging = """#!/bin/sh\necho forged >"$GOCACHE/00/more"\n"""
    programs = {tmp_path / "bin/go": GO_THAT_KEEPS_ITS_WORK}
    programs |= {repo.root / folder / "true": forging for folder in ("vendor/bin", ".venv/bin")}
    for program, text in programs.items():
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)
    return repo


def keep_in(cache: object, repo: Repo, tmp_path: Path) -> dict[str, str]:
    path = os.pathsep.join((str(repo.root / ".venv/bin"), str(tmp_path / "bin"), os.environ["PATH"]))
    return {"PATH": path, "GOCACHE": str(cache), "XDG_CACHE_HOME": str(tmp_path / "caches")}


def test_checks_start_with_what_the_compiler_has_compiled_and_leave_nothing_there(
    go_repo: Repo, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    for _ in range(2):
        done = go_repo.run("verify", "--json", env=keep_in(cache, go_repo, tmp_path))
        assert done.json[1]["exit_code"] == 0, done.out
        kept = {path.name: path.read_text() for path in (cache / "00").iterdir()}
        assert {name for name in kept if not name.startswith("agentflow-")} == {"std"}
        assert kept["std"] == "compiled\n"
    shutil.rmtree(cache / "00")  # as `go clean -cache` does
    go_repo.run("verify", env=keep_in(cache, go_repo, tmp_path))
    assert (cache / "00/std").exists()


def test_a_cache_that_could_not_be_filled_is_tried_again_and_each_try_is_told(
    go_repo: Repo, tmp_path: Path
) -> None:
    places = keep_in(tmp_path / "cache", go_repo, tmp_path)
    go_repo.write({"broken": ""})
    told = [go_repo.run("verify", env=places).out for _ in range(2)]
    assert not (tmp_path / "cache/00/std").exists()
    (go_repo.root / "broken").unlink()
    told += [go_repo.run("verify", env=places).out for _ in range(2)]
    assert (tmp_path / "cache/00/std").exists()
    first, *others, last = (re.findall("filling .*", text) for text in told)
    assert first == ["filling Go's build cache, for at most 600 s"]
    assert others == [["filling Go's build cache, for at most 30 s"]] * 2
    assert last == []


def test_a_task_says_that_it_fills_the_cache(go_repo: Repo, tmp_path: Path) -> None:
    places = keep_in(tmp_path / "cache", go_repo, tmp_path)
    assert "! filling Go's build cache, for at most 600 s\n" in go_repo.task(env=places).err


def test_an_endless_file_behind_a_link_is_not_read_for_the_cache(go_repo: Repo, tmp_path: Path) -> None:
    (go_repo.root / "go.sum").symlink_to("/proc/kmsg")
    cache = tmp_path / "cache"
    assert go_repo.run("verify", "--json", env=keep_in(cache, go_repo, tmp_path), timeout=60).json
    assert (cache / "00/std").is_file()


def test_a_cache_that_the_repository_could_fill_is_left_alone(go_repo: Repo, tmp_path: Path) -> None:
    inside = go_repo.root / "cache"
    done = go_repo.run("verify", "--json", env=keep_in(inside, go_repo, tmp_path))
    assert done.json[1]["exit_code"] == 1, done.out
    assert not inside.exists()


def test_a_cache_that_is_no_absolute_path_is_the_usual_one(go_repo: Repo, tmp_path: Path) -> None:
    go_repo.run("verify", env=keep_in("off", go_repo, tmp_path))
    assert not (go_repo.root / "off").exists()
    assert (tmp_path / "caches/go-build/00/std").read_text() == "compiled\n"


def test_no_cache_is_made_for_a_compiler_that_is_not_installed(new_repo: NewRepo, tmp_path: Path) -> None:
    repo = new_repo({**play.CALC, "go.mod": "module calc\n"})
    folders = [each for each in os.environ["PATH"].split(":") if not Path(each, "go").exists()]
    repo.run("verify", env={"PATH": ":".join(folders), "GOCACHE": str(tmp_path / "cache")})
    assert not (tmp_path / "cache").exists()


def test_a_module_that_a_task_adds_is_compiled_once_and_no_role_has_put_anything_there(
    go_repo: Repo, tmp_path: Path
) -> None:
    for name in MODULE:
        (go_repo.root / name).unlink()
    go_repo.write({"README.md": "A calculator.\n"})
    written = [play.turn(play.call("Write", file_path=name, content=text)) for name, text in MODULE.items()]
    forged = play.call("Bash", command="mkdir -p $GOCACHE/00; echo forged >$GOCACHE/00/std")
    change = play.role("implementer", *written, play.turn(forged), play.submit(*MODULE))
    script = [play.findings("README.md", 1), play.plan(*MODULE), change]
    cache = tmp_path / "cache"
    done = go_repo.task("add a module in Go", script=script, env=keep_in(cache, go_repo, tmp_path))
    assert "! filling Go's build cache, for at most 600 s\n" in done.err
    assert (cache / "00/std").read_text() == "compiled\n"
    assert "compiled" in (go_repo.folder / "evidence/ev-0003.out").read_text()
