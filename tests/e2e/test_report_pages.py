"""A task as an HTML file and as a comment: complete, self-contained, nothing foreign more than text."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Repo

EVIL = (
    "</pre></td></details><script>alert(1)</script><img src=x onerror=alert(1)><!-- \x1b]8;;javascript:a\x07 "
    "\x1b[31m\u202e [go](javascript:alert(1)) ![p](http://evil.example/p.png) ``` ~~~ @octocat fixes #1 GH-2 "
    "a/b#3 www.evil.example https://evil.example/ | <https://evil.example> &lt; *b* _i_"
)
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
NOISY = f"""import unittest

from calc import add


class NoisyTest(unittest.TestCase):
    def test_noise(self):
        print({EVIL!r})
        print("\\n".join(f"line {{n}}" for n in range(300)))
        self.assertEqual(add(0, 2), 2)
"""
TAGS = """
html head meta title style body main footer section h1 h2 h3 p b span ul ol li dl dt dd div a details summary
table colgroup col thead tbody tr th td pre code figure figcaption svg defs marker path g title rect text line
"""
ATTRIBUTES = """
lang charset http-equiv content name class id open href colspan value role aria-label viewbox width
height d x y rx refx refy markerwidth markerheight orient marker-end text-anchor x1 x2 y1 y2
"""


class Page(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = set[str]()
        self.links = set[str]()
        self.ids = list[str]()
        self.comments = list[str]()
        self.texts = list[str]()
        self.open = list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open += [] if tag in {"meta", "col"} else [tag]
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in {"href", "src"}}
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def render(repo: Repo, task: str, tmp_path: Path) -> tuple[str, Page]:
    out = tmp_path / "report.html"
    done = repo.run("report", task, "--html", str(out))
    assert done.code == 0, done.err
    text = out.read_text("utf-8")
    return text, Page(text)


def assert_harmless(text: str, page: Page) -> None:
    assert page.tags <= set(TAGS.split())
    assert page.attributes <= set(ATTRIBUTES.split())
    assert all(re.fullmatch(r"#ev-\d{4}", link) for link in page.links)
    assert page.open == []
    assert page.comments == []
    assert len(page.ids) == len(set(page.ids))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    assert SECRET not in text


def outside_code(comment: str) -> str:
    """Return what of a comment is not in a fence or a code span, without the elements of our own."""
    kept, fence = list[str](), ""
    for line in comment.split("\n"):
        found = re.match(r"(`{3,})(diff)?$", line)
        if fence:
            fence = "" if line == fence else fence
        elif found:
            fence = found[1]
        else:
            kept.append(re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", line))
    assert fence == ""
    return re.sub(r"</?(?:details|summary|sub)>", "", "\n".join(kept))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task whose every text attacks the page it is shown on, and that also prints a secret."""
    folder = tmp_path_factory.mktemp("hostile")
    repo = Repo(folder / "a repository", folder / "home")
    repo.write({**play.CALC, "tests/test_noisy.py": NOISY, "a<b>&'\"`.txt": "x\n"}).commit()
    evil = play.turn(
        play.call("Edit", file_path="a<b>&'\"`.txt", old_string="x\n", new_string=f"{EVIL}\n"),
        text=f"{EVIL} {SECRET}",
    )
    read = {**play.turn(play.call("Read", file_path="a<b>&'\"`.txt")), "usage": {"input": 90, "output": 10}}
    done = play.turn(play.call("SubmitChange", summary=EVIL, files=["calc.py"]))
    implementer = play.role("implementer", read, evil, *play.MENDED, done)
    task = f"let add return the sum {EVIL} {SECRET}"
    ran = repo.task(task, script=[implementer, play.verified("ev-0002")])
    assert ran.code == 4, ran.err
    return repo


def test_nothing_in_the_page_of_a_hostile_task_is_more_than_text(hostile: Repo, tmp_path: Path) -> None:
    text, page = render(hostile, hostile.folder.name, tmp_path)
    assert_harmless(text, page)
    assert "<script>alert(1)</script>" in page.text
    assert "\\x1b]8;;javascript:a\\x07" in page.text
    assert "[REDACTED]" in page.text
    for section in ("head", "route", "diff", "checks", "runs", "evidence", "cost"):
        assert section in page.ids
    assert "more lines above" in page.text
    assert "proved" in page.text
    assert "test_calc.CalcTest.test_add" in page.text


