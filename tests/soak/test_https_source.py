"""A batch whose repository is at an https address: a server of git here, with a certificate of its own."""

import json
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo

SUBJECT = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
MAKE = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def make_handler(root: Path) -> type[BaseHTTPRequestHandler]:
    class Backend(BaseHTTPRequestHandler):
        """`git http-backend` behind CGI."""

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            env = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=env, capture_output=True, check=True
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in {**fields, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815  # the base class names them

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Backend


@contextmanager
def serve(root: Path, certificate: Path, key: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(root))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_task_begins_with_the_named_commit_of_a_server(tmp_path: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [program, *MAKE, *SUBJECT, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    repo = Repo(tmp_path / "calc", tmp_path / "home").write(play.CALC).commit()
    wanted = repo.git("rev-parse", "HEAD").strip()
    repo.git("tag", "v1")
    repo.write({"calc.py": "broken later\n"}).commit()
    model = repo.scripted(play.mending())
    plan, page = tmp_path / "plan.jsonl", tmp_path / "page.html"
    with serve(tmp_path, certificate, key) as address:
        common = {"repository": f"{address}/calc/.git", "text": play.WHOLE_CREW, "model": model}
        tasks = [
            {"id": "tag", "commit": "v1"},
            {"id": "commit", "commit": wanted},
            {"id": "no", "commit": "v2"},
        ]
        plan.write_text("".join(json.dumps({**common, **task}) + "\n" for task in tasks))
        unknown = repo.run("batch", str(plan), "--json", "--out", str(tmp_path / "unknown"))
        trusted = {"GIT_SSL_CAINFO": str(certificate)}
        done = repo.run("batch", str(plan), "--json", "--html", str(page), env=trusted)
    refused = [json.loads(line) for line in unknown.out.splitlines()]
    assert [result["task_id"] for result in refused] == [None, None, None]
    assert all("certificate" in result["reason"] for result in refused), refused
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [result["exit_code"] for result in found] == [0, 0, 2], done.err
    assert all("a + b" in Path(one["folder"], "change.patch").read_text() for one in found[:2])
    assert "2 of 3 tasks verified" in page.read_text("utf-8")
