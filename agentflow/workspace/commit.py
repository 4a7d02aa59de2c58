"""One commit of exactly a task's change; other changes of the user, staged or not, stay as they are."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.core.errors import ConfigError, StateError
from agentflow.core.record import Record
from agentflow.redact import list_some
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import merge_texts

if TYPE_CHECKING:
    from git import Repo

_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_REGULAR = ("100644", "100755")
_SUBMODULE = "160000"
_BY_HAND = "commit this task by hand, after you have looked at `git diff`"
_FIRST = "make the first commit: git add -A && git commit"
_TRIES = 3
"""A formatter leaves its own result as it is; what changes it each time is no formatter."""
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
_ACCEPT = (
    "agentflow commit --accept-hook-changes commits what the hook makes of it; "
    "agentflow verify then runs the checks on that"
)
_WHO = 'tell it: git config --global user.name "Your Name"; git config --global user.email you@example.com'


class Blob(Record):
    """A file as git keeps it."""

    mode: str
    object: str


Entries = Mapping[str, Blob | None]
"""Files by path; None for one that is not there."""


class CommitPlan(Record):
    """The content of a commit of a task's change, and of the user's index after it."""

    commit: dict[str, Blob | None]
    index: dict[str, Blob | None]


class CommitResult(Record):
    """A commit that was made."""

    commit: str
    branch: str
    """Empty where HEAD is on no branch."""
    subject: str
    files: tuple[str, ...]
    changed_by_hooks: bool = False
    """A git hook of the repository committed something else than the task's change."""
    files_changed_by_hooks: tuple[str, ...] = ()


AcceptDiff = Callable[[str], bool]
"""Returns whether a person wants the commit although git hooks changed it like this after verification."""


def plan_commit(git: Git, base: str, final: str) -> CommitPlan:
    """Return what to commit of the change from one tree to another, on top of HEAD.

    Raises StateError where that cannot be told apart from changes of the user's, or is committed already.
    """
    before, after = _read_change(git, base, final)
    paths = tuple(before)
    if git.head is None and any(before.values()):
        raise StateError("this repository has no commit yet that the change could follow", hint=_FIRST)
    _refuse_submodules(git, paths)
    head, index = _read_head(git, paths), _read_index(git, paths)
    plan = CommitPlan(
        commit=_merge_all(git, before, head, after, "HEAD has other changes to the same lines of {}"),
        index=_merge_all(git, before, index, after, "you have staged other changes to the same lines of {}"),
    )
    if plan.commit == head:
        raise StateError("HEAD already has this change; there is nothing to commit")
    return plan


def write_commit(
    git: Git, plan: CommitPlan, message: str, branch: str | None, accept: AcceptDiff
) -> CommitResult:
    """Commit a plan on the current or on a new branch. The repository's git hooks run, as in `git commit`.

    Raises StateError with what git or a hook said, or where what hooks change is not accepted; then nothing
    is changed.
    """
    repo = _open(git)
    _refuse_unfinished(repo)
    _refuse_changed_hooks(repo, plan)
    left = None if branch is None else _switch_branch(git, repo, branch)
    before = {path: _read_file(git, path) for path in plan.commit}
    with make_scratch_folder() as folder:
        (folder / "message").write_text(message, "utf-8")
        try:
            verified, tree = _commit_as_accepted(git, plan, before, folder, accept)
        except StateError:
            _put_back(git, before)
            if left is not None:
                _run(repo, "symbolic-ref", "HEAD", left)
                _run(repo, "branch", "--quiet", "-D", str(branch))
            raise
        changed = tuple(os.fsdecode(each.path) for each in git.compare(verified, tree))
        if changed:
            said = _run(repo, "show", "-s", "--format=%B", "HEAD")
            (folder / "message").write_text(
                f"{said.strip()}\nAgentflow-Changed-By-Hook: {', '.join(changed)}\n"
            )
            amended = ("--amend", "--no-verify", "--quiet", "--file", str(folder / "message"))
            _run(repo, "commit", *amended, env={"GIT_INDEX_FILE": str(folder / "index")})
    index = {**plan.index, **_follow_hooks(git, plan, repo.git.rev_parse("HEAD"), changed)}
    git.call("update-index", "-z", "--index-info", stdin=_to_index_lines(git, index))
    with suppress(StateError):  # says only that files differ from the index
        git.call("update-index", "-q", "--refresh", env={"GIT_OPTIONAL_LOCKS": "1"})
    return CommitResult(
        commit=repo.git.rev_parse("HEAD"),
        branch=repo.git.branch("--show-current"),
        subject=message.splitlines()[0],
        files=tuple(sorted({*plan.commit, *changed})),
        changed_by_hooks=bool(changed),
        files_changed_by_hooks=changed,
    )


