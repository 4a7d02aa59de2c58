"""The tour in docs/architecture.md: its files exist, and its changes are made for real in a copy."""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Repo

PAGE = "docs/architecture.md"
ROW = re.compile(r"^\| \*\*([\w ]+)\*\* \|([^|]+)\|", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|md|yaml))`")
CHANGES = (
    *("a tool", "a hook event", "a model provider", "a language"),
    *("a phase", "the wording of the report", "a capability", "a setting"),
)
MOST_FILES = 3
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
PROVIDER = '''"""A provider that is not there yet."""

from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Request


class OpenAI:
    name = "openai"

    def refusal(self, task: str) -> str | None:
        return None

    async def complete(self, request: Request) -> Reply:
        raise ModelRejected(f"the stub was asked for {request.agent}")
'''
CAPABILITY = '''class Courtesy(Record):
    """Asks for short answers."""

    def install_context(self, context: ContextChannel) -> None:
        context.add("Answer in short sentences.")


class UseModel(Record):'''
CHOICE = """\
    if name == "openai":
        from agentflow.model.new import OpenAI

        return OpenAI()
    if name == REPAIR:
"""
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

    def run(self, *words: str, script: list[dict[str, object]] | None = None) -> str:
        """Run the changed program; return all that it prints."""
        model = ("--model", self.repo.scripted(script)) if script is not None else ()
        done = self.repo.run(
            *words,
            *model,
            command=(sys.executable, "-m", "agentflow"),
            env={"PYTHONPATH": str(self.place), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return done.out + done.err


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
            ("_SHIPPED = (READ, ", "_SHIPPED = (COUNT_WORDS, READ, "),
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


def test_a_hook_event(copy: Copy) -> None:
    end = "    await _fire(crew, task, Point.SESSION_END,"
    farewell = '    await _fire(crew, task, Point.FAREWELL, lambda: SessionEnded(reason="bye"))\n'
    copy.change(
        "a hook event",
        points=(('    SESSION_END = "', '    FAREWELL = "Farewell"\n    SESSION_END = "'),),
        hook=(
            (
                "    Point.SESSION_END: PointRules(",
                "    Point.FAREWELL: PointRules(payload=SessionEnded),\n    Point.SESSION_END: PointRules(",
            ),
        ),
        session=((end, f"{farewell}{end}"),),
    )
    told, settings = copy.repo.home / "told", copy.repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    hook = {"type": "command", "command": f"cat > {told}"}
    settings.write_text(json.dumps({"hooks": {"Farewell": [{"hooks": [hook]}]}}))
    copy.run("task", play.TEXT, script=[])
    assert json.loads(told.read_text("utf-8"))["hook_event_name"] == "Farewell"


def test_a_model_provider(copy: Copy) -> None:
    copy.change(
        "a model provider",
        new=(("", PROVIDER),),
        tiers=(('LIVE = ("anthropic", *CLOUDS)', 'LIVE = ("anthropic", "openai", *CLOUDS)'),),
        models=(("    if name == REPAIR:\n", CHOICE),),
    )
    assert "the stub was asked for " in copy.run("task", play.WHOLE_CREW, "--model", "openai")


def test_a_language(copy: Copy) -> None:
    copy.change("a language", languages=(("LANGUAGES: tuple[Language, ...] = (", LANGUAGE),))
    copy.repo.write({"zen.pkg": ""})
    assert "true" not in copy.run("verify", "--dry-run").split()
    (copy.repo.root / "tests/test_calc.py").unlink()
    assert "true" in copy.run("verify", "--dry-run").split()


def test_the_wording_of_the_report(copy: Copy) -> None:
    copy.change(
        "the wording of the report",
        verdict=(("no new failures", "nothing else broke"),),
        report=(("## Plan", "## What was planned"),),
    )
    assert "nothing else broke" in copy.run("task", play.TEXT, "-q")
    assert "## What was planned" in (copy.repo.folder / "report.md").read_text("utf-8")


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
