import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentflow.checks.code_coverage import Load, count_go, read_coverage, read_go_coverage
from agentflow.core.check_command import CommandPart, join_parts
from agentflow.verdict.probes.recording import record_change
from agentflow.verdict.probes.script_branches import count_script
from agentflow.workspace.mixed_tree import ChangedTexts

BEFORE = (
    "function pages (total, size) {\n  return Math.floor(total / size)\n}\n\nmodule.exports = { pages }\n"
)
RIGHT = "Math.ceil(total / size)"
WRONG = "Math.floor(total / size)"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="runs node")


def change_to(after: str, before: str = BEFORE) -> ChangedTexts:
    return ChangedTexts(path="pages.js", before=before, after=after)


def body(*lines: str) -> str:
    return BEFORE.replace(f"  return {WRONG}\n", "".join(f"  {line}\n" for line in lines))


def run(folder: Path, text: str, *calls: str) -> dict[str, tuple[Load, ...]]:
    """Return what node tells of a file and of calls, each in a process of its own."""
    folder.joinpath("pages.js").write_text(text, "utf-8")
    env = {**os.environ, "NODE_V8_COVERAGE": str(folder / "counted")}
    for call in calls:
        code = f"const {{ pages }} = require('./pages.js'); {call}"
        subprocess.run(["node", "-e", code], cwd=folder, env=env, check=True)
    return dict(read_coverage(folder / "counted", [folder]))


def untried(folder: Path, after: str, *calls: str, before: str = BEFORE) -> list[str]:
    """Return what calls of the changed code leave untried."""
    counted = count_script(change_to(after, before))
    if counted is None:
        return []
    told = run(folder, after, *(calls or ("pages(7, 3); pages(6, 3)",)))
    assert counted.is_loaded(told)
    return [f"{hunk.place}: {hunk.wanted}" for hunk in counted.list_untried(told)]


WRONG_SOMEWHERE = {
    "a conditional": (body(f"return process.uptime() < 60 ? {RIGHT} : {WRONG}"), 2, WRONG),
    "beside letters of two units": (
        body(f"const name = '💶ü'; return process.uptime() < 60 ? {RIGHT} : {WRONG}"),
        2,
        WRONG,
    ),
    "a return before": (body(f"if (process.uptime() < 60) return {RIGHT}", f"return {WRONG}"), 3, None),
    "a block that returns": (
        body("if (process.uptime() < 60) {", f"  return {RIGHT}", "}", f"return {WRONG}"),
        5,
        None,
    ),
    "over several lines": (
        body("return total &&", "  process.uptime() < 60", f"  ? {RIGHT}", f"  : {WRONG}"),
        5,
        WRONG,
    ),
    "always true": (
        body(
            f"let all = {WRONG}", "if (process.uptime() < 60 && ')') {", f"  all = {RIGHT}", "}", "return all"
        ),
        3,
        None,
    ),
    "joined": (body(f"return (total < 1000 && {RIGHT}) || {WRONG}"), 2, WRONG),
    "in a handler": (body("try {", f"  return {RIGHT}", "} catch (error) {", "  return 0", "}"), 4, None),
    "in a case": (
        body("switch (total) {", "  case 77:", "    return 0", f"  default: return {RIGHT}", "}"),
        3,
        None,
    ),
    "in another function": (body(f"return {RIGHT}") + "\nfunction spare () {\n  return 3\n}\n", 7, None),
}


@needs_node
@pytest.mark.parametrize(("after", "line", "said"), WRONG_SOMEWHERE.values(), ids=WRONG_SOMEWHERE.keys())
def test_a_part_of_new_code_that_no_call_runs_is_told_by_its_place(
    tmp_path: Path, after: str, line: int, said: str | None
) -> None:
    found = untried(tmp_path, after)
    assert [each.split(":")[1] for each in found] == [str(line)], found
    assert said is None or f"that runs `{said}`" in found[0]


