"""A temporary git repository, and the installed command in it."""

import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support import play
from tests.support.first_commit import commit_first, make_repository
from tests.support.forked import can_run, forks

COMMAND = Path(sys.executable).with_name("agentflow")


class Done:
    """What one command came to."""

    def __init__(self, finished: "subprocess.CompletedProcess[str]") -> None:
        self.code = finished.returncode
        self.out = finished.stdout
        self.err = finished.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Repo:
    """A repository of a test: files in, command run, task files out."""

    def __init__(self, root: Path, home: Path, identity: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Take the folders, and who works there, as `subprocess.run` is told."""
        self.root = root
        self.home = home
        self.identity = identity
        root.mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)
        if identity:
            self.git("init", "-q")
        else:
            make_repository(root)

    def git(self, *words: str) -> str:
        author = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgSign=false")
        done: subprocess.CompletedProcess[str] = subprocess.run(
            ["git", *author, "-c", "core.fsync=none", *words],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(self.home)} if self.identity else None,
            **self.identity,
        )
        return done.stdout

    def write(self, files: Mapping[str, str]) -> "Repo":
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        if self.identity:
            for place in self.root.rglob("*"):
                os.chown(place, self.identity["user"], self.identity["group"])
        return self

    def commit(self) -> "Repo":
        if self.identity or not commit_first(self.root):
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", "state")
        return self

    def keep(self) -> None:
        """Copy the folder of repository and home to `kept` beside it, for `put_back`."""
        shutil.copytree(self.root.parent, self.root.parent.with_name("kept"), symlinks=True)

    def put_back(self) -> "Repo":
        shutil.rmtree(self.root.parent)
        shutil.copytree(self.root.parent.with_name("kept"), self.root.parent, symlinks=True)
        return self

    def read(self, name: str) -> str:
        return (self.root / name).read_text("utf-8")

    def diff(self) -> str:
        return self.git("diff", "HEAD")

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("LANG", "TERM", "TMPDIR") if key in os.environ}
        bare = os.pathsep.join(
            folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(COMMAND.parent)
        )
        return {**kept, "PATH": bare, "HOME": os.environ.get("HOME", "/"), "AGENTFLOW_HOME": str(self.home)}

    def run(
        self,
        *words: str,
        command: Sequence[str] = (str(COMMAND),),
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = 300,
    ) -> Done:
        words, whole = play.ask_for_crew(words), {**self.environment, **(env or {})}
        if tuple(command) == (str(COMMAND),) and not self.identity and can_run(words, env or {}, stdin):
            fork = forks(COMMAND, whole.get("LANG", ""))
            return Done(fork.run(words, self.root, whole, stdin, timeout, self._clients()))
        return Done(
            subprocess.run(
                [*command, *words],
                cwd=self.root,
                env=whole,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                **self.identity,
            )
        )

    def _clients(self) -> list[str]:
        """Return the large modules that a command will load here, for it to find them loaded."""
        servers = (self.home / ".claude.json", self.root / ".mcp.json")
        config = self.home / ".config/agentflow/config.yaml"
        is_sdk = config.is_file() and '"transport": "sdk"' in config.read_text("utf-8", "replace")
        return ["agentflow.mcp.client"] * any(map(Path.exists, servers)) + ["agentflow.model.sdk"] * is_sdk

    def task(self, *words: str, script: list[dict[str, Any]] | None = None, **options: Any) -> Done:
        """Run a task, its text first; with a script, by the scripted model and its whole crew.

        A script ends with its crew's one change: no proving round follows unless `--prove` asks for it.
        """
        text = words or (play.TEXT if script is None else play.WHOLE_CREW,)
        if script is None:
            return self.run("task", *text, **options)
        rounds = () if "--prove" in words else ("--prove", "0")
        return self.run("task", *text, *rounds, "--model", self.scripted(script), **options)

    def scripted(self, script: list[dict[str, Any]]) -> str:
        """Return the name of the model that plays a script."""
        path = self.home / "script.yaml"
        path.write_text(json.dumps(script), "utf-8")
        return f"script:{path}"

    def start(self, *words: str, **streams: Any) -> "subprocess.Popen[str]":
        """Start the command and leave it running; its streams are pipes unless told otherwise."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [str(COMMAND), *play.ask_for_crew(words)],
            cwd=self.root,
            env=self.environment,
            text=True,
            **{**pipes, **streams},
        )

    def start_task(self, script: list[dict[str, Any]], *words: str) -> "subprocess.Popen[str]":
        return self.start("task", play.WHOLE_CREW, *words, "--model", self.scripted(script))

    def give_role(self, name: str, text: str) -> Path:
        """Write a role file of the user."""
        path = self.home / ".claude/agents" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    @property
    def tasks(self) -> list[Path]:
        found = (self.root / ".claude/agentflow").glob("*Z-*")
        # those of one second are in order by what was last written
        return sorted(found, key=lambda each: (each.name.partition("-")[0], each.stat().st_mtime_ns))

    @property
    def folder(self) -> Path:
        """The folder of the only task."""
        (only,) = self.tasks
        return only

    def reseal(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Rewrite each event of the only task, with a checksum that is right again."""
        path = self.folder / "events.jsonl"
        lines = []
        for line in path.read_text("utf-8").splitlines():
            event = json.loads(line)
            del event["sum"]
            change(event)
            body = json.dumps(event, separators=(",", ":")).encode()
            lines.append(b'%s,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body)))
        path.write_bytes(b"".join(lines))

    def events(self, *types: str) -> list[dict[str, Any]]:
        lines = (self.folder / "events.jsonl").read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [event for event in found if not types or event["type"] in types]

    def state(self) -> dict[str, Any]:
        """The fold of the events."""
        state: dict[str, Any] = {}
        for event in self.events("StateChanged"):
            state.update(event["changed"])
        return state

    def evidence(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_bytes()) for path in sorted((self.folder / "evidence").glob("*.json"))]

    def runs(self, role: str) -> list["Recorded"]:
        found = (self.folder / "runs").glob(f"*-{role}.jsonl")
        return [Recorded(path) for path in sorted(found, key=lambda path: int(path.name.split("-")[0]))]


NewRepo = Callable[[dict[str, str]], Repo]
"""What makes a repository of these files, with one commit."""


class Recorded:
    """One recorded run: each request is its head and the messages that had come by then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        self.head = self.entries[0]

    @property
    def tools(self) -> set[str]:
        return {tool["name"] for tool in self.head["tools"]}

    @property
    def results(self) -> list[dict[str, Any]]:
        return [entry["result"] for entry in self.entries if entry["type"] == "CallAnswered"]

    @property
    def calls(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Each call with its result, in the order of the calls."""
        results = {result["call_id"]: result for result in self.results}
        replies = [entry["reply"]["parts"] for entry in self.entries if entry["type"] == "ReplyReceived"]
        made = [part for parts in replies for part in parts if part["type"] == "tool_use"]
        return [(part, results[part["id"]]) for part in made]

    @property
    def outcome(self) -> str:
        return str(self.entries[-1]["outcome"])

    @property
    def notices(self) -> list[str]:
        return [entry["notice"] for entry in self.entries if entry["type"] == "MessageAdded"]

    @property
    def forced(self) -> list[str | None]:
        return [entry.get("force") for entry in self.entries if entry["type"] == "RequestSent"]

    @property
    def brief(self) -> str:
        (part,) = next(entry for entry in self.entries if entry["type"] == "MessageAdded")["message"]["parts"]
        return str(part["text"])


def eventually(claim: Callable[[], bool], seconds: float = 180) -> None:
    """Wait until a claim holds, files that are not there yet included; fail when it does not in time."""
    end = time.monotonic() + seconds
    while not _holds(claim):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def _holds(claim: Callable[[], bool]) -> bool:
    try:
        return claim()
    except (OSError, ValueError, LookupError):
        return False
