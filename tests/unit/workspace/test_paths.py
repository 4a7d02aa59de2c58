"""Paths as a model may give them, each with what has to come of it: for reading, then for writing."""

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest

from agentflow.core.errors import ToolError
from agentflow.workspace.path_guard import PathGuard, find_obeyed_part, is_secret

GOOD = [
    *("src/a.py", "src/foo..bar.py", "src/...", "src/..a", "src/a..", "src/-dash", "src/sp ace", "src/é.py"),
    *("src/*", "src/[x]", "src/{a,b}", "src/$HOME", "src/~", "~", "src/%2e%2e", "src/a;b", "src/a|b"),
    *("src/'q'", 'src/"q"', "src/\\back", "src/#", "src/&", "src/`x`", "src/日本", "src/git", "src/.gitx"),
    *("src/.github/x", ".github/workflows/ci.yml", "src/claude", ".claude-x/a", "x.claude/a", "gitdir/x"),
    *("src/token.py", "src/tokenizer.py", "tokenizer.json", "src/secretary.txt", "src/passwordless.txt"),
    *("tests/test_secret_manager.py", "docs/tokens.md", "src/Tokenizer.java", "src/secrets/vault.go"),
    *(".env.example", ".env.sample", "env.py", "environment.yml", "src/env", "monkey.txt", "key.txt"),
    *("keys.py", "pem.txt", "id_rsa.pub", "CLAUDE.md", "AGENTS.md", ".gitignore", ".vscode/settings.json"),
    *(".editorconfig", ".dockerignore", "Dockerfile", "Makefile", "setup.cfg", "package.json", "go.mod"),
    *("Cargo.toml", "a/b/c/d/e/f/g.txt", ".hidden", ".config/app.toml", "src/__init__.py", "src/x.min.js"),
    *("tests/data/a.csv", "docs/index.rst", "docs/l.md", "src/tokens.rs", "src/auth/password.ts", "tokenize"),
    *(
        "src/SecretView.swift",
        "monkeypatch.py",
        "keyboard.json",
        "turkey",
        "src/pemmican.txt",
        "p12",
        "pfx.md",
    ),
    *("src/credentialing.txt", "envoy.yaml", "mcp.json", "agents/x.md", "hooks/h.sh", "skills/s/SKILL.md"),
    *("proc/self/environ", "dev/null", "etc/passwd", "C:/x", "COM1", "a" * 200),
]
OUT = [
    *("..", "../x", "../../x", "src/../../x", "/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/"),
    *(
        "/opt/x",
        "/dev/fd/3",
        "/proc/self/fd/3",
        "/proc/self/cwd/src/a.py",
        "fdlink",
        "/dev/null",
        "/dev/stdin",
        "/tmp",
        "//etc/passwd",
        "/../etc/passwd",
        "./../x",
        "src/./../../x",
    ),
    *(
        "",
        "a\0b",
        "\0",
        "src/\n",
        "src/\r",
        "src/\x1b[2J",
        "src/\x7f",
        "src/\x85",
        "src/\x9b",
        "\t",
        "x" * 5000,
    ),
    *(
        "outlink",
        "outlink/x",
        "outfile",
        "deep/out/x",
        "loop",
        "loop/x",
        "chain",
        "chain/x",
        "abslink/passwd",
    ),
    *("proclink", "proclink/environ", "dangling-out", "procself/root/etc/passwd", "updir/repository-evil/x"),
]
GIT = [
    *(".git", ".git/config", ".GIT/config", ".Git/hooks/pre-commit", "src/../.git/config", "./.git/HEAD"),
    *(
        ".git ",
        ".git./config",
        "git~1/x",
        "GIT~1",
        "sub/.git::$INDEX_ALLOCATION/x",
        ".g\u200cit/x",
        ".git\\x",
        "sub\\.git\\x",
    ),
    *("sub/.git/config", "sub/.gIt/x", "gitlink/config", ".git/../.git/config", "src/.git", ".git/new"),
]
POLICY = [
    *(".claude/settings.json", ".CLAUDE/settings.json", ".claude", ".claude/new/deep", "src/../.claude/x"),
    *("sub/.claude/agents/x.md", ".agents/skills/x/SKILL.md", ".Agents/x", ".mcp.json", ".MCP.json"),
    *(
        ".claude /x",
        ".claude./x",
        "CLAUDE~1/x",
        ".cl\u200caude/x",
        ".claude:x",
        "sub/.agents./x",
        ".mcp.json.",
    ),
    *("sub/.mcp.json", "./.mcp.json", ".claude/agentflow/t/task.md", "sub/.agents/x"),
]
SECRET = [
    *(".env", ".ENV", ".Env.Local", ".env.production", ".envrc", "src/.env", "server.p12", "SERVER.P12"),
    *("server.pfx", "server.pem", "a/b/C.PEM", "server.key", "id_rsa", "ID_RSA", ".ssh/id_ed25519", "id_dsa"),
    *("credentials", "Credentials.json", "aws-credentials.ini", ".aws/credentials", ".git-credentials"),
    *("secret", "secrets.yaml", "client_secret.json", "my-secret.txt", "clientSecret.json", "SECRET.TXT"),
    *("password", "passwords.txt", "db_password.txt", "token", "token.txt", "api_token.json", "apiToken"),
    *("access-tokens.csv", "secrets/prod.yaml", "config/Secrets/a.json", ".secrets/x", "credentials/x.toml"),
    *(".netrc", ".pypirc", "hidden-env", "src/../.env"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (tmp_path / "repository-evil").mkdir()
    (tmp_path / "repository-evil/x").write_text("outside")
    for folder in ("deep", "sub/.git"):
        (root / folder).mkdir(parents=True)
    links = {
        "outlink": "../repository-evil",
        "outfile": "../repository-evil/x",
        "deep/out": "../../repository-evil",
        "loop": "loop",
        "chain": "outlink",
        "abslink": "/etc",
        "proclink": "/proc/self",
        "dangling-out": "../made-by-us",
        "procself": f"/proc/{os.getpid()}",
        "updir": "..",
        "fdlink": "/dev/fd/3",
        "gitlink": ".git",
        "hidden-env": ".env",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


def present(root: Path, path: str) -> None:
    """Let a file be there before it is read, where a test may make one."""
    place = root / path
    if not os.path.lexists(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("content")


def write(fence: PathGuard, path: str) -> None:
    fence.write(fence.to_relative(path), b"written")


@pytest.mark.parametrize("path", GOOD)
def test_is_read_and_written(root: Path, path: str) -> None:
    fence = PathGuard(root)
    write(fence, path)
    assert fence.read(path) == (root / path).read_bytes() == b"written"


@pytest.mark.parametrize("path", [*OUT, *GIT])
def test_is_neither_read_nor_written(root: Path, path: str) -> None:
    fence = PathGuard(root)
    with pytest.raises(ToolError):
        fence.read(path)
    with pytest.raises(ToolError):
        write(fence, path)
    assert sorted(entry.name for entry in root.parent.iterdir()) == ["repository", "repository-evil"]
    assert (root.parent / "repository-evil/x").read_text() == "outside"


@pytest.mark.parametrize("path", POLICY)
def test_is_read_and_not_written(root: Path, path: str) -> None:
    fence = PathGuard(root)
    with pytest.raises(ToolError, match="read-only"):
        write(fence, path)
    if path != ".claude":
        present(root, path)
        assert fence.read(path) == b"content"


@pytest.mark.parametrize("path", SECRET)
def test_is_opened_only_where_the_user_says_so(root: Path, path: str) -> None:
    present(root, path)
    present(root, ".env")
    fence, opened = PathGuard(root), PathGuard(root, lambda tool, _: tool == "Read")
    for act in (fence.read, lambda path: write(fence, path), lambda path: write(opened, path)):
        with pytest.raises(ToolError, match="named like a file with secrets"):
            act(path)
    assert fence.peek(fence.to_relative(path)) is None
    assert opened.read(path) == b"content"


def test_there_are_two_hundred() -> None:
    assert len({*GOOD, *OUT, *GIT, *POLICY, *SECRET}) >= 200


@pytest.mark.parametrize(
    ("name", "folder"), list(product(("CLAUDE.md", ".envrc", ".gitmodules"), ("", "sub/")))
)
def test_configuration_that_others_obey_is_known_at_any_depth(name: str, folder: str) -> None:
    assert find_obeyed_part(f"{folder}{name}") == name
    assert find_obeyed_part(f"{folder}x{name}") is None


@pytest.mark.parametrize("path", ["README.md", "src/vscode/x", "husky", "idea"])
def test_what_is_named_alike_is_not(path: str) -> None:
    assert find_obeyed_part(path) is None
    assert not is_secret(path)
