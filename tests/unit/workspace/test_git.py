import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import ConfigError, StateError
from agentflow.process import capture
from agentflow.workspace.changes import ChangeKind, FileChange
from agentflow.workspace.git import Git, open_repository
from tests.unit.workspace.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "repository")


def rewrite(place: Place) -> None:
    place.write("src/a.py", "x = 1\n")


def touch(place: Place) -> None:
    os.utime(place.root / "src/a.py", (1, 1))


def stage_something(place: Place) -> None:
    place.git("rm", "-q", "--cached", "src/a.py")


def commit_again(place: Place) -> None:
    place.git("commit", "-q", "--allow-empty", "-m", "again")


def add_ignored(place: Place) -> None:
    place.write(".git/info/exclude", "*.log\n")
    place.write("a.log", "noise")


def add_ours(place: Place) -> None:
    for name in (
        "agentflow/20260102T030405Z-abcd/task.md",
        "agentflow/writer.lock",
        "deep-dive.local.md",
        "orchestration.local.md",
        "learnings.md",
        "research-x.local.d/a.md",
    ):
        place.write(f".claude/{name}", "ours")


def commit_ours(place: Place) -> None:
    add_ours(place)
    place.git("add", "-f", "-A")
    place.git("commit", "-q", "-m", "ours")


def empty_folder(place: Place) -> None:
    (place.root / "empty").mkdir()


SAME: tuple[Callable[[Place], None], ...] = (
    rewrite, touch, stage_something, commit_again, add_ignored, add_ours, commit_ours, empty_folder,
)  # fmt: skip


@pytest.mark.parametrize("act", SAME)
def test_the_same_content_has_the_same_tree(place: Place, act: Callable[[Place], None]) -> None:
    before = place.tree()
    act(place)
    assert place.tree() == before


def one_byte(place: Place) -> None:
    place.write("src/a.py", "x = 2\n")


def mode_bit(place: Place) -> None:
    (place.root / "src/a.py").chmod(0o755)


def untracked(place: Place) -> None:
    place.write("src/new.py", "")


def link_target(place: Place) -> None:
    (place.root / "link").unlink()
    (place.root / "link").symlink_to("README.md")


def link_instead(place: Place) -> None:
    (place.root / "README.md").unlink()
    (place.root / "README.md").symlink_to("src/a.py")


def deleted(place: Place) -> None:
    (place.root / "README.md").unlink()


def moved(place: Place) -> None:
    (place.root / "README.md").rename(place.root / "OTHER.md")


def in_claude(place: Place) -> None:
    place.write(".claude/settings.json", "{}")


def forced_tracked(place: Place) -> None:
    """A tracked file counts although a pattern ignores it."""
    place.write(".git/info/exclude", "*.py\n")
    one_byte(place)


DIFFERENT: tuple[Callable[[Place], None], ...] = (
    one_byte, mode_bit, untracked, link_target, link_instead, deleted, moved, in_claude, forced_tracked,
)  # fmt: skip


@pytest.mark.parametrize("act", DIFFERENT)
def test_another_content_has_another_tree(place: Place, act: Callable[[Place], None]) -> None:
    (place.root / "link").symlink_to("src/a.py")
    place.commit()
    before = place.tree()
    act(place)
    assert place.tree() != before


def hide(*words: str) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        place.git(*words)
        one_byte(place)

    return act


def restore_times(place: Place) -> None:
    status = (place.root / "src/a.py").stat()
    place.tree()
    one_byte(place)
    os.utime(place.root / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))


def both_flags(place: Place) -> None:
    place.git("update-index", "--assume-unchanged", "src/a.py")
    place.git("update-index", "--skip-worktree", "src/a.py")
    one_byte(place)


def configured(*settings: str) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        for setting in settings:
            place.git("config", *setting.split("="))
        restore_times(place)

    return act


def no_file_mode(place: Place) -> None:
    place.git("config", "core.fileMode", "false")
    mode_bit(place)


def sparse(place: Place) -> None:
    place.git("config", "core.sparseCheckout", "true")
    place.write(".git/info/sparse-checkout", "/README.md\n")
    one_byte(place)