def _commit_as_accepted(
    git: Git, plan: CommitPlan, before: Mapping[str, bytes | None], folder: Path, accept: AcceptDiff
) -> tuple[str, str]:
    """Commit a plan, with what hooks make of it if that is accepted; return its own tree and that."""
    repo, entries, verified = _open(git), plan.commit, ""
    start = repo.git.rev_parse("HEAD") if git.head else None
    environment = {"GIT_INDEX_FILE": str(folder / "index")}
    words = ("commit", "--quiet", "--file", str(folder / "message"))
    for _ in range(_TRIES):
        expected = _fill_index(git, entries, environment)
        verified = verified or expected
        accepted = {verified, expected}
        refusal = None
        try:
            _run(repo, *words, env=environment)
        except StateError as error:
            refusal = error
            entries = _add_hook_changes(git, entries, before)
            tree = _fill_index(git, entries, environment)
            before = {path: _read_file(git, path) for path in before}
        else:
            tree = repo.git.rev_parse("HEAD^{tree}")
        if tree not in accepted and not accept(git.make_diff(verified, tree)):
            if refusal is None:
                made = repo.git.rev_parse("HEAD")  # no other commit follows it yet
                _run(repo, "update-ref", *(("HEAD", start, made) if start else ("-d", "HEAD", made)))
            names = list_some(os.fsdecode(each.path) for each in git.compare(verified, tree))
            said = f"\n{refusal}" if refusal else ""
            raise StateError(
                f"a git hook changed {names} after verification, so nothing was committed{said}", hint=_ACCEPT
            )
        if refusal is None:
            return verified, tree
        if tree == expected:
            raise refusal
    raise StateError("the git hooks refuse the commit and change its files each time they run")


def _add_hook_changes(
    git: Git, entries: Entries, before: Mapping[str, bytes | None]
) -> dict[str, Blob | None]:
    """Return the files of a commit with what hooks have changed on disk since."""
    found = dict(entries)
    for path, blob in entries.items():
        was, now = before[path], _read_file(git, path)
        if blob is None or was is None or now is None or was == now:
            continue
        base, theirs = (blob.replace(object=_store(git, path, content)) for content in (was, now))
        try:
            found[path] = _merge(git, base, blob, theirs)
        except StateError:
            raise StateError(
                f"a git hook changed lines of {path} that you have changed too", hint=_BY_HAND
            ) from None
    return found


def _follow_hooks(git: Git, plan: CommitPlan, made: str, changed: Sequence[str]) -> dict[str, Blob | None]:
    """Return the user's index for files that hooks changed: what was as the plan has it follows them."""
    if not changed:
        return {}
    head, current, index = _read_head(git, changed), _read_head(git, changed, made), _read_index(git, changed)
    found = dict[str, Blob | None]()
    for path in changed:
        with suppress(StateError):
            found[path] = _merge(
                git, plan.commit.get(path, head[path]), plan.index.get(path, index[path]), current[path]
            )
    return found


def _read_file(git: Git, path: str) -> bytes | None:
    place = git.root / path
    return place.read_bytes() if place.is_file() and not place.is_symlink() else None


def _put_back(git: Git, before: Mapping[str, bytes | None]) -> None:
    """Give files of the task the content that they had before hooks ran."""
    for path, content in before.items():
        if content is not None and _read_file(git, path) != content:
            (git.root / path).write_bytes(content)


def _read_change(git: Git, base: str, final: str) -> tuple[Entries, Entries]:
    """Return the changed files as they were and as they are, as `git add` would have put them into git."""
    raw = git.call("diff-tree", "-r", "-z", "--no-renames", base, final).split(b"\0")
    before, after = dict[str, Blob | None](), dict[str, Blob | None]()
    for said, name in zip(raw[::2], raw[1::2], strict=False):
        mode, other_mode, entry, other, _ = said.decode().lstrip(":").split(" ")
        path = os.fsdecode(name)
        before[path] = _to_stored(git, path, mode, entry)
        after[path] = _to_stored(git, path, other_mode, other)
    return before, after


