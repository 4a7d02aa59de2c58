"""How requests reach a server: the user's credentials, proxy and certificates, over real sockets."""

import base64
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.crew import honest
from tests.support.messages_server import Asked, MessagesServer, Plays, refuses, serving, text
from tests.support.repo import Done, NewRepo, Repo

KEY = "sk-connection-0123456789"
TRANSPORTS = ("http", "sdk")


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.LIGHT)


def run(repo: Repo, environ: Mapping[str, str], **settings: Any) -> Done:
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    quick = {"retry": {"tries": 2, "base_seconds": 0, "max_seconds": 0}}
    path.write_text(json.dumps({**quick, "repair_seconds": 0, **settings}))
    return repo.task("--json", "make the failing tests pass", env=environ)


def everything_below(*folders: Path) -> str:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in files)


def keys(server: MessagesServer) -> set[str]:
    return {asked.headers.get("x-api-key", "") for asked in server.asked}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_key_from_a_command_is_used_and_stands_nowhere(repo: Repo, transport: str) -> None:
    command = [sys.executable, "-c", f"print({KEY[:9]!r} + {KEY[9:]!r})"]
    with serving(policy=honest) as server:
        done = run(repo, {}, endpoint=server.address, api_key_command=command, transport=transport)
    assert done.code == 4, done.err
    assert keys(server) == {KEY}
    assert KEY not in everything_below(repo.root, repo.home) + done.out + done.err


def test_a_key_from_a_named_variable_is_used_and_stands_nowhere(repo: Repo) -> None:
    with serving(policy=honest) as server:
        done = run(repo, {"MY_GATEWAY": KEY}, endpoint=server.address, api_key_env="MY_GATEWAY")
    assert done.code == 4, done.err
    assert keys(server) == {KEY}
    assert KEY not in everything_below(repo.root, repo.home) + done.out + done.err


def test_a_server_that_repeats_the_key_is_not_repeated(repo: Repo) -> None:
    with serving(refuses(400, "invalid_request_error", f"bad header {KEY}")) as server:
        done = run(repo, {"MY_GATEWAY": KEY}, endpoint=server.address, api_key_env="MY_GATEWAY")
    assert done.code == 6
    assert KEY not in everything_below(repo.root) + done.out + done.err


ECHOES = {
    "in base64": base64.b64encode(KEY.encode()).decode(),
    "in base64 behind a name": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "without its beginning": KEY.removeprefix("sk-"),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_key_that_comes_back_in_another_form_is_not_repeated(repo: Repo, echo: str) -> None:
    said = text(f"your key is {echo} is it not")
    with serving(Plays((said,))) as server:
        done = run(repo, {"MY_GATEWAY": KEY}, endpoint=server.address, api_key_env="MY_GATEWAY")
    told = everything_below(repo.root) + done.out + done.err
    assert "your key is" in told
    assert echo not in told
    assert not any(echo[at : at + 20] in told for at in range(len(echo) - 19))


def test_a_command_that_gives_no_key_ends_before_anything_is_written(repo: Repo) -> None:
    done = run(repo, {}, api_key_command=["false"])
    assert done.code == 6
    assert done.err.startswith("agentflow: api_key_command in config.yaml gave no key: exit 1")
    assert not (repo.root / ".claude").exists()


def test_a_repository_names_no_source_of_the_key(repo: Repo) -> None:
    planted = repo.root / "planted"
    repo.write({".claude/agentflow.yaml": f"api_key_command: [touch, {planted}]\n"}).commit()
    with serving(policy=honest) as server:
        done = run(repo, {"ANTHROPIC_BASE_URL": server.address})
    assert done.code in {2, 4}, done.err
    assert not planted.exists()


@pytest.mark.parametrize(
    ("variable", "transport"),
    [("http_proxy", "http"), ("HTTP_PROXY", "sdk")],
)
def test_requests_go_through_the_users_proxy(repo: Repo, variable: str, transport: str) -> None:
    with serving(policy=honest) as proxy:
        environ = {variable: proxy.address, "ANTHROPIC_BASE_URL": "http://model.test"}
        done = run(repo, environ, transport=transport)
    assert done.code == 4, done.err
    assert {asked.path for asked in proxy.asked} == {"http://model.test/v1/messages"}
    assert {asked.headers["host"] for asked in proxy.asked} == {"model.test"}


def test_a_host_that_the_user_excepts_is_asked_directly(repo: Repo) -> None:
    with serving(policy=honest) as server, serving(refuses(502)) as proxy:
        environ = {"HTTP_PROXY": proxy.address, "NO_PROXY": "127.0.0.1"}
        done = run(repo, {**environ, "ANTHROPIC_BASE_URL": server.address})
    assert done.code == 4, done.err
    assert proxy.asked == []


def test_the_password_of_a_proxy_is_not_shown(repo: Repo) -> None:
    environ = {"HTTP_PROXY": f"http://somebody:{KEY}@127.0.0.1:9", "ANTHROPIC_BASE_URL": "http://model.test"}
    done = run(repo, environ)
    assert done.code == 6
    assert KEY not in everything_below(repo.root) + done.out + done.err


@pytest.mark.parametrize("address", ["socks9://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_is_none_is_one_message(repo: Repo, address: str) -> None:
    done = run(repo, {"HTTP_PROXY": address, "ANTHROPIC_BASE_URL": "http://model.test"})
    assert done.code == 2, done.err
    assert done.err.startswith("agentflow: the proxy in the environment cannot be used")


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Return a certificate of 127.0.0.1 that nobody but its own file vouches for, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl to make a certificate")
    made = tmp_path / "authority.pem"
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(tmp_path / "key.pem"), "-out", str(made))
    subprocess.run([program, *words, *names, *files], check=True, capture_output=True)
    return made


def guarded(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_name("key.pem"))
    return context


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_private_authority_of_the_user_is_trusted(repo: Repo, authority: Path, transport: str) -> None:
    with serving(policy=honest, tls=guarded(authority)) as server:
        environ = {"ANTHROPIC_BASE_URL": server.address, "SSL_CERT_FILE": str(authority)}
        done = run(repo, environ, transport=transport)
    assert done.code == 4, done.err
    assert server.asked


def test_without_it_nothing_is_sent_and_the_message_says_what_to_set(repo: Repo, authority: Path) -> None:
    with serving(policy=honest, tls=guarded(authority)) as server:
        done = run(repo, {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY})
    assert done.code == 6
    assert server.asked == list[Asked]()
    assert "certificate is not trusted" in done.out + done.err
    assert "SSL_CERT_FILE" in done.out + done.err


def test_an_authority_that_cannot_be_read_is_one_message(repo: Repo) -> None:
    done = run(repo, {"ANTHROPIC_BASE_URL": "https://model.test", "SSL_CERT_FILE": "/no/such.pem"})
    assert done.code == 2
    assert "/no/such.pem" in done.err