def sparse_untracked(place: Place) -> None:
    place.git("config", "core.sparseCheckout", "true")
    place.write(".git/info/sparse-checkout", "/README.md\n")
    untracked(place)


def untracked_cache(place: Place) -> None:
    place.git("config", "core.untrackedCache", "true")
    place.git("update-index", "--untracked-cache")
    place.git("status")
    untracked(place)


def line_ends(place: Place) -> None:
    place.write("src/a.py", "x = 1\r\n")


def line_ends_converted(place: Place) -> None:
    place.git("config", "core.autocrlf", "input")
    line_ends(place)


HIDDEN: dict[str, Callable[[Place], None]] = {
    "assume unchanged": hide("update-index", "--assume-unchanged", "src/a.py"),
    "skip worktree": hide("update-index", "--skip-worktree", "src/a.py"),
    "both flags": both_flags,
    "equal size and restored time": restore_times,
    "no trust in ctime": configured("core.trustctime=false"),
    "few stats": configured("core.checkStat=minimal", "core.trustctime=false"),
    "ignored stat": configured("core.ignoreStat=true"),
    "no file mode": no_file_mode,
    "sparse": sparse,
    "sparse and untracked": sparse_untracked,
    "untracked cache": untracked_cache,
    "split index": configured("core.splitIndex=true"),
    "line ends": line_ends,
    "line ends converted": line_ends_converted,
}


@pytest.mark.parametrize("name", HIDDEN)
def test_no_setting_hides_a_change(place: Place, name: str) -> None:
    git = place.open()
    before = git.write_tree()
    HIDDEN[name](place)
    assert git.write_tree() != before


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_is_gone_on_purpose_stays_in_the_tree(place: Place, flag: str) -> None:
    before = place.tree()
    place.git("update-index", flag, "src/a.py")
    (place.root / "src/a.py").unlink()
    assert (place.tree() == before) is (flag == "--skip-worktree")


@pytest.mark.parametrize("act", [*SAME[:2], *DIFFERENT[:3], *HIDDEN.values()])
def test_index_refs_and_configuration_stay_byte_for_byte(place: Place, act: Callable[[Place], None]) -> None:
    (place.root / "link").symlink_to("src/a.py")
    act(place)
    before = place.frozen()
    git = place.open()
    git.list_changes(git.write_tree(), "HEAD^{tree}")
    git.make_diff(git.head or "", git.write_tree())
    assert place.frozen() == before


def test_a_conflict_in_the_index_is_taken_as_it_is_on_disk(place: Place) -> None:
    place.git("checkout", "-q", "-b", "other")
    one_byte(place)
    place.commit()
    place.git("checkout", "-q", "main")
    place.write("src/a.py", "x = 3\n")
    place.commit()
    with pytest.raises(subprocess.CalledProcessError):
        place.git("merge", "-q", "other")
    before = place.frozen()
    git = place.open()
    assert git.list_changes("HEAD^{tree}", git.write_tree()) == (
        FileChange(kind=ChangeKind.MODIFIED, path="src/a.py"),
    )
    assert place.frozen() == before


ATTACKS: dict[str, tuple[str, str]] = {
    "fsmonitor": ("[core]\n fsmonitor = {trap}", ""),
    "hooks": ("[core]\n hooksPath = {hooks}", ""),
    "clean": ('[filter "x"]\n clean = {trap}\n required = true', "* filter=x"),
    "smudge": ('[filter "x"]\n smudge = {trap}', "* filter=x"),
    "filter program": ('[filter "x"]\n process = {trap}\n required = true', "* filter=x"),
    "filter with a dot": ('[filter "x.y"]\n clean = {trap}', "* filter=x.y"),
    "filter with an equals sign": ('[filter "x=y"]\n clean = {trap}', "* filter=x=y"),
    "filter with a capital": ('[filter "Xy"]\n clean = {trap}', "* filter=Xy"),
    "filter with a quote": ('[filter "x\\"y"]\n clean = {trap}', '* filter=x"y'),
    "filter with an accent": ('[filter "é"]\n clean = {trap}', "* filter=é"),
    "external diff": ("[diff]\n external = {trap}", ""),
    "diff driver": ('[diff "x"]\n command = {trap}', "* diff=x"),
    "textconv": ('[diff "x"]\n textconv = {trap}', "* diff=x"),
    "pager": ("[core]\n pager = {trap}\n[pager]\n diff = {trap}\n add = true", ""),
    "alias": ("[alias]\n diff = !{trap}\n write-tree = !{trap}", ""),
    "merge driver": ('[merge "x"]\n driver = {trap}', "* merge=x"),
    "included": ("[include]\n path = ../../repository-extra", "* filter=z"),
}  # fmt: skip


