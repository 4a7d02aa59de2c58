"""Files of another repository by its address, without prompts and without running its programs."""

import os
import tarfile
from io import BytesIO
from pathlib import Path

from agentflow.core.errors import ConfigError, UsageError
from agentflow.core.regex import regex
from agentflow.process import capture
from agentflow.sandbox.throwaway import make_scratch_folder

_ADDRESS = regex(
    r"(?:https://[\w.-]+(?::\d+)?/\S+|ssh://(?:[\w.-]+@)?[\w.-]+(?::\d+)?/\S+|file:///\S+"
    r"|[\w][\w.-]*@[\w][\w.-]*:(?!:)[^\s:-]\S*)"
)
_REFERENCE = regex(r"[A-Za-z0-9_][\w./+@-]{0,200}")
_COMMIT = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SECONDS = 300.0
_MAX_BYTES = 500_000_000
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.bundleURI=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_FETCH = ("-q", "--depth=1", "--no-tags", "--no-recurse-submodules")
_AUTHOR = ("-c", "user.name=agentflow", "-c", "user.email=agentflow@localhost")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_ASKPASS": "false",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
}

_CONNECTION = (
    *("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK"),
)
"""The user's variables that say how a server is reached and whom to trust."""


def is_address(text: str) -> bool:
    """Return whether a text is an address that git may be asked: https, ssh or file."""
    return _ADDRESS.fullmatch(text) is not None


def fetch_files(address: str, reference: str, into: Path) -> str:
    """Put the files of a commit into a folder, without its history, and return the commit.

    Raises UsageError for an address or a reference that could mean something else to git, and ConfigError
    where git cannot fetch it.
    """
    if not is_address(address):
        raise UsageError(f"{address} is not an https, ssh or file address of a git repository")
    _require_reference(reference)
    with make_scratch_folder() as folder:
        _call(folder, "init", "-q", "--bare", "--template=")
        _fetch(folder, address, reference)
        commit = _call(folder, "rev-parse", "--verify", "FETCH_HEAD^{commit}").decode().strip()
        if _COMMIT.fullmatch(reference) and commit != reference:
            raise ConfigError(f"{address} gave the commit {commit} for {reference}")
        _unpack(_call(folder, "archive", "--format=tar", commit), into)
    return commit


def _require_reference(reference: str) -> None:
    if reference and (not _REFERENCE.fullmatch(reference) or ".." in reference):
        raise UsageError(f"{reference} is not a branch, tag or commit")


def _fetch(folder: Path, source: str, reference: str) -> None:
    _call(folder, "fetch", *_FETCH, "--", source, reference or "HEAD")


def _call(folder: Path, *words: str) -> bytes:
    options = (word for option in _OPTIONS for word in ("-c", option))
    reach = {name: os.environ[name] for name in _CONNECTION if name in os.environ}
    env = {**_ENVIRONMENT, **reach}
    try:
        finished = capture(("git", *options, *words), cwd=folder, env=env, timeout=_SECONDS)
    except TimeoutError as error:
        raise ConfigError(str(error)) from None
    if finished.returncode:
        said = finished.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(f"git {words[0]} failed: {said[-1] if said else finished.returncode}")
    return finished.stdout


def _unpack(archive: bytes, into: Path) -> None:
    """Write the files of an archive below a folder. Raises ConfigError for one that would lie elsewhere."""
    if not hasattr(tarfile, "data_filter"):
        raise ConfigError("this Python cannot unpack files safely; it needs 3.11.4 or newer")
    if len(archive) > _MAX_BYTES:
        raise ConfigError(f"the repository has more than {_MAX_BYTES:,} bytes of files")
    try:
        with tarfile.open(fileobj=BytesIO(archive), mode="r:") as tar:
            tar.extractall(os.fspath(into), filter="data")
    except (tarfile.TarError, OSError) as error:
        raise ConfigError(f"its files cannot be written: {error}") from None


def check_out(source: str, reference: str, into: Path) -> None:
    """Make a repository that holds one commit of another, without its history and remotes.

    The source is an address or the absolute path of a repository of this machine. Raises UsageError or
    ConfigError.
    """
    _require_reference(reference)
    if not is_address(source):
        reference = _find_commit(Path(source), reference or "HEAD")
    _call(into, "init", "-q", "-b", "main", "--template=")
    _fetch(into, source, reference)
    _call(into, "reset", "-q", "--hard", "FETCH_HEAD")


def _find_commit(root: Path, reference: str) -> str:
    try:
        return _call(root, "rev-parse", "-q", "--verify", f"{reference}^{{commit}}").decode().strip()
    except ConfigError:
        raise ConfigError(f"{root} has no commit {reference}") from None


def commit_files(folder: Path) -> None:
    """Make a folder a repository with one commit of its files. Raises ConfigError."""
    _call(folder, "init", "-q", "-b", "main", "--template=")
    _call(folder, "add", "-A")
    tree = _call(folder, "write-tree").decode().strip()
    commit = _call(folder, *_AUTHOR, "commit-tree", "-m", "Start", tree).decode().strip()
    _call(folder, "reset", "-q", "--hard", commit)