def _to_stored(git: Git, path: str, mode: str, entry: str) -> Blob | None:
    """Return a file of a recorded tree as git stores it, with line ends and filters applied."""
    if mode == "000000":
        return None
    if mode not in _REGULAR:
        return Blob(mode=mode, object=entry)
    return Blob(mode=mode, object=_store(git, path, git.call("cat-file", "blob", entry)))


def _store(git: Git, path: str, content: bytes) -> str:
    return git.call("hash-object", "-w", "--stdin", f"--path={path}", stdin=content).decode().strip()


def _refuse_submodules(git: Git, paths: Sequence[str]) -> None:
    parents = {str(parent) for path in paths for parent in Path(path).parents} - {"."}
    inside = [
        path for path, blob in _read_head(git, sorted(parents)).items() if blob and blob.mode == _SUBMODULE
    ]
    nested = [parent for parent in parents if (git.root / parent / ".git").exists()]
    if found := sorted({*inside, *nested}):
        raise StateError(f"the task changed files of another repository: {list_some(found)}", hint=_BY_HAND)


def _read_head(git: Git, paths: Sequence[str], made: str | None = None) -> Entries:
    commit = made or git.head
    if commit is None or not paths:
        return dict.fromkeys(paths)
    raw = git.call("ls-tree", "-z", "--full-tree", commit, "--", *paths, env=_LITERAL)
    return dict.fromkeys(paths) | dict(_read_entries(raw, kind=1))


def _read_index(git: Git, paths: Sequence[str]) -> Entries:
    raw = git.call("ls-files", "--stage", "-z", "--full-name", "--", *paths, env=_LITERAL)
    if any(line.partition(b"\t")[0].endswith((b" 1", b" 2", b" 3")) for line in raw.split(b"\0")):
        raise StateError("the index has conflicts that are not resolved", hint="resolve them first")
    found = dict(_read_entries(raw, kind=None))
    return dict.fromkeys(paths) | {path: blob for path, blob in found.items() if path in paths}


def _read_entries(raw: bytes, kind: int | None) -> Iterator[tuple[str, Blob]]:
    """Yield the lines of `ls-tree`, whose second word is a kind, or of `ls-files --stage`."""
    for line in filter(None, raw.split(b"\0")):
        said, _, name = line.partition(b"\t")
        words = said.decode().split(" ")
        yield os.fsdecode(name), Blob(mode=words[0], object=words[2 if kind else 1])


def _merge_all(
    git: Git, base: Entries, ours: Entries, theirs: Entries, conflict: str
) -> dict[str, Blob | None]:
    merged, failed = dict[str, Blob | None](), list[str]()
    for path, wanted in theirs.items():
        try:
            merged[path] = _merge(git, base[path], ours[path], wanted)
        except StateError:
            failed.append(path)
    if failed:
        raise StateError(conflict.format(list_some(failed)), hint=_BY_HAND)
    return merged


def _merge(git: Git, base: Blob | None, ours: Blob | None, theirs: Blob | None) -> Blob | None:
    """Return a file of the user's with the task's change in it. Raises StateError on a conflict."""
    if ours in (base, theirs):
        return theirs
    if base is None or ours is None or theirs is None:
        raise StateError("added or deleted on both sides")
    if not {base.mode, ours.mode, theirs.mode}.issubset(_REGULAR):
        raise StateError("not a plain file")
    mode = ours.mode if theirs.mode == base.mode else theirs.mode
    texts = (git.call("cat-file", "blob", blob.object) for blob in (ours, base, theirs))
    merged = merge_texts(git, *texts)
    if merged is None:
        raise StateError("the same lines were changed")
    stored = git.call("hash-object", "-w", "--stdin", stdin=merged)
    return Blob(mode=mode, object=stored.decode().strip())


