"""Changed Go that no test runs is found by what Go counts."""

from pathlib import Path

import pytest

from agentflow.checks.code_coverage import count_go, read_go_coverage
from agentflow.core.check_command import CommandPart, join_parts
from agentflow.verdict.probes.go_branches import count_branches
from agentflow.workspace.mixed_tree import ChangedTexts

GO = """package pager

import "runtime/debug"

// Pages é 💶 counts.
func Pages(total, size int) int {
	if len(debug.Stack()) > 0 {
		return (total + size - 1) / size
	}
	return total / size
}

func Even(name string) (bool, error) {
	total, err := read(name)
	if err != nil {
		return false, err
	}
	right := false
	if _, ok := debug.ReadBuildInfo(); ok {
		right = true
	}
	if total%2 == 0 {
		return right, nil
	} else if total > 1000 {
		return true, nil
	}
	return false, nil
}
"""
PROFILE = """mode: atomic
example.org/pager/pager.go:6.33,7.28 1 1
example.org/pager/pager.go:10.2,10.21 1 0
example.org/pager/pager.go:7.28,9.3 1 1
example.org/pager/pager.go:13.38,15.16 2 3
example.org/pager/pager.go:15.16,17.3 1 0
example.org/pager/pager.go:18.2,19.40 2 3
example.org/pager/pager.go:19.40,21.3 1 3
example.org/pager/pager.go:22.2,22.18 1 3
example.org/pager/pager.go:22.18,24.3 1 1
example.org/pager/pager.go:24.8,24.25 1 2
example.org/pager/pager.go:24.25,26.3 1 0
example.org/pager/pager.go:27.2,27.19 1 2
"""
"""What Go tells of that file, as one package's tests ran it."""


def list_untried_go(
    folder: Path, profile: str, path: str = "pager.go", text: str = GO, before: str = "package pager\n"
) -> list[str]:
    for name, said in {"go.mod": "module example.org/pager\n", path: text, "go-0.profile": profile}.items():
        folder.joinpath(name).write_text(said, "utf-8")
    told = read_go_coverage("go test ./...", folder, [folder])
    counted = count_branches(ChangedTexts(path=path, before=before, after=text))
    assert counted is not None
    return [f"{hunk.place}: {hunk.wanted}" for hunk in counted.list_untried(told)]


def test_code_of_go_that_no_test_runs_is_found_and_errors_that_it_passes_on_are_not(tmp_path: Path) -> None:
    assert list_untried_go(tmp_path, PROFILE) == [
        "pager.go:10: that runs `return total / size`",
        "pager.go:25: that runs `return true, nil`",
        "pager.go:19: in which `_, ok := debug.ReadBuildInfo(); ok` is false",
    ]


def test_a_line_that_only_new_branches_of_go_keep_from_running_is_found(tmp_path: Path) -> None:
    before = GO.replace("\tif len(debug.Stack()) > 0 {\n\t\treturn (total + size - 1) / size\n\t}\n", "")
    found = list_untried_go(tmp_path, PROFILE, before=before)
    assert found == ["pager.go:10: that runs `return total / size`"]


def test_several_packages_of_go_count_as_one(tmp_path: Path) -> None:
    others = PROFILE.replace("mode: atomic\n", "").replace(" 0\n", " 2\n")
    others = others.replace("19.40,21.3 1 3", "19.40,21.3 1 2").replace("7.28,9.3 1 1", "7.28,9.3 1 0")
    assert list_untried_go(tmp_path, PROFILE + others) == []


def test_a_file_of_go_that_no_build_of_the_tests_has_is_untried(tmp_path: Path) -> None:
    text = "package pager\n\nfunc Last(total int) int {\n\treturn 0\n}\n"
    (found,) = list_untried_go(tmp_path, PROFILE, "last_windows.go", text)
    assert found == "last_windows.go:3: that runs this file, on a system for which it is compiled"
    text = "//go:build windows\n\npackage pager\n"
    assert list_untried_go(tmp_path, PROFILE, "last_windows.go", text) == []


def test_nothing_follows_where_go_tells_nothing(tmp_path: Path) -> None:
    assert list_untried_go(tmp_path, "") == []
    assert list_untried_go(tmp_path, "mode: atomic\nelse.org/x/pager.go:6.33,7.28 1 1\n") == []


@pytest.mark.parametrize("text", [GO.replace("\n", "\r\n"), GO.replace("er\n", "er // a\x0cb\u2028c\n", 1)])
def test_lines_of_go_end_where_go_ends_them(text: str, tmp_path: Path) -> None:
    found = list_untried_go(tmp_path, PROFILE, text=text)
    told = [each.partition(": ")[2] for each in found]
    assert told == ["that runs `return total / size`", "that runs `return true, nil`"]


@pytest.mark.parametrize(
    "row",
    [
        "example.org/pager/../../etc/passwd:1.1,2.2 1 1",
        "example.org/pager//etc/passwd:1.1,2.2 1 1",
        f"example.org/pager/{'a' * 300}.go:1.1,2.2 1 1",
        f"example.org/pager/pager.go:1.1,2.2 1 {'9' * 5000}",
    ],
)
def test_a_profile_that_tests_wrote_themselves_is_no_error(row: str, tmp_path: Path) -> None:
    assert "pager.go:10: that runs `return total / size`" in list_untried_go(tmp_path, f"{PROFILE}{row}\n")


def test_only_one_run_of_go_a_module_counts() -> None:
    assert " -coverprofile=/x/go-0.profile ./..." in count_go("go test ./...", Path("/x"), [])
    for command in ("go test ./a && go test ./b", "go test -cover ./...", "make test"):
        assert count_go(command, Path("/x"), []) == command


def test_the_modules_of_a_repository_are_counted_together(tmp_path: Path) -> None:
    module, inner = "example.org/pager", "example.org/pager/shows"
    for folder, name in {"": module, "shows": inner}.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "go.mod").write_text(f"module {name}\n")
    (tmp_path / "shows/a.go").write_text("package shows\n\nfunc A() {\n\tprint()\n}\n")
    command = join_parts(CommandPart(command="go test ./...", folder=folder) for folder in ("", "shows/"))

    counted = count_go(command, tmp_path, [tmp_path])

    assert counted.count(f" -coverpkg={inner}/...,{module}/... ") == 2
    for at, count in enumerate((0, 1)):
        row = f"{inner}/a.go:3.10,5.2 1 {count}\n"
        (tmp_path / f"go-{at}.profile").write_text(f"mode: atomic\n{row}")
    load = read_go_coverage(command, tmp_path, [tmp_path])["shows/a.go"]
    assert load[1][0][2] == 1