def ambush(place: Place, name: str) -> None:
    config, attributes = ATTACKS[name]
    trap = place.trap()
    hooks = place.root.parent / "hooks"
    hooks.mkdir()
    for folder in (hooks, place.root / ".git/hooks"):
        for hook in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
            (folder / hook).write_bytes(trap.read_bytes())
            (folder / hook).chmod(0o755)
    (place.root.parent / "repository-extra").write_text(f'[filter "z"]\n clean = {trap}\n')
    place.plant(config.format(trap=trap, hooks=hooks))
    if attributes:
        place.write(".gitattributes", f"{attributes}\n")


def use(git: Git, place: Place) -> None:
    one_byte(place)
    tree = git.write_tree()
    git.list_changes("HEAD^{tree}", tree)
    git.make_diff(git.head or "", tree)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_program_of_the_configuration_is_run(place: Place, name: str) -> None:
    ambush(place, name)
    use(place.open(), place)
    assert not place.trapped


@pytest.mark.parametrize("name", ATTACKS)
def test_nor_one_that_was_planted_after_the_repository_was_opened(place: Place, name: str) -> None:
    git = place.open()
    ambush(place, name)
    use(git, place)
    assert not place.trapped


def test_a_filter_in_the_configuration_of_a_worktree_is_not_run(place: Place) -> None:
    place.git("config", "extensions.worktreeConfig", "true")
    place.git("config", "--worktree", "filter.x.clean", str(place.trap()))
    place.write(".gitattributes", "* filter=x\n")
    use(place.open(), place)
    assert not place.trapped


def test_a_filter_whose_name_is_no_text_is_not_run(place: Place) -> None:
    with (place.root / ".git/config").open("ab") as file:
        file.write(b'[filter "\xff"]\n clean = %s\n' % str(place.trap()).encode())
    place.write(".gitattributes", b"* filter=\xff\n")
    use(place.open(), place)
    assert not place.trapped