def _fill_index(git: Git, entries: Entries, environment: Mapping[str, str]) -> str:
    """Fill an index with HEAD and the files of a commit, and return its tree."""
    git.call("read-tree", *(("--empty",) if git.head is None else ("HEAD",)), env=environment)
    git.call("update-index", "-z", "--index-info", env=environment, stdin=_to_index_lines(git, entries))
    with suppress(StateError):
        git.call("update-index", "-q", "--refresh", env=environment)
    return git.call("write-tree", env=environment).decode().strip()


def _to_index_lines(git: Git, entries: Entries) -> bytes:
    zero = "0" * (64 if git.source.hash == "sha256" else 40)
    deleted = (f"0 {zero}\t{path}" for path, blob in entries.items() if blob is None)
    written = (f"{blob.mode} {blob.object}\t{path}" for path, blob in entries.items() if blob is not None)
    return b"".join(os.fsencode(line) + b"\0" for line in (*deleted, *written))


def _open(git: Git) -> "Repo":
    from git import Repo

    return Repo(git.root)


def _run(repo: "Repo", *words: str, env: Mapping[str, str] | None = None) -> str:
    """Run git with the user's own configuration and hooks. Raises StateError with what it said."""
    from git.exc import GitCommandError

    with repo.git.custom_environment(**(env or {})):
        try:
            return str(repo.git.execute(["git", *words]))
        except GitCommandError as error:
            said = "\n".join(str(part).strip() for part in (error.stderr, error.stdout) if part)
            if words[0] == "commit" and not _is_identity_known(repo):
                raise StateError("git does not know the author of the commit", hint=_WHO) from None
            raise StateError(f"git {words[0]} failed: {_unwrap(said) or _blame_hooks(repo)}") from None


def _is_identity_known(repo: "Repo") -> bool:
    from git.exc import GitCommandError

    try:
        return all(repo.git.var(name) for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"))
    except GitCommandError:
        return False


def _unwrap(said: str) -> str:
    """Return what git said, without the words that GitPython puts around it."""
    return said.removeprefix("stderr: '").removeprefix("stdout: '").rstrip("'").strip()


def _blame_hooks(repo: "Repo") -> str:
    """Return which programs may have refused without a word."""
    hooks = Path(repo.working_dir, repo.git.rev_parse("--git-path", "hooks"))
    ran = [str(hooks / name) for name in _HOOKS if os.access(hooks / name, os.X_OK)]
    return f"it said nothing; run what may have refused: {' or '.join(ran)}" if ran else "it said nothing"


def _refuse_unfinished(repo: "Repo") -> None:
    found = [name for name in _UNFINISHED if Path(repo.git_dir, name).exists()]
    if found:
        raise StateError("a merge, rebase, cherry-pick or revert is under way", hint="finish it first")


def _refuse_changed_hooks(repo: "Repo", plan: CommitPlan) -> None:
    """Raise StateError where the task itself changed a program that git would run now."""
    hooks = Path(repo.working_dir, repo.git.rev_parse("--git-path", "hooks")).resolve()
    changed = [path for path in plan.commit if Path(repo.working_dir, path).resolve().is_relative_to(hooks)]
    if changed:
        raise StateError(
            f"the task changed a git hook, which would run now: {list_some(changed)}", hint=_BY_HAND
        )


def require_possible_commit(git: Git, branch: str | None) -> None:
    """Raise StateError or ConfigError where nothing could be committed now, whatever it is."""
    repo = _open(git)
    _refuse_unfinished(repo)
    if branch is not None:
        _require_new_branch(git, repo, branch)


def _require_new_branch(git: Git, repo: "Repo", name: str) -> None:
    if repo.head.is_detached:
        raise StateError("HEAD is on no branch", hint="run git switch first")
    try:
        _run(repo, "check-ref-format", "--branch", name)
    except StateError:
        raise ConfigError(f"{name!r} is not a name that a branch can have") from None
    if git.head is None:
        raise StateError("there is no commit yet that a branch could begin at")
    if f"refs/heads/{name}" in repo.git.for_each_ref("--format=%(refname)", "refs/heads").splitlines():
        raise StateError(f"there is a branch {name} already", hint="choose another --branch")


def _switch_branch(git: Git, repo: "Repo", name: str) -> str:
    """Put HEAD on a new branch that begins where it is; return the branch it was on."""
    _require_new_branch(git, repo, name)
    left = _run(repo, "symbolic-ref", "HEAD")
    _run(repo, "branch", name)
    _run(repo, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    return left
