"""`agentflow web` as it really runs, and a client that can lie about who it is."""

import http.client
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.support.repo import Repo


class Answered(NamedTuple):
    """A reply of the server."""

    code: int
    text: str
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Page:
    """A server of a repository's tasks, and who asks it."""

    def __init__(self, address: str, process: "subprocess.Popen[str]") -> None:
        self.address = address
        self.process = process
        _, _, self.host, self.token, _ = address.split("/")
        self.port = int(self.host.partition(":")[2])

    def get(self, path: str = "", **headers: str) -> Answered:
        """Ask for a page behind the token."""
        return self.ask("GET", f"/{self.token}/{path}", headers)

    def act(self, task: str, action: str, **said: Any) -> Answered:
        """Do what the script of the page does for a person."""
        headers = {"Origin": f"http://{self.host}", "Content-Type": "application/json"}
        body = json.dumps(said).encode()
        return self.ask("POST", f"/{self.token}/tasks/{task}/{action}", headers, body)

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answered:
        """Send a request exactly so; a Host may be given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": self.host, "Content-Length": str(len(body)), **headers}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            text = reply.read().decode()
            return Answered(reply.status, text, {name.lower(): value for name, value in reply.getheaders()})
        finally:
            connection.close()

    @contextmanager
    def follow(self, task: str = "") -> Iterator["Followed"]:
        """Listen to the changes of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        place = f"tasks/{task}/" if task else ""
        connection.request("GET", f"/{self.token}/{place}live", headers={"Host": self.host})
        try:
            yield Followed(connection.getresponse())
        finally:
            connection.close()

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


class Followed:
    """What a page has been told of; its parts as they are by now."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.reply = reply
        self.parts: dict[str, str] = {}
        self.count = 0

    def wait_for(self, words: str, seconds: float = 40) -> str:
        """Read on until some part holds these words, and return that part."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = next((part for part in self.parts.values() if words in part), None)
            if found is not None:
                return found
            self.read()
        raise AssertionError(f"{words!r} did not come: {self.parts}")

    def read(self) -> None:
        """Take in the next message."""
        line = self.reply.readline().decode()
        assert line, "the stream has ended"
        if line.startswith("data: "):
            self.count += 1
            self.parts |= json.loads(line.removeprefix("data: "))


@contextmanager
def serve_page(repo: Repo, *words: str) -> Iterator[Page]:
    """Run `agentflow web` in a repository."""
    with repo.start("web", *words) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), process.stderr.read()
            yield Page(address, process)
        finally:
            process.kill()
