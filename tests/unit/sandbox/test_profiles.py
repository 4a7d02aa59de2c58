"""Profiles as words and rules, and what belongs into them."""

import os
from pathlib import Path

import pytest

from agentflow.core.routing import Access
from agentflow.sandbox import seccomp
from agentflow.sandbox.confine import build_bubblewrap_arguments, write_seatbelt_rules
from agentflow.sandbox.profile import Profile, is_protected
from agentflow.sandbox.protection import find_hidden_places

ROOT = Path("/srv/repo")
PROFILE = Profile(
    masked=(),
    root=ROOT,
    source=ROOT,
    access=Access.WRITE,
    cwd="/srv/repo",
    network=False,
    hidden=(Path("/home"), Path("/tmp")),
    readable=(Path("/home/u/.cargo/bin"),),
    protected=(ROOT / ".git",),
    writable=(Path("/tmp/scratch"),),
)


def pairs(words: tuple[str, ...], option: str) -> list[str]:
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_later_mounts_lie_over_earlier_ones() -> None:
    words = build_bubblewrap_arguments(PROFILE)
    order = [words.index(word) for word in ("/home", "/home/u/.cargo/bin", "/srv/repo", "/srv/repo/.git")]
    assert order == sorted(order)
    assert "--unshare-net" in words
    assert pairs(words, "--bind") == ["/srv/repo", "/tmp/scratch"]


def test_a_reader_binds_the_repository_read_only_and_a_network_is_shared_only_when_opened() -> None:
    words = build_bubblewrap_arguments(PROFILE.replace(access=Access.READ, network=True))
    assert pairs(words, "--bind") == ["/tmp/scratch"]
    assert "--unshare-net" not in words


def test_the_rules_for_macos_deny_first_and_protect_last() -> None:
    rules = write_seatbelt_rules(PROFILE).splitlines()
    assert rules[:2] == ["(version 1)", "(deny default)"]
    assert rules[-1] == '(deny file-write* (subpath "/srv/repo/.git"))'
    assert '(deny file-read* file-write* (subpath "/home"))' in rules
    assert '(allow file-write* (subpath "/srv/repo"))' in rules
    assert not any("network" in rule for rule in rules)


def test_a_reader_on_macos_writes_no_repository_and_names_are_quoted() -> None:
    odd = PROFILE.replace(access=Access.READ, network=True, writable=(Path('/tmp/a"b'),))
    rules = write_seatbelt_rules(odd).splitlines()
    assert '(allow file-write* (subpath "/srv/repo"))' not in rules
    assert '(allow file-write* (subpath "/tmp/a\\"b"))' in rules
    assert rules[-1] == "(allow network*)"


@pytest.mark.parametrize("name", [".git", ".GIT", ".claude", ".env", ".env.local", "claude.md", ".Vscode"])
def test_protected_names(name: str) -> None:
    assert is_protected(name)
    assert not is_protected(name, (name.lower(),))


@pytest.mark.parametrize("name", ["git", "agents", "hooks", "environment", ".envoy", "src", "README.md"])
def test_other_names(name: str) -> None:
    assert not is_protected(name)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_processor_has_its_own_program_of_whole_steps(machine: str) -> None:
    program = seccomp.build_filter(machine=machine)
    assert program is not None
    assert len(program) % 8 == 0
    assert program[-4:] == (0x7FFF0000).to_bytes(4, "little")
    for also in seccomp.Also:
        stricter = seccomp.build_filter((also,), machine)
        assert stricter is not None
        assert stricter != program


def test_an_unknown_processor_has_none() -> None:
    assert seccomp.build_filter(machine="vax") is None


def test_a_home_is_never_shown_again_by_what_stands_on_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "own/bin").mkdir(parents=True)
    (home / "own/bin/python3").symlink_to(home / "bin/python3")
    (home / "bin/python3").write_text("#!/bin/sh\n")
    (home / "bin/python3").chmod(0o755)
    path = os.pathsep.join([str(home / "own/bin"), str(home), "/tmp", str(tmp_path)])
    found = find_hidden_places(tmp_path / "repo", {"HOME": str(home), "PATH": path})
    mine = [place for place in found.readable if place.is_relative_to(tmp_path)]
    assert sorted(mine) == [home / "bin/python3", home / "own/bin"]
    assert any(home.is_relative_to(place) for place in found.hidden)


def test_only_folders_of_homes_are_hidden(tmp_path: Path) -> None:
    for home in ("/dev/null", str(tmp_path / "nowhere"), ""):
        hidden = find_hidden_places(tmp_path / "repo", {"HOME": home, "XDG_CONFIG_HOME": "/dev/null"}).hidden
        assert Path("/dev/null") not in hidden
        assert all(place.is_dir() or not place.stat().st_mode & 0o004 for place in hidden)


def test_what_a_batch_hides_is_hidden_but_for_the_packages_that_it_shows(tmp_path: Path) -> None:
    plans, packages = tmp_path / "plans", tmp_path / "plans/repo/node_modules"
    packages.mkdir(parents=True)
    told = {"AGENTFLOW_HIDDEN": f"{plans}{os.pathsep}/opt", "AGENTFLOW_SHOWN": str(packages)}
    outside = {"HOME": str(tmp_path / "home"), "TMPDIR": "/nowhere"}
    found = find_hidden_places(tmp_path / "clone", {**outside, **told})
    assert Path("/opt") in found.hidden
    assert packages in found.readable
    assert packages not in find_hidden_places(tmp_path / "clone", outside).readable
