"""The tour in docs/architecture.md: its files exist, and its changes are made for real in a copy."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo

PAGE = "docs/architecture.md"
ROW = re.compile(r"^\| \*\*([\w ]+)\*\* \|([^|]+)\|", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|md|yaml))`")
CHANGES = (
    *("a tool", "a hook event", "a model provider", "a language", "a test runner"),
    *("a phase", "the wording of the report", "a capability", "a setting"),
)
MOST_FILES = 3
QUESTION = "where is add defined?"
Edit = tuple[str, str]
"""A text, and what is written in its place."""

TOOL = '''"""Counting words."""

from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext


class CountInput(Record):
    file_path: str


def count_words(wanted: CountInput, context: ToolContext) -> Output:
    """Count the words of a text file."""
    return Output(content=str(len(context.workspace.read(wanted.file_path).split())))


COUNT_WORDS = Tool(
    name="CountWords",
    category=Category.FS,
    effect=Effect.READ,
    input=CountInput,
    call=count_words,
    subjects={"file_path": Subject.PATH},
)
'''
PROVIDER = '''"""An API that is not there yet: letters."""

from agentflow.core.messages import Reply, Request, Stop, ToolCall, ToolResult
from agentflow.core.record import encode
from agentflow.model.wire import ReadReply, Room
from agentflow.parse import decode_or_none


class LettersApi:
    title = "the API of letters"
    path = "/letters"

    def encode(self, request: Request, *, stream: bool, room: Room) -> bytes:
        parts = [part for message in request.messages for part in message.parts]
        results = [part.content for part in parts if isinstance(part, ToolResult)]
        return encode({"to": request.model, "results": results})

    def read(self, body: bytes) -> ReadReply:
        said = decode_or_none(body.decode())
        call = ToolCall(id="c1", name=said["tool"], input=said["with"])
        return Reply(parts=(call,), stop=Stop.TOOL_USE), frozenset()

    def start_stream(self) -> None:
        return None
'''
CAPABILITY = '''class Courtesy(Record):
    """Asks for short answers."""

    def install_context(self, context: ContextChannel) -> None:
        context.add("Answer in short sentences.")


class UseModel(Record):'''
CHOICE = """\
    if provider == "letters":
        from agentflow.model.new import LettersApi

        return LettersApi()
    if provider in tiers.MESSAGES"""
LANGUAGE = """LANGUAGES: tuple[Language, ...] = (
    Language(
        name="Zen",
        suffixes=(".zen",),
        manifests=("zen.pkg",),
        rules=(
            CheckRule(
                name=CheckName.TESTS, command="true", manifest=("zen.pkg",), programs=(("true", ""),)
            ),
        ),
    ),"""


RUNNER = r'''"""Zen: its tests."""

from agentflow.core.evidence import CheckName, TestCounts, TestResults
from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner


def read(rows):
    return TestResults(counts=TestCounts(passed=rows.count("fine"))) if "fine" in rows else None


ZEN = TestRunner(
    name="zen",
    language="JavaScript",
    rules=(
        CheckRule(name=CheckName.TESTS, command="echo fine", manifest=("zen.pkg",), programs=(("echo", ""),)),
    ),
    read=read,
)
'''


class Copy:
    """A copy of the program that a test may change, as somebody does who follows the tour."""

    def __init__(self, root: Path, place: Path, repo: Repo, files: Mapping[str, tuple[str, ...]]) -> None:
        self.place = place
        self.repo = repo
        self._files = files
        for folder in ("agentflow", "agents", "skills", "hooks", "examples"):
            shutil.copytree(root / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))

    def change(self, row: str, **edits: tuple[Edit, ...]) -> None:
        """Change the files that a row of the tour names, each by texts put in place of others."""
        named = {Path(name).stem: self.place / name for name in reversed(self._files[row])}
        for stem, pairs in edits.items():
            text = named[stem].read_text("utf-8") if named[stem].exists() else ""
            for old, new in pairs:
                assert text.count(old) >= 1 or not text, f"{stem} has no longer: {old}"
                text = text.replace(old, new, 1) if text else new
            named[stem].write_text(text, "utf-8")

    def set_up(self, **settings: object) -> None:
        """Write the user's settings."""
        path = self.repo.home / ".claude/settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))

    def run(self, *words: str, script: list[dict[str, object]] | None = None, **env: str) -> str:
        """Run the changed program; return all that it prints."""
        model = ("--model", self.repo.scripted(script)) if script is not None else ()
        done = self.repo.run(
            *words,
            *model,
            command=(sys.executable, "-m", "agentflow"),
            env={"PYTHONPATH": str(self.place), "PYTHONDONTWRITEBYTECODE": "1", **env},
        )
        return done.out + done.err


@contextmanager
def post_office(answers: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Serve answers; yield the address, and the path and body of each request."""
    asked: list[tuple[str, Any]] = []

    class Office(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(answers[len(asked)]).encode()
            asked.append((self.path, said))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Office) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def tour(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the files of each row of the tour."""
    return {row: tuple(FILE.findall(cells)) for row, cells in ROW.findall((root / PAGE).read_text("utf-8"))}


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    repo = Repo(tmp_path / "repo", tmp_path / "home").write(play.CALC).commit()
    return Copy(root, tmp_path / "program", repo, tour(root))


def test_the_tour_has_a_row_for_each_of_the_usual_changes(root: Path) -> None:
    assert tuple(tour(root)) == CHANGES


def test_each_file_that_the_page_names_is_there(root: Path) -> None:
    named = {name for name in FILE.findall((root / PAGE).read_text("utf-8")) if "/" in name}
    lacking = [
        name
        for name in sorted(named)
        if not any((root / folder / name).exists() for folder in ("", "agentflow", "docs"))
    ]
    assert [name for name in lacking if "new.py" not in name] == []


@pytest.mark.parametrize("row", CHANGES)
def test_a_change_takes_few_files(row: str, root: Path) -> None:
    assert 1 <= len(tour(root)[row]) <= MOST_FILES + (row == "a phase")


def test_the_copy_is_what_runs(copy: Copy) -> None:
    (copy.place / "agentflow/__init__.py").write_text('raise SystemExit("the copy")')
    assert "the copy" in copy.run("--version")


def test_a_tool(copy: Copy) -> None:
    copy.change(
        "a tool",
        new=(("", TOOL),),
        registry=(
            ("_SHIPPED = (", "_SHIPPED = (COUNT_WORDS, "),
            (
                "from agentflow.tools.todos",
                "from agentflow.tools.new import COUNT_WORDS\nfrom agentflow.tools.todos",
            ),
        ),
        explorer=(("tools:\n", "tools:\n  - CountWords\n"),),
    )
    told = copy.run("tools", "show", "CountWords")
    assert "Count the words of a text file." in told
    assert "explorer" in told
    copy.repo.write({"secret/a.txt": "one two"})
    copy.set_up(permissions={"deny": ["Read(secret/**)"]})
    calls = [play.call("CountWords", file_path=path) for path in ("calc.py", "secret/a.txt")]
    copy.run("task", QUESTION, script=[play.role("explorer", play.turn(*calls)), play.findings()])
    said = [result["content"] for _, result in copy.repo.runs("explorer")[0].calls]
    assert said == [str(len(play.CALC["calc.py"].split())), "rule Read(secret/**)"]


def test_a_hook_event(copy: Copy) -> None:
    rules = "    Point.FAREWELL: PointRules(payload=points.Farewell),\n"
    end = "    await _fire(crew, task, Point.SESSION_END,"
    farewell = '    await _fire(crew, task, Point.FAREWELL, lambda: Farewell(names=("Ada",)))\n'
    copy.change(
        "a hook event",
        points=(
            ('    SESSION_END = "', '    FAREWELL = "Farewell"\n    SESSION_END = "'),
            (
                "class SessionEnded(",
                "class Farewell(Record):\n    names: tuple[str, ...]\n\n\nclass SessionEnded(",
            ),
        ),
        hook=(
            (
                "    Point.SESSION_END: PointRules(",
                f"{rules}    Point.SESSION_END: PointRules(",
            ),
        ),
        session=(("    SessionEnded,\n", "    Farewell,\n    SessionEnded,\n"), (end, f"{farewell}{end}")),
    )
    told = copy.repo.home / "told"
    hook = {"type": "command", "command": f"cat >> {told}; echo >> {told}"}
    copy.set_up(hooks={"Farewell": [{"hooks": [hook]}]})
    copy.run("hooks", "test", "--event", "Farewell")
    copy.run("task", play.TEXT, script=[])
    events = [json.loads(row) for row in told.read_text("utf-8").split("\n") if row]
    assert [(event["hook_event_name"], event["names"]) for event in events] == [
        ("Farewell", []),
        ("Farewell", ["Ada"]),
    ]


def test_a_model_provider(copy: Copy) -> None:
    copy.change(
        "a model provider",
        new=(("", PROVIDER),),
        tiers=(("LIVE = (", 'LIVE = ("letters", '),),
        models=(("    if provider in tiers.MESSAGES", CHOICE),),
    )
    answers = [
        {"tool": "Read", "with": {"file_path": "calc.py"}},
        {"tool": "SubmitFindings", "with": {"summary": "found", "findings": [], "open_questions": []}},
    ]
    with post_office(answers) as (address, asked):
        assert "found" in copy.run("task", QUESTION, "--model", "letters", ANTHROPIC_BASE_URL=address)
    assert [path for path, _ in asked] == ["/letters"] * 2
    assert "def add" in asked[1][1]["results"][0]


def test_a_language(copy: Copy) -> None:
    copy.change("a language", languages=(("LANGUAGES: tuple[Language, ...] = (", LANGUAGE),))
    copy.repo.write({"zen.pkg": ""})
    assert "unittest discover -v -s tests; true\n" in copy.run("verify", "--dry-run")
    (copy.repo.root / "tests/test_calc.py").unlink()
    assert "  true\n" in copy.run("verify", "--dry-run")
    (copy.place / "git").symlink_to(shutil.which("git") or "")
    assert "not run (true is not installed)" in copy.run("verify", "--dry-run", PATH=str(copy.place))


def test_a_test_runner(copy: Copy) -> None:
    copy.change("a test runner", new=(("", RUNNER),))
    copy.repo.write({"zen.pkg": ""})
    (copy.repo.root / "tests/test_calc.py").unlink()
    assert "1 passed" in copy.run("verify")


def test_the_wording_of_the_report(copy: Copy) -> None:
    copy.change(
        "the wording of the report",
        why=(("now {verb}; no new failures", "now {verb}; nothing else broke"),),
        report=(("found by the built-in repair engine", "found by a search"),),
    )
    assert "nothing else broke" in copy.run("task", play.TEXT, "-q")
    assert "found by a search" in (copy.repo.folder / "report.md").read_text("utf-8")


def test_a_capability(copy: Copy) -> None:
    prompt = "        RolePrompt(role=role),\n"
    copy.change(
        "a capability",
        standard=(("class UseModel(Record):", CAPABILITY), (prompt, f"{prompt}        Courtesy(),\n")),
    )
    assert "Answer in short sentences." in copy.run("agents", "show", "planner")


def test_a_setting(copy: Copy) -> None:
    stream = "    stream: bool = False\n"
    copy.change("a setting", settings=((stream, f"    courtesy: bool = False\n{stream}"),))
    config = copy.repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("courtesy: true\n")
    row = next(line for line in copy.run("config").splitlines() if line.startswith("courtesy"))
    assert row.split()[:2] == ["courtesy", "true"]


def test_a_phase_is_known_in_each_file_of_its_row(root: Path) -> None:
    for name in tour(root)["a phase"]:
        assert re.search(r"exploration|EXPLORATION", (root / name).read_text("utf-8")), name