def test_nothing_in_the_comment_of_a_hostile_task_mentions_links_or_closes(hostile: Repo) -> None:
    said = hostile.run("report", hostile.folder.name, "--markdown").out
    free = outside_code(said)
    assert not re.search(r"<(?!/?(?:details|summary|sub)>)", free)
    assert not re.search(r"@\w|#\d|GH-\d|://|www\.|\]\(|(?<!\\)[`*\[]\w", free.replace("**", ""))
    assert (
        said.count("<details>")
        == said.count("</details>") - said.count("\n+</pre></td></details>") - free.count("&lt;/details")
        or "&lt;" in free
    )
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", said)
    assert SECRET not in said
    assert "verified with caveat" in said.splitlines()[0].lower()
    assert "What nothing proves" in said
    assert "| tests | exit 1" in said


def damage(repo: Repo, name: str) -> Path:
    """Return a copy of the task under another id, to be damaged."""
    copy = repo.root / ".claude/agentflow" / name
    shutil.copytree(repo.tasks[0], copy)
    return copy


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(hostile: Repo, tmp_path: Path) -> None:
    copy = damage(hostile, "20300101T000000Z-dead")
    try:
        secret = tmp_path / "secret.txt"
        secret.write_text("of another folder")
        (copy / "evidence/ev-0001.out").unlink()
        (copy / "evidence/ev-0001.out").symlink_to(secret)
        (copy / "evidence/ev-0002.json").write_text("{}")
        lines = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
        ended = next(at for at, line in enumerate(lines) if b'"type":"TaskEnded"' in line)
        (copy / "events.jsonl").write_bytes(b"".join([*lines[: ended - 6], b'{"seq":1}\n']))
        text, page = render(hostile, copy.name, tmp_path)
        assert_harmless(text, page)
        assert "Cannot be read: evidence" not in page.text
        assert "Cannot be read: ev-0002.json" in page.text
        assert "Cannot be read: events.jsonl" in page.text
        assert "of another folder" not in text
        (copy / "events.jsonl").write_text("no event\n")
        text, page = render(hostile, copy.name, tmp_path)
        assert "Cannot be read" in page.text
        said = hostile.run("report", copy.name, "--markdown")
        assert said.code == 0
        assert "Cannot be read" in said.out
    finally:
        shutil.rmtree(copy)


def test_a_task_that_waits_has_a_page_that_says_how_to_decide_and_no_report_yet(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "a repository", tmp_path / "home").write(play.QUICK).commit()
    found = [{"claim": EVIL, "path": "calc.py", "line": 2}]
    explored = play.call("SubmitFindings", summary=EVIL, findings=found, open_questions=[EVIL])
    steps = [{"title": EVIL, "files": [EVIL]}]
    planned = play.call("SubmitPlan", summary=EVIL, steps=steps, acceptance=[EVIL], risks=[EVIL])
    roles = [play.role("explorer", play.turn(explored)), play.role("planner", play.turn(planned))]
    done = repo.task("--pause-after", "planning", "let add return the sum", script=roles)
    assert done.code == 75, done.err
    text, page = render(repo, repo.folder.name, tmp_path)
    assert_harmless(text, page)
    assert "Suspended" in page.text
    assert "plan" in page.ids
    assert "implementation" in page.text
    assert "No changes yet" in page.text
    assert json.loads(repo.run("report", "--json").out)["report"].startswith("# suspended")
    lines = (repo.folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (repo.folder / "events.jsonl").write_bytes(b"".join(lines[: len(lines) // 3]))
    (repo.folder / "report.md").unlink()
    killed = repo.run("report")
    assert killed.code == 2
    assert "has no report yet" in killed.err
    _, page = render(repo, repo.folder.name, tmp_path)
    assert "Interrupted" in page.text
    refused = repo.run("report", "--html", str(tmp_path / "no/such/folder.html"))
    assert refused.code == 2
    assert "cannot write" in refused.err
