"""`verify TASK`: what a record is worth once somebody has had their hands on it (F5)."""

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentflow.process import capture
from tests.support import play
from tests.support.repo import Done, NewRepo, Repo

SCRIPT = play.mending()
WRONG = [
    play.findings(),
    play.plan("calc.py"),
    play.role("implementer", *play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py")),
    play.role("implementer", play.submit("calc.py")),
]


def again(repo: Repo, *options: str) -> Done:
    return repo.run("verify", repo.folder.name, *options)


def flip(path: Path, at: int = -2) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def test_a_true_record_holds_without_a_model(done: Repo) -> None:
    before = {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()}
    seen = again(done, "--json")
    assert seen.code == 0, seen.out
    assert [row["subject"] for row in seen.json] == ["ev-0001", "ev-0002", "ev-0003", "verdict"]
    assert not any(row["differs"] or row["left_out"] for row in seen.json)
    assert {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()} == before


def test_the_tests_of_a_repository_inside_count_here_and_there(new_repo: NewRepo) -> None:
    inner = {f"lib/{name}": text for name, text in play.GREEN.items()}
    repo = new_repo(play.CALC).write(inner)
    capture(("git", "init", "-q"), cwd=repo.root / "lib")
    assert repo.task(script=SCRIPT).code == 0
    assert {"tests", "lib/tests"} <= set(repo.evidence()[0]["command"].replace(";", "").split())
    seen = again(repo)
    assert seen.code == 0, seen.out


BYTES = {
    "evidence/ev-0002.out": "ev-0002",
    "task.md": "task.md",
    "events.jsonl": "events.jsonl",
    "evidence/ev-0001.json": "ev-0001",
    "evidence/ev-0002.json": "ev-0002",
    "evidence/ev-0002.ids": "ev-0002",
    "report.md": "report.md",
}
"""Files of a task, and what a damaged one is named by; one is tried alone here, all in tests/soak."""


@pytest.mark.parametrize(("name", "subject"), [("events.jsonl", "events.jsonl")])
def test_one_changed_byte_is_named(done: Repo, name: str, subject: str) -> None:
    path = done.folder / name
    flip(path, path.read_bytes().index(b"verified") if name == "task.md" else -2)
    seen = again(done, "--json")
    assert seen.code == 1
    assert subject in {row["subject"] for row in seen.json if row["differs"]}


def test_a_changed_byte_of_the_change_is_named(done: Repo) -> None:
    flip(done.root / "calc.py")
    seen = again(done)
    assert seen.code == 1
    assert "not those that were judged: calc.py" in seen.out


def test_what_was_changed_is_gone_or_slipped_in_is_named(done: Repo) -> None:
    flip(done.folder / "evidence/ev-0002.out")
    task = done.folder / "task.md"
    flip(task, task.read_bytes().index(b"verified"))
    shutil.copy(done.folder / "evidence/ev-0002.json", done.folder / "evidence/ev-0009.json")
    (done.folder / "evidence/ev-0001.out").unlink()
    seen = again(done, "--json")
    assert seen.code == 1
    named = {row["subject"] for row in seen.json if row["differs"]}
    assert named >= {"ev-0001", "ev-0002", "ev-0009", "task.md"}


def forge(repo: Repo, evidence: str, **keys: Any) -> None:
    """Change a record, and let the events agree with it."""
    path = repo.folder / "evidence" / f"{evidence}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))

    def agree(event: dict[str, Any]) -> None:
        if event["type"] == "EvidenceRecorded" and event["evidence"] == evidence:
            event["files"] = {}

    repo.reseal(agree)


def test_a_part_of_the_tests_does_not_stand_for_all_of_them(done: Repo) -> None:
    whole, part = (
        json.loads((done.folder / f"evidence/{name}.json").read_text()) for name in ("ev-0002", "ev-0003")
    )
    assert part["command"] != whole["command"]

    def agree(event: dict[str, Any]) -> None:
        for item in event.get("changed", {}).get("final", []):
            item["check"]["command"] = part["command"]

    forge(done, "ev-0002", command=part["command"])
    done.reseal(agree)
    seen = again(done)
    assert seen.code == 1
    assert "ev-0002: the record is of" in seen.out


def test_a_part_runs_nothing_but_tests(done: Repo) -> None:
    command = json.loads((done.folder / "evidence/ev-0003.json").read_text())["command"]
    forge(done, "ev-0003", command=f"{command} --locals -k test_double")
    seen = again(done)
    assert seen.code == 1
    assert "ev-0003: the record is of" in seen.out


def test_a_forged_result_is_run_again_and_a_forged_verdict_computed_anew(
    new_repo: NewRepo,
) -> None:
    repo = new_repo(play.CALC)
    assert repo.task(script=WRONG).code == 1
    passed = {"passed": True, "reasons": [], "evidence": ["ev-0002"], "caveats": [], "notes": []}

    def praise(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        if changed.get("verdict"):
            changed["verdict"] = passed

    forge(repo, "ev-0002", exit_code=0, tests={"passed": 3, "failed": 0, "skipped": 0, "errors": 0})
    repo.reseal(praise)
    seen = again(repo)
    assert seen.code == 1
    assert "ev-0002: exit 1 now, exit 0 in the record" in seen.out
    assert "verdict: new failures: " in seen.out


def test_a_forged_command_is_not_what_the_tree_requires(done: Repo) -> None:
    forge(done, "ev-0002", command="true")
    seen = again(done)
    assert seen.code == 1
    assert "the record is of `true`; its tree requires `python3 -m unittest" in seen.out


def test_a_check_that_the_record_forgets_is_named(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, "package.json": '{"scripts": {"lint": "true"}}'})
    assert repo.task(script=[*SCRIPT[:-1], play.verified("ev-0004")]).code == 0

    def forget(event: dict[str, Any]) -> None:
        for key in ("baseline", "final"):
            if kept := event.get("changed", {}).get(key):
                event["changed"][key] = [one for one in kept if one["check"]["name"] == "tests"]
        if verdict := event.get("changed", {}).get("verdict"):
            verdict.update(passed=True, reasons=[])

    repo.reseal(forget)
    seen = again(repo)
    assert seen.code == 1
    assert "lint" in seen.out


def test_a_record_of_another_tree_is_stale(done: Repo) -> None:
    base = json.loads((done.folder / "evidence/ev-0001.json").read_text())["tree_before"]
    forge(done, "ev-0002", tree_before=base)
    assert again(done).code == 1


def test_it_holds_in_a_fresh_clone_with_the_task_folder(done: Repo, tmp_path: Path) -> None:
    seen = again(clone_of(done, tmp_path))
    assert seen.code == 0, seen.out
    assert "each with the recorded result" in seen.out


def fresh(repo: Repo, tmp_path: Path) -> Repo:
    """A repository with these files and no past."""
    clone = Repo(tmp_path / "other", repo.home)
    shutil.copytree(repo.root, clone.root, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    return clone


def test_without_the_tree_from_before_only_the_judged_one_is_run(done: Repo, tmp_path: Path) -> None:
    seen = again(fresh(done, tmp_path))
    assert seen.code == 0, seen.out
    assert "skipped  ev-0001: not run again: this repository has no tree" in seen.out
    assert "2 of 4 records checked again" in seen.out


def test_without_the_judged_tree_nothing_is_verified(done: Repo, tmp_path: Path) -> None:
    clone = fresh(done, tmp_path)
    flip(clone.root / "calc.py")
    seen = again(clone)
    assert seen.code == 1
    assert "ev-0002: not run again: this repository has no tree" in seen.out


SOFTER = play.CALC["tests/test_calc.py"].replace("assertEqual(add(1, 2), 3)", "assertTrue(add(1, 2))")
NEW = """import unittest

from calc import triple


class TripleTest(unittest.TestCase):
    def test_triple(self):
        self.assertEqual(triple(2), 6)
"""
TRIPLE = play.GREEN["calc.py"] + "\n\ndef triple(a):\n    return 3 * a\n"
ADDED = [
    play.findings(),
    play.plan("calc.py", "tests/test_triple.py"),
    play.role(
        "implementer",
        play.turn(play.call("Read", file_path="calc.py")),
        play.turn(play.call("Write", file_path="calc.py", content=TRIPLE)),
        play.turn(play.call("Write", file_path="tests/test_triple.py", content=NEW)),
        play.submit("calc.py", "tests/test_triple.py"),
    ),
    play.verified("ev-0002"),
]


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task that softened a test of code that stays wrong, and a person who approved that."""
    folder = tmp_path_factory.mktemp("approved") / "now"
    repo = Repo(folder / "repo", folder / "home").write(play.CALC).commit()
    turns = [play.turn(play.call("Read", file_path="tests/test_calc.py"))]
    turns += [play.turn(play.call("Write", file_path="tests/test_calc.py", content=SOFTER))]
    changed = play.edit("calc.py", "a - b", "a + 3 * b")
    mended = play.role("implementer", *changed, *turns, play.submit("calc.py", "tests/test_calc.py"))
    assert repo.task(script=[*SCRIPT[:2], mended, play.verified("ev-0002")]).code == 75
    (waiting,) = repo.run("status", "--json").json["pending"]
    assert repo.run("approve", waiting["id"]).code == 0
    assert repo.run("resume").code == 4
    repo.keep()
    return repo


@pytest.fixture
def softened(approved: Repo) -> Repo:
    return approved.put_back()


def clone_of(repo: Repo, tmp_path: Path) -> Repo:
    """A fresh clone with the change committed, and the task's folder."""
    repo.git("add", "-A")
    repo.git("commit", "-qm", "mended")
    clone = Repo(tmp_path / "other", repo.home)
    shutil.rmtree(clone.root)
    repo.git("clone", "-q", str(repo.root), str(clone.root))
    shutil.copytree(repo.folder, clone.root / ".claude/agentflow" / repo.folder.name)
    return clone


def sides(repo: Repo) -> dict[str, str]:
    return {f"{one['surface']} on {one['code']}": one["id"] for one in repo.evidence()}


def looked_at(seen: Done) -> set[str]:
    return {row["subject"] for row in seen.json if not row["left_out"]}


def test_runs_under_the_checks_from_before_are_made_again_in_a_clone(softened: Repo, tmp_path: Path) -> None:
    assert set(sides(softened)) == {"base on base", "final on final", "base on final", "final on base"}
    seen = again(clone_of(softened, tmp_path), "--json")
    assert seen.code == 0, seen.out
    assert looked_at(seen) == {*sides(softened).values(), "verdict"}


def test_runs_on_the_code_from_before_are_made_again_in_a_clone(new_repo: NewRepo, tmp_path: Path) -> None:
    repo = new_repo(play.GREEN)
    assert repo.task("--no-input", "add triple to calc.py", script=ADDED).code == 0
    assert set(sides(repo)) == {"base on base", "final on final", "base on final", "final on base"}
    seen = again(clone_of(repo, tmp_path), "--json")
    assert seen.code == 0, seen.out
    assert looked_at(seen) == {*(one["id"] for one in repo.evidence()), "verdict"}


def test_a_changed_check_that_the_record_keeps_quiet_about_is_named(softened: Repo) -> None:
    def hush(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        if changed.get("verdict"):
            changed["verdict"].update(weakened=[], approval=None, to_approve=False, reasons=[], passed=True)
        changed.pop("answers", None)

    softened.reseal(hush)
    seen = again(softened)
    assert seen.code == 1
    assert "leaves out that" in seen.out
    assert "test_add" in seen.out


def take_all_out(event: dict[str, Any]) -> None:
    """Call every file product, and leave out the run of the original checks."""
    changed = event.get("changed", {})
    if "surface" in changed:
        changed["surface"].update(removed=["**"], named=[], observed={})
    if "held" in changed:
        changed["held"] = []


def forget_the_original_checks(event: dict[str, Any]) -> None:
    if "held" in event.get("changed", {}):
        event["changed"]["held"] = []


def forget_every_run(event: dict[str, Any]) -> None:
    for key in {"baseline", "final", "held"} & event.get("changed", {}).keys():
        event["changed"][key] = []


def take_the_new_run_for_the_old(event: dict[str, Any]) -> None:
    """Let the tests have been before the task what they are now."""
    for key in {"baseline", "held"} & event.get("changed", {}).keys():
        for one in event["changed"][key]:
            one["evidence"] = "ev-0002"


def forget_the_approval(event: dict[str, Any]) -> None:
    if verdict := event.get("changed", {}).get("verdict"):
        verdict["approval"] = None


HIDING = {
    take_all_out: "tests/test_calc.py is a check by what was found here, and product in the record",
    forget_the_original_checks: "there is no record of tests as it was before the task",
    forget_every_run: "there is no record of tests, which this tree requires",
    take_the_new_run_for_the_old: "ev-0002 is not the program's run of what it stands for",
    forget_the_approval: "the record leaves out an approval of changed checks",
}


def test_a_record_that_hides_what_its_checks_were_is_refused(softened: Repo) -> None:
    path = softened.folder / "events.jsonl"
    honest = path.read_bytes()
    for change, told in HIDING.items():
        path.write_bytes(honest)
        softened.reseal(change)
        seen = again(softened)
        assert (seen.code, told in seen.out) == (1, True), seen.out
    path.write_bytes(honest)
    runs = sides(softened)
    held, before = runs["base on final"], runs["base on base"]
    final = softened.folder / f"evidence/{runs['final on final']}.json"
    forge(softened, held, tree_before=json.loads(final.read_text())["tree_before"])
    forge(softened, before, by="agent")
    seen = again(softened)
    assert seen.code == 1
    assert f"{held}: its tree is not the final code under the base checks" in seen.out
    assert f"{before} is not the program's run of what it stands for" in seen.out


def test_data_that_tests_read_is_a_check_whatever_the_record_calls_it(new_repo: NewRepo) -> None:
    reading = "self.assertEqual(add(1, 2), int(open('sums/small').read()))"
    tests = play.CALC["tests/test_calc.py"].replace("self.assertEqual(add(1, 2), 3)", reading)
    assert reading in tests
    repo = new_repo({**play.CALC, "tests/test_calc.py": tests, "sums/small": "3\n", "sums/rest": "9\n"})
    look = play.turn(play.call("Read", file_path="sums/small"))
    wrong = play.turn(play.call("Write", file_path="sums/small", content="7\n"))
    edits = play.edit("calc.py", "a - b", "a + 3 * b")
    work = play.role("implementer", *edits, look, wrong, play.submit("calc.py", "sums/small"))
    assert repo.task(script=[*SCRIPT[:2], work, play.verified("ev-0002")]).code == 75
    (waiting,) = repo.run("status", "--json").json["pending"]
    assert repo.run("approve", waiting["id"]).code == 0
    repo.run("resume")
    assert again(repo).code == 0

    def call_it_product(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        if surface := changed.get("surface"):
            surface.update(observed={}, product={"sums/small": "read by calc.py"}, read=["sums/small"])
        for key in {"held", "answers"} & changed.keys():
            changed[key] = type(changed[key])()
        if verdict := changed.get("verdict"):
            verdict.update(weakened=[], approval=None, to_approve=False, reasons=[], caveats=[], passed=True)

    repo.reseal(call_it_product)
    seen = again(repo)
    assert seen.code == 1
    assert "sums/small is a check by what was found here, and product in the record" in seen.out


def test_settings_that_take_out_a_test_count_if_trusted(new_repo: NewRepo, tmp_path: Path) -> None:
    repo = new_repo({**play.CALC, ".claude/agentflow.yaml": "surface:\n  remove: [tests/test_calc.py]\n"})
    assert repo.run("trust", "--yes").code == 0
    wider = play.edit("tests/test_calc.py", "class", "# wider\nclass")
    mended = play.role("implementer", *play.MENDED, *wider, play.submit("calc.py", "tests/test_calc.py"))
    assert repo.task(script=[*SCRIPT[:2], mended, play.verified("ev-0002")]).code in (0, 4)
    assert again(repo).code == 0
    clone = clone_of(repo, tmp_path)
    clone.home = tmp_path / "nobody"
    assert "tests/test_calc.py is a check by what was found here" in again(clone).out


def test_a_caveat_that_became_none_is_named(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    change = play.role("implementer", *play.edit("calc.py", "2 * a", "a * 2"), play.submit("calc.py"))
    text = "make double clearer in calc.py"
    assert repo.task(text, script=[*SCRIPT[:2], change, SCRIPT[3]]).code == 4

    def praise(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        if changed.get("status") == "verified_with_caveat":
            changed["status"] = "verified"

    repo.reseal(praise)
    path = repo.folder / "task.md"
    path.write_text(path.read_text().replace("status: verified_with_caveat", "status: verified", 1))
    seen = again(repo)
    assert seen.code == 1
    assert "verified is not what follows" in seen.out


def test_what_git_ignores_and_nobody_changed_is_there_again(new_repo: NewRepo) -> None:
    reading = play.CALC["tests/test_calc.py"].replace("import unittest\n", "import unittest\nimport made\n")
    repo = new_repo({**play.CALC, "tests/test_calc.py": reading, ".gitignore": "made.py\n"})
    repo.write({"made.py": "YEAR = 2026\n"})
    assert repo.task(script=SCRIPT).code == 0
    assert again(repo).code == 0
    repo.write({"made.py": "YEAR = 2027\n"})
    assert "ev-0002: exit 1 now, exit 0 in the record" in again(repo).out


def exported(repo: Repo, tmp_path: Path) -> Path:
    path = tmp_path / "record.tar.gz"
    assert repo.run("evidence", repo.folder.name, "--export", str(path)).code == 0
    return path


def test_an_exported_record_is_looked_at_in_a_clone_without_the_task(done: Repo, tmp_path: Path) -> None:
    record, clone = exported(done, tmp_path), clone_of(done, tmp_path)
    shutil.rmtree(clone.root / ".claude")
    seen = clone.run("verify", str(record), "--json")
    assert seen.code == 0, seen.out + seen.err
    assert looked_at(seen) == {"ev-0001", "ev-0002", "ev-0003", "verdict"}
    assert not (clone.root / ".claude").exists()
    flip(clone.root / "calc.py")
    assert "not those that were judged: calc.py" in clone.run("verify", str(record)).out


def repacked(path: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(path) as bundle:
        parts = [(each, bundle.extractfile(each)) for each in bundle]
        held = [(each, file.read() if file else b"") for each, file in parts]
    with tarfile.open(path, "w:gz") as bundle:
        for each, content in held:
            member, now = change(each, content)
            member.size = len(now)
            bundle.addfile(member, io.BytesIO(now))


def test_one_changed_byte_of_an_exported_record_is_named(done: Repo, tmp_path: Path) -> None:
    record = exported(done, tmp_path)
    repacked(record, lambda each, text: (each, text + b"x" if each.name.endswith("0002.out") else text))
    seen = done.run("verify", str(record))
    assert seen.code == 1
    assert "ev-0002" in seen.out


def test_an_exported_record_writes_nowhere_else(done: Repo, tmp_path: Path) -> None:
    whole = exported(done, tmp_path)
    for name in ("../events.jsonl", "/tmp/ev-0001.out", "evidence/../../x", ".git/config"):
        record = tmp_path / "led-out.tar.gz"
        shutil.copy(whole, record)

        def lead_out(each: tarfile.TarInfo, text: bytes, out: str = name) -> tuple[tarfile.TarInfo, bytes]:
            return each.replace(name=out, deep=False) if each.name == "report.md" else each, text

        repacked(record, lead_out)
        seen = done.run("verify", str(record))
        assert seen.code == 2, name
        assert "is not a complete record" in seen.err, name


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"x" * 99)], ids=["empty", "text", "gzip"]
)
def test_another_file_is_one_message(content: bytes, done: Repo, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(content)
    seen = done.run("verify", str(tmp_path / "other"))
    assert (seen.code, seen.err.count("Traceback")) == (2, 0)
    assert "--export" in seen.err


def test_an_export_that_cannot_be_written_is_one_message(done: Repo) -> None:
    seen = done.run("evidence", "--export", "no/such/folder/file")
    assert seen.code == 2
    assert "cannot write no/such/folder/file" in seen.err


def test_a_task_that_is_not_there_is_a_usage_error(done: Repo) -> None:
    assert done.run("verify", "20200101T000000Z-none").code == 2


def test_a_forged_proof_of_tests_alone_is_run_again(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    old = "    def test_double(self):\n"
    new = f"    def test_more(self):\n        self.assertTrue(True or double(2))\n\n{old}"
    work = play.role(
        "implementer", *play.edit("tests/test_calc.py", old, new), play.submit("tests/test_calc.py")
    )
    script = [play.findings(), play.plan("tests/test_calc.py"), work, play.verified("ev-0002")]
    assert repo.task("cover double better", script=script).code == 4

    def praise(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        for probe in changed.get("probes") or ():
            if probe["kind"] == "tests_only":
                probe["end"] = "red as it must"
        if changed.get("verdict"):
            changed["verdict"]["caveats"] = []

    repo.reseal(praise)
    seen = again(repo)
    assert seen.code == 1
    assert "the record leaves out the caveat unproved" in seen.out


def test_what_had_to_fail_is_run_again(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    hidden = play.edit("calc.py", "2 * a", "2 * a if a < 50 else 0")
    script = [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *play.MENDED, *hidden, play.submit("calc.py")),
        play.verified("ev-0002"),
    ]
    assert repo.task(script=script).code == 4

    def forget(event: dict[str, Any]) -> None:
        changed = event.get("changed", {})
        if "probes" in changed:
            changed["probes"] = []
        if changed.get("verdict"):
            changed["verdict"]["caveats"] = []

    repo.reseal(forget)
    seen = again(repo)
    assert seen.code == 1
    assert "the record leaves out the caveat unproved" in seen.out
