"""`export` and `import`: a task as one file, and what a file has to be."""

import gzip
import io
import json
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import Done, Repo

Parts = dict[str, bytes]


@pytest.fixture
def bundle(done: Repo, tmp_path: Path) -> Path:
    path = tmp_path / "task.agentflow"
    assert done.run("export", done.folder.name, str(path)).code == 0
    return path


@pytest.fixture
def clone(done: Repo, tmp_path: Path) -> Repo:
    """Another clone of the repository, in which the task's change is made but the task is not known."""
    root = tmp_path / "clone"
    shutil.copytree(done.root, root, symlinks=True)
    shutil.rmtree(root / ".claude")
    return Repo(root, done.home)


def test_a_task_goes_to_another_clone_as_one_file(done: Repo, bundle: Path, clone: Repo) -> None:
    with tarfile.open(bundle) as tar:
        names = tar.getnames()
    assert {"manifest.json", "events.jsonl", "change.patch", "evidence/ev-0001.out"} <= {*names}
    assert any(name.startswith("runs/") for name in names)
    again = bundle.with_name("again")
    said = bundle.with_name("verdict.json")
    done.git("remote", "add", "origin", "https://me:secret@git.example.org:8443/calc.git?token=x")
    assert done.run("export", done.folder.name, str(again), "--attestation", str(said)).code == 0
    assert again.read_bytes() == bundle.read_bytes()
    attested(json.loads(said.read_bytes()), done, again)
    assert clone.run("verify", str(bundle)).code == 0
    replayed = clone.run("replay", str(bundle), "--json")
    assert (replayed.code, replayed.json["difference"]) == (0, ""), replayed.out + replayed.err
    assert not (clone.root / ".claude").exists()

    taken = clone.run("import", str(bundle), "--json")
    assert (taken.code, taken.json["task_id"]) == (0, done.folder.name), taken.err
    assert clone.run("tasks", "--json").json[0]["status"] == "verified"
    assert clone.git("status", "--porcelain").split() == ["M", "calc.py"]
    clone.git("checkout", "-q", "calc.py")
    clone.git("apply", str(clone.folder / "change.patch"))
    assert clone.run("verify", done.folder.name).code == 0
    twice = clone.run("import", str(bundle))
    assert (twice.code, "already in this repository" in twice.err) == (2, True)


def attested(statement: dict[str, Any], done: Repo, bundle: Path) -> None:
    """Look at a statement of in-toto with the predicate of a SLSA verification summary."""
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert statement["subject"] == [{"name": "tree", "digest": {"gitTree": done.state()["tree"]}}]
    found = statement["predicate"]
    assert (found["verificationResult"], found["verifiedLevels"]) == ("PASSED", ["AGENTFLOW_VERIFIED"])
    assert found["resourceUri"] == "git+https://git.example.org:8443/calc.git"
    assert found["inputAttestations"][0]["digest"] == {"sha256": sha256(bundle.read_bytes()).hexdigest()}
    assert found["timeVerified"] == done.events()[-1]["at"]
    assert found["policy"]["annotations"]["checks"][0].startswith("tests: ")
    assert found["urn:agentflow:verdict"]["status"] == "verified"


def read_parts(path: Path) -> Parts:
    with tarfile.open(path) as tar:
        return {each.name: (tar.extractfile(each) or io.BytesIO()).read() for each in tar}