def test_a_missing_object_is_not_fetched_by_a_program(place: Place) -> None:
    """Git asks a promisor remote for what is missing, and the configuration says with which program."""
    git = place.open()
    before = git.write_tree()
    blob = place.git("rev-parse", "HEAD:src/a.py").strip()
    one_byte(place)
    after = git.write_tree()
    other = place.root.parent / "other"
    other.mkdir()
    subprocess.run(("git", "init", "-q", "--bare", str(other)), check=True)
    place.plant(
        "[core]\n repositoryformatversion = 1\n[extensions]\n partialClone = o\n"
        f'[remote "o"]\n url = {other}\n promisor = true\n uploadpack = {place.trap("exit 1")}\n'
    )
    (place.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(StateError):
        git.make_diff(before, after)
    assert not place.trapped


def nested(place: Place, *, commit: bool) -> Place:
    inner = Place(place.root / "vendor/inner", bare_start=not commit)
    inner.marker = place.marker
    inner.write("lib.py", "y = 1\n")
    if commit:
        inner.commit()
    return inner


@pytest.mark.parametrize("commit", [True, False])
def test_a_repository_inside_does_not_stop_us(place: Place, commit: bool) -> None:
    nested(place, commit=commit)
    assert place.tree()


def test_a_change_inside_a_repository_inside_is_another_tree(place: Place) -> None:
    inner = nested(place, commit=True)
    before = place.tree()
    inner.write("lib.py", "y = 2\n")
    assert place.tree() != before


def test_no_program_of_a_repository_inside_is_run(place: Place) -> None:
    inner = nested(place, commit=True)
    place.commit()
    trap = place.trap()
    inner.plant(f'[core]\n fsmonitor = {trap}\n[filter "x"]\n clean = {trap}\n')
    inner.write(".gitattributes", "* filter=x\n")
    inner.write("lib.py", "y = 2\n")
    use(place.open(), place)
    assert not place.trapped


ODD = (
    "new\nline.txt",
    'quo"te.txt',
    "ta\tb.txt",
    "ünïcode.txt",
    "日本.py",
    " lead",
    "-dash",
    ":(top)x",
    "a*[b]?",
    "\\",
)


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_names_like_others(place: Place, name: str) -> None:
    git = place.open()
    before = git.write_tree()
    place.write(name, "x")
    added = git.write_tree()
    place.write(name, "y")
    changed = git.write_tree()
    assert git.list_changes(before, added) == (FileChange(kind=ChangeKind.ADDED, path=name),)
    assert git.list_changes(added, changed) == (FileChange(kind=ChangeKind.MODIFIED, path=name),)
    assert git.list_changes(changed, before) == (FileChange(kind=ChangeKind.DELETED, path=name),)


@pytest.mark.parametrize("name", ODD)
def test_odd_names_cannot_hide_behind_a_flag(place: Place, name: str) -> None:
    place.write(name, "x")
    place.commit()
    before = place.tree()
    place.git("update-index", "--assume-unchanged", "--", name)
    place.write(name, "y")
    assert place.tree() != before


def test_a_name_that_is_no_text_is_told_too(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    (place.root / os.fsdecode(b"\xff.txt")).write_text("x")
    (change,) = git.list_changes(before, git.write_tree())
    assert change.path == "\\xff.txt"


def test_a_changed_type_is_told(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    link_instead(place)
    assert git.list_changes(before, git.write_tree()) == (FileChange(kind=ChangeKind.TYPE, path="README.md"),)


def test_a_move_is_an_old_and_a_new_file(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    moved(place)
    assert [(c.kind, c.path) for c in git.list_changes(before, git.write_tree())] == [
        (ChangeKind.ADDED, "OTHER.md"),
        (ChangeKind.DELETED, "README.md"),
    ]


def test_the_diff_is_a_plain_unified_one(place: Place) -> None:
    place.plant("[color]\n ui = always\n[diff]\n noprefix = true\n mnemonicPrefix = true\n")
    git = place.open()
    before = git.write_tree()
    one_byte(place)
    diff = git.make_diff(before, git.write_tree())
    assert "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n" in diff


@pytest.mark.parametrize("name", [".gitattributes", "src/.gitattributes", ".git/info/attributes"])
@pytest.mark.parametrize("attributes", ["*.py -diff", "* binary", "a.py diff=hidden"])
def test_no_attribute_hides_what_changed(place: Place, name: str, attributes: str) -> None:
    before = place.open().write_tree()
    place.write(name, f"{attributes}\n")
    place.plant('[diff "hidden"]\n binary = true\n')
    one_byte(place)
    git = place.open()
    assert "-x = 1\n+x = 2\n" in git.make_diff(before, git.write_tree())


def test_a_repository_without_commits_has_a_tree(tmp_path: Path) -> None:
    place = Place(tmp_path / "repository", bare_start=True)
    empty = place.tree()
    assert empty == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    place.write("a", "x")
    assert place.tree() != empty
    assert not (place.root / ".git/index").exists()


def test_a_linked_worktree_has_its_own_tree(place: Place, tmp_path: Path) -> None:
    place.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = open_repository(tmp_path / "linked")
    assert linked.root == (tmp_path / "linked").resolve()
    before = linked.write_tree()
    (linked.root / "src/a.py").write_text("x = 2\n")
    assert linked.write_tree() != before
    assert place.tree() == before


def test_a_folder_below_leads_to_the_root(place: Place) -> None:
    git = open_repository(place.root / "src")
    assert git.root == place.root.resolve()
    assert git.write_tree() == place.tree()


def test_a_work_tree_set_to_another_place_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    place.plant(f"[core]\n worktree = {tmp_path / 'elsewhere'}")
    with pytest.raises(ConfigError):
        place.open()


def test_variables_of_our_own_do_not_lead_git_elsewhere(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.tree()
    other = Place(tmp_path / "other")
    for name, value in {
        "GIT_DIR": other.root / ".git",
        "GIT_WORK_TREE": other.root,
        "GIT_INDEX_FILE": other.root / "index",
        "GIT_EXTERNAL_DIFF": place.trap(),
    }.items():
        monkeypatch.setenv(name, str(value))
    assert place.tree() == before
    use(place.open(), place)
    assert not place.trapped


@pytest.mark.parametrize("missing", ["nowhere", "file"])
def test_what_is_no_folder_is_said(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        open_repository(tmp_path / missing)


def test_no_repository_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not in a git repository") as caught:
        open_repository(tmp_path)
    assert caught.value.hint == "run git init first"


def test_a_bare_repository_has_no_files_to_work_on(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", "--bare", str(tmp_path / "bare")), check=True)
    with pytest.raises(ConfigError, match="is in a bare repository"):
        open_repository(tmp_path / "bare")


def test_a_machine_without_git_is_said(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git is not installed"):
        place.open()


def test_what_git_says_is_in_the_error(place: Place) -> None:
    with pytest.raises(StateError, match=r"git diff-tree failed: .*nothing"):
        place.open().list_changes("nothing", "HEAD")


def test_a_damaged_index_is_an_error_and_stays(place: Place) -> None:
    place.write(".git/index", "damaged")
    with pytest.raises(StateError):
        place.tree()
    assert (place.root / ".git/index").read_text() == "damaged"


def in_one_second(place: Place, content: str) -> bool:
    """Commit a file and change it at once; tell whether the clock showed one second all along."""
    time.sleep(1 - time.time() % 1)
    begin = int(time.time())
    written = place.write("src/a.py", content)
    place.commit()
    status = written.stat()
    written.write_text(content.replace("1", "2"))
    os.utime(written, ns=(status.st_atime_ns, status.st_mtime_ns))
    return int(written.stat().st_ctime) == begin


def test_an_edit_in_the_second_of_the_commit_is_seen_later(place: Place) -> None:
    """Git looks again at files as young as its index; the copy of the index has to be as old as that."""
    assert any(in_one_second(place, f"y{number} = 1\n") for number in range(30))
    time.sleep(1.1)
    git = place.open()
    assert git.list_changes("HEAD^{tree}", git.write_tree()) == (
        FileChange(kind=ChangeKind.MODIFIED, path="src/a.py"),
    )


@pytest.mark.parametrize("name", ["a:b", "a,b=c", 'a"b', "a\\b\\", "-a b", "gr\u00f6\u00dfe"])
def test_a_repository_in_a_folder_of_any_name_has_its_trees(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    capture(("git", "init", "-q"), cwd=root)
    (root / "a.txt").write_text("a")
    os.utime(root / "a.txt", (1, 1))  # git need not look at it again
    capture(("git", "add", "."), cwd=root)
    git = open_repository(root)
    (git.source.kept / "objects").mkdir(parents=True)
    git.exact.write(git.call)
    (root / "b.txt").write_text("b")
    assert git.exact.write(git.call) == git.write_tree()
    assert git.list_paths(git.write_tree()) == ("a.txt", "b.txt")


@pytest.mark.parametrize(
    ("name", "said"), [(b"a\xff", r"a\\xff has a name that is not UTF-8"), (b"a\nb", "line break")]
)
def test_a_folder_whose_name_cannot_be_written_down_is_refused(
    tmp_path: Path, name: bytes, said: str
) -> None:
    root = tmp_path / os.fsdecode(name)
    root.mkdir()
    capture(("git", "init", "-q"), cwd=root)
    with pytest.raises(ConfigError, match=said):
        open_repository(root)


def test_more_words_than_a_command_line_holds_are_looked_for(place: Place) -> None:
    place.write("src/a.py", "beta\nsome delta\n")
    git = open_repository(place.root)
    words = (f"word{number:040}" for number in range(60_000))
    assert git.find_mentions(git.write_tree(), [*words, "delta"]) == ("src/a.py",)