EVEN = body("if (total % size === 0) {", "  return total / size", "}", f"return {RIGHT}")
OLD = body("if (size < 1) {", "  throw new Error('size')", "}", f"return {WRONG}")
TRIED = {
    "no branch": (BEFORE, body(f"return {RIGHT}")),
    "both ways": (BEFORE, EVEN),
    "both ways, and words behind": (BEFORE, body(f"return total % size ? {RIGHT} : {WRONG} // ? : {{}}")),
    "in steps": (
        BEFORE,
        body("let all = total / size", "if (total % size) {", f"  all = {RIGHT}", "}", "return all"),
    ),
    "nothing to do": (BEFORE, body(f"const log = () => {{}}; log(); return {RIGHT}")),
    "a condition that was there": (
        body("if (total > 1) total += 0", f"return {WRONG}"),
        body("if (total > 1) total += 1 - 1", f"return {RIGHT}"),
    ),
    "a branch that was there": (OLD, OLD.replace("floor", "ceil")),
    "a branch that is indented otherwise": (OLD, OLD.replace("  ", "    ").replace("floor", "ceil")),
    "a function that moves": (
        OLD.replace("module", "function spare () {\n  return 3\n}\n\nmodule"),
        "function spare () {\n  return 3\n}\n\n" + OLD.replace("floor", "ceil"),
    ),
    "started": (
        BEFORE,
        body(f"return {RIGHT}") + "\nconst main = () => pages(7, 3)\nmain()\n"
        "\nif (require.main === module) {\n  main()\n}\n",
    ),
}


@needs_node
@pytest.mark.parametrize(("before", "after"), TRIED.values(), ids=TRIED.keys())
def test_what_calls_run_is_told_by_nobody(tmp_path: Path, before: str, after: str) -> None:
    assert untried(tmp_path, after, before=before) == []


@needs_node
def test_what_one_of_several_processes_runs_is_tried(tmp_path: Path) -> None:
    assert untried(tmp_path, EVEN, "pages(7, 3)") == ["pages.js:3: that runs `return total / size`"]
    assert untried(tmp_path, EVEN, "pages(7, 3)", "pages(6, 3)") == []


@needs_node
def test_nothing_is_known_of_a_file_that_was_translated_as_it_was_loaded(tmp_path: Path) -> None:
    told, counted = run(tmp_path, f"'use strict'\n{EVEN}", "pages(7, 3)"), count_script(change_to(EVEN))
    assert counted is not None
    assert not counted.is_loaded(told)
    assert list(counted.list_untried(told)) == []


SCRIPT = {
    "url": "file:///work/pages.js",
    "functions": [{"ranges": [{"startOffset": 0, "endOffset": 9, "count": 1}]}],
}
OTHER = {**SCRIPT, "url": "file:///work/node_modules/x/pages.js"}
REPORTS = {
    "of the repository alone": ([{"result": [SCRIPT, OTHER]}], {"pages.js": ((((0, 9, 1),),),)}),
    "translated": ([{"result": [SCRIPT], "source-map-cache": {SCRIPT["url"]: {}}}], {}),
    "one is none": ([{"result": [SCRIPT]}, ["result"]], {}),
    "one has no numbers": (
        [{"result": [{**SCRIPT, "functions": [{"ranges": [{"startOffset": 1e999}]}]}]}],
        {},
    ),
    "none": ([], {}),
}


@pytest.mark.parametrize(("reports", "known"), REPORTS.values(), ids=REPORTS.keys())
def test_only_whole_reports_of_files_of_the_repository_are_read(
    tmp_path: Path, reports: list[object], known: object
) -> None:
    for number, report in enumerate(reports):
        tmp_path.joinpath(f"coverage-{number}.json").write_text(json.dumps(report))
    assert read_coverage(tmp_path, [Path("/work")]) == known


@pytest.mark.parametrize("forged", [(0, 10**9, 1), (-50, 400, 0), (90, 3, 1)])
def test_numbers_that_node_never_tells_do_no_harm(forged: tuple[int, int, int]) -> None:
    after = body(f"return total % size ? {RIGHT} : {WRONG}")
    counted = count_script(change_to(after))
    assert counted is not None
    whole = (0, len(after), 1)
    assert list(counted.list_untried({"pages.js": (((whole,), (forged,)), ((whole,),))})) == []


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
    counted = count_script(ChangedTexts(path=path, before=before, after=text))
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
    (load,) = read_go_coverage(command, tmp_path, [tmp_path])["shows/a.go"]
    assert load[1][0][2] == 1


@needs_node
def test_node_counts_the_same_parts_of_a_file_into_which_something_was_put(tmp_path: Path) -> None:
    after = body("const name = '💶ü', few = total < 9", f"return few + 0 ? {RIGHT} : {WRONG} * (size > 1)")
    watched, put = record_change(change_to(after), "kwq", 1)
    assert watched is not None
    counted = count_script(change_to(after))
    assert counted is not None
    counted = counted.replace(laid=watched.text, put=put)

    told = run(tmp_path, watched.text, "pages(7, 3)")

    assert counted.is_loaded(told)
    wanted = [f"{hunk.line}: {hunk.wanted}" for hunk in counted.list_untried(told)]
    assert wanted == [f"3: that runs `{WRONG} * (size > 1)`"]