def write_parts(path: Path, parts: Parts, *others: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for other in others:
            tar.addfile(other)


def list_again(parts: Parts) -> Parts:
    """Let the list of hashes agree with the files."""
    listed = json.loads(parts["manifest.json"])
    listed["files"] = {
        name: sha256(text).hexdigest() for name, text in parts.items() if name != "manifest.json"
    }
    return {**parts, "manifest.json": json.dumps(listed).encode()}


def change_byte(parts: Parts) -> Parts:
    return {**parts, "evidence/ev-0002.out": parts["evidence/ev-0002.out"][:-2] + b"X\n"}


def change_event(parts: Parts) -> Parts:
    """Praise the task, with checksums that are right again."""
    lines = []
    for line in parts["events.jsonl"].splitlines():
        event = json.loads(line)
        del event["sum"]
        body = json.dumps(event, separators=(",", ":")).replace("let add return", "let all return").encode()
        lines.append(b'%s,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body)))
    return {**parts, "events.jsonl": b"".join(lines)}


def rename_task(parts: Parts) -> Parts:
    listed = json.loads(parts["manifest.json"])
    return {**parts, "manifest.json": json.dumps({**listed, "task_id": "../../../../evil"}).encode()}


def change_patch(parts: Parts) -> Parts:
    return {
        **parts,
        "change.patch": parts["change.patch"].replace(b"+    return a + b", b"+    return a * b"),
    }


def change_reply(parts: Parts) -> Parts:
    """Let the explorer have said something else, in the same way and at the same place."""
    (name,) = (name for name in parts if name.endswith("-explorer.jsonl"))
    return {**parts, name: parts[name].replace(b"calc.py", b"cash.py")}


ATTACKS: dict[str, tuple[Callable[[Parts], Parts], str]] = {
    "a changed byte": (change_byte, "evidence/ev-0002.out was changed"),
    "a changed byte in a list that agrees": (
        lambda parts: list_again(change_byte(parts)),
        "forged or damaged",
    ),
    "a forged event": (lambda parts: list_again(change_event(parts)), "forged or damaged"),
    "a damaged event": (
        lambda parts: list_again(
            {**parts, "events.jsonl": parts["events.jsonl"].replace(b"verified", b"verifies", 1)}
        ),
        "forged or damaged",
    ),
    "a forged patch": (lambda parts: list_again(change_patch(parts)), "change.patch makes another tree"),
    "a patch that is none": (
        lambda parts: list_again({**parts, "change.patch": b"nothing"}),
        "change.patch cannot be applied",
    ),
    "forged replies": (lambda parts: list_again(change_reply(parts)), "-explorer.jsonl was changed"),
    "replies of nobody": (
        lambda parts: list_again({**parts, "runs/99-x.jsonl": b""}),
        "runs/99-x.jsonl: no event mentions this run",
    ),
    "another task's name": (rename_task, "of another task"),
    "a file that is not listed": (lambda parts: {**parts, "runs/99-x.jsonl": b""}, "'runs/99-x.jsonl'"),
    "a file that is listed and not there": (
        lambda parts: {name: text for name, text in parts.items() if name != "report.md"},
        "'report.md'",
    ),
    "a path that leads out": (lambda parts: {**parts, "../evil": b""}, "'../evil'"),
    "an absolute path": (lambda parts: {**parts, "/tmp/evil": b""}, "'/tmp/evil'"),
    "a path into git": (lambda parts: {**parts, "runs/../../.git/config": b""}, "it holds"),
    "no list": (
        lambda parts: {name: parts[name] for name in parts if name != "manifest.json"},
        "list of hashes",
    ),
    "an empty archive": (lambda _: {}, "list of hashes"),
    "a list of a later version": (
        lambda parts: {
            **parts,
            "manifest.json": parts["manifest.json"].replace(b'"version":1', b'"version":2'),
        },
        "newer agentflow",
    ),
}


def is_refused(done: Done, reason: str) -> bool:
    return done.code == 2 and reason in done.err and len(done.err.strip().splitlines()) <= 2


@pytest.mark.parametrize("name", ATTACKS)
def test_a_file_that_is_not_as_it_was_written_is_refused_with_one_message(
    bundle: Path, clone: Repo, name: str
) -> None:
    change, reason = ATTACKS[name]
    write_parts(bundle, change(read_parts(bundle)))
    seen = clone.run("import", str(bundle))
    assert is_refused(seen, reason), seen.err
    assert not clone.tasks
    if name not in ("no list", "another task's name"):  # these hold a record all the same
        assert clone.run("verify", str(bundle)).code in (1, 2)
    assert not [*clone.root.parent.rglob("evil")]


def odd_members() -> Iterator[tarfile.TarInfo]:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
        member = tarfile.TarInfo("runs/7-x.jsonl")
        member.type, member.linkname = kind, "/etc/passwd"
        yield member


@pytest.mark.parametrize("member", [*odd_members()], ids=lambda member: f"type {member.type.decode()}")
def test_links_and_devices_are_refused(bundle: Path, clone: Repo, member: tarfile.TarInfo) -> None:
    write_parts(bundle, read_parts(bundle), member)
    assert is_refused(clone.run("import", str(bundle)), "it holds 'runs/7-x.jsonl'")


def test_a_bomb_is_refused_before_it_has_unpacked(bundle: Path, clone: Repo) -> None:
    with gzip.open(bundle, "wb", compresslevel=1) as file:
        for _ in range(70):
            file.write(b"\0" * 1_000_000)
    assert is_refused(clone.run("import", str(bundle)), "far more than such a file needs")
    assert is_refused(
        clone.run("import", "away"), "away is not a complete record: No such file or directory\n"
    )
    member = tarfile.TarInfo("events.jsonl")
    member.size = 1 << 60
    bundle.write_bytes(gzip.compress(member.tobuf()))
    assert is_refused(clone.run("import", str(bundle)), "is not a complete record")
    for content in (b"", b"no archive", gzip.compress(b"x" * 99)):
        bundle.write_bytes(content)
        assert is_refused(clone.run("import", str(bundle)), "is not a complete record")


def test_secrets_stay_here(done: Repo, tmp_path: Path) -> None:
    key = "kq7Zx0Wv3Jt9Lm2Np5Rs8Uy1Bc4Df6Gh"
    run = next((done.folder / "runs").glob("*implementer.jsonl"))
    run.write_text(run.read_text().replace("all tests pass", f"the key is {key}", 1))
    env = {"ANTHROPIC_API_KEY": key}
    path = tmp_path / "task.agentflow"
    assert done.run("export", done.folder.name, str(path), env=env).code == 0
    assert not [name for name, text in read_parts(path).items() if key.encode() in text]
    out = done.folder / "evidence/ev-0001.out"
    out.write_text(f"{out.read_text()}{key}\n")
    seen = done.run("export", done.folder.name, str(path), env=env)
    assert is_refused(seen, "ev-0001.out holds a secret")


def test_an_export_that_cannot_be_is_one_message(done: Repo) -> None:
    assert is_refused(done.run("export", done.folder.name, "no/such/folder"), "cannot write no/such/folder")
    assert done.run("export", "20200101T000000Z-none").code == 2
