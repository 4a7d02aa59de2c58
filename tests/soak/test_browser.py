"""`agentflow web` in a real Chromium.

Run by name, with `pip install -e '.[browser]'` and Debian's chromium: it fails where either is missing. With
AGENTFLOW_UPDATE_DOCS=1 it makes the pictures of the guide.
"""

import http.server
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from agentflow.core.events import Asked as ModelAsked
from agentflow.core.events import Replied, RunStarted, ToolFinished, ToolStarted
from agentflow.core.messages import Stop, Usage
from agentflow.store.tasks import TaskStore
from tests.support import play
from tests.support.crew import role_of
from tests.support.live import configure
from tests.support.messages_server import Answer, Asked, Plays, serving, text, use
from tests.support.page import Page as Served
from tests.support.page import serve_page
from tests.support.repo import NewRepo, Repo, eventually

PICTURES = Path(__file__).parents[2] / "docs/guide/pictures"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1200, "height": 850}
TALES = {
    "pager.py": '''"""Lists, a page at a time."""


def page_count(items, size):
    """Return how many pages the items fill."""
    return len(items) // size


def title(number, count):
    return f"page {number} of {count}"
''',
    "tests/test_pager.py": """import unittest

from pager import page_count


class PagerTest(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(page_count(range(20), 10), 2)

    def test_the_last_page_counts(self):
        self.assertEqual(page_count(range(21), 10), 3)
""",
    ".gitignore": "*.log\n__pycache__\n",
}
COUNT = {"file_path": "pager.py", "old_string": "len(items) // size", "new_string": "-(-len(items) // size)"}
TITLE = {"file_path": "pager.py", "old_string": '"page {number}', "new_string": '"Page {number}'}
EMPTY = {
    "file_path": "tests/test_pager.py",
    "old_string": "    def test_the_last",
    "new_string": "    def test_nothing_fills_no_page(self):\n"
    "        self.assertEqual(page_count([], 10), 0)\n\n    def test_the_last",
}
_FOUND = {"claim": "The division rounds down.", "path": "pager.py", "line": 6}
_STEP = {"title": "Round the number of pages up", "files": ["pager.py"]}
PART: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {
    "explorer": (
        ("The failing test names page_count.", "Grep", {"pattern": "page_count"}),
        ("", "Read", {"file_path": "pager.py"}),
        (
            "",
            "SubmitFindings",
            {"summary": "page_count rounds down.", "findings": [_FOUND], "open_questions": []},
        ),
    ),
    "planner": (
        (
            "",
            "SubmitPlan",
            {
                "summary": "Round up.",
                "steps": [_STEP],
                "acceptance": ["21 items of 10 fill 3 pages"],
                "risks": [],
            },
        ),
    ),
    "implementer": (
        ("", "Read", {"file_path": "pager.py"}),
        ("Negating twice rounds up without floats.", "Edit", COUNT),
        ("", "Edit", TITLE),
        (
            "",
            "Bash",
            {"command": "until [ -e go.log ]; do sleep 0.1; done; python3 -m unittest discover -s tests"},
        ),
        ("", "Read", {"file_path": "tests/test_pager.py"}),
        ("No test says what an empty list fills.", "Edit", EMPTY),
        ("", "SubmitChange", {"summary": "Rounds up.", "files": ["pager.py", "tests/test_pager.py"]}),
    ),
    "reviewer": (("", "SubmitReview", {"verdict": "APPROVED", "issues": []}),),
}


def perform(asked: Asked) -> Answer:
    """Return the next turn of a crew that says what it does, with the usage of a provider."""
    role = role_of(asked)
    if role == "verifier":
        (green,) = re.findall(r"- tests: green[^\\\\]*evidence (ev-\d+)", asked.raw.decode())[:1]
        seen = {"verdict": "VERIFIED", "evidence": [green], "reasons": ["all tests pass"]}
        said, name, given = "", "SubmitVerdict", seen
    else:
        said, name, given = PART[role][min(asked.turn, len(PART[role]) - 1)]
    usage = {"input_tokens": 200, "output_tokens": 90, "cache_read_input_tokens": len(asked.raw) // 4}
    blocks = (*((text(said),) if said else ()), use(name, given, f"toolu_{role}_{asked.turn}"))
    return Plays(blocks, usage={**usage, "cache_creation_input_tokens": 400})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; as root it has no sandbox of its own."""
    with sync_playwright() as library:
        found = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def look(browser: Browser, address: str, **wishes: Any) -> Iterator[Page]:
    """Open an address in a window of its own; an error of its script fails the test."""
    with browser.new_context(**{"viewport": WIDE, **wishes}) as window:
        tab = window.new_page()
        problems: list[str] = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("dialog", lambda dialog: problems.append(dialog.message))
        tab.goto(address)
        yield tab
        assert problems == []


def of_task(page: Served, repo: Repo) -> str:
    return f"{page.address}tasks/{repo.folder.name}/"


def picture(tab: Page, name: str) -> None:
    """Keep what the tab shows for the guide, where that is asked for."""
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        PICTURES.mkdir(exist_ok=True)
        tab.screenshot(path=PICTURES / f"{name}.png")


def test_a_task_is_followed_approved_and_shown_side_by_side(browser: Browser, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "pager", tmp_path / "home").write(TALES).commit()
    (repo.home / ".claude").mkdir()
    (repo.home / ".claude/settings.json").write_text('{"permissions": {"ask": ["Edit(tests/**)"]}}')
    price = {"input": 5, "output": 25, "cache_read": 0.5, "cache_write": 6.25}
    with serving(policy=perform) as server, serve_page(repo) as page:
        configure(
            repo,
            endpoint=server.address,
            api_key_command=["echo", "x"],
            prices={"big-1": price, "small-1": price},
        )
        with (
            look(browser, page.address) as tab,
            repo.start("task", "show the last page of a list too") as process,
        ):
            tab.get_by_role("link", name="show the last page").click()
            expect(tab.locator("#runs")).to_contain_text("until [ -e go.log ]", timeout=60_000)
            expect(tab.locator("#route .now")).to_contain_text("implementation")
            expect(tab.locator("#connection")).to_have_text("live")
            details = tab.locator("#run-1-all")
            details.locator("summary").click()
            tab.fill("#say-text", "mind the empty li")
            repo.write({"go.log": ""})
            expect(tab.locator("#waiting")).to_contain_text("test_nothing_fills_no_page", timeout=60_000)
            assert not details.evaluate("one => one.open"), "what the reader closed stays closed"
            assert tab.input_value("#say-text") == "mind the empty li"
            tab.fill("#say-text", "")
            process.communicate(timeout=60)
            with look(browser, tab.url, color_scheme="dark") as dark:
                expect(dark.locator("#connection")).to_have_text("live")
                picture(dark, "browser-waiting")
            tab.get_by_role("button", name="Approve").click()
            expect(tab.locator("#said")).to_contain_text("approved. The task continues.")
            expect(tab.locator("#head")).to_contain_text("Verified", timeout=90_000)
            marks = " ".join(tab.locator("#diff tr.mark td").all_inner_texts())
            assert all(mark in marks for mark in ("✓ proved", "? unproved", "⚑ changed check")), marks
            before, after = (
                tab.locator(f"#diff td.code.{kind}").first.bounding_box() for kind in ("gone", "came")
            )
            assert before
            assert after
            assert before["y"] == after["y"]
            assert before["x"] + before["width"] <= after["x"] + 60
            expect(tab.locator("#cost svg.costs")).to_be_visible()
            expect(tab.get_by_role("button", name="Undo")).to_be_visible()
            assert tab.locator("#turns-3 > li").count() == 7, "those before the approval stay"
            shown = tab.locator("#parts > section").evaluate_all("all => all.map((one) => one.id)")
            assert " ".join(shown) == "head controls route diff checks plan runs evidence cost"
            tab.evaluate("document.querySelector('#route').scrollIntoView()")
            picture(tab, "browser-task")
    assert process.returncode == 75


@pytest.fixture
def asking(new_repo: NewRepo) -> Repo:
    """A repository whose task waits for an approval of an edit."""
    repo = new_repo(play.CALC)
    (repo.home / ".claude").mkdir()
    (repo.home / ".claude/settings.json").write_text('{"permissions": {"ask": ["Edit(calc.py)"]}}')
    assert repo.task(script=play.mending()).code == 75
    return repo


def test_denied_with_a_reason_by_keyboard_alone(browser: Browser, asking: Repo) -> None:
    with serve_page(asking) as page, look(browser, of_task(page, asking)) as tab:
        expect(tab.locator("#connection")).to_have_text("live")
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.locator("#main")).to_be_focused()
        tab.keyboard.press("?")
        expect(tab.get_by_role("dialog", name="Keys")).to_be_visible()
        tab.keyboard.press("Escape")
        tab.keyboard.press("w")
        expect(tab.locator("#waiting")).to_be_focused()
        for _ in range(3):
            tab.keyboard.press("Tab")
        expect(tab.get_by_label("Why not?")).to_be_focused()
        tab.keyboard.type("wrong? not now, try t")
        assert f"/tasks/{asking.folder.name}/" in tab.url, "keys in a field are text"
        tab.keyboard.press("Enter")
        expect(tab.locator("#said")).to_contain_text("denied. The task continues.")
        eventually(lambda: asking.state()["status"] not in ("running", "suspended"))
        tab.keyboard.press("t")
        expect(tab.get_by_role("heading", name="Tasks")).to_be_visible()
        expect(tab.locator("#connection")).to_have_text("live")
        tab.keyboard.press("n")
        expect(tab.locator("a.stop").first).to_be_focused()
    assert "a - b" in asking.read("calc.py")


def test_undo_shows_its_plan_first_and_keys_step_through_hunks(browser: Browser, done: Repo) -> None:
    with serve_page(done) as page, look(browser, of_task(page, done)) as tab:
        expect(tab.locator("#connection")).to_have_text("live")
        tab.keyboard.press("n")
        expect(tab.locator("#diff tr.hunk").first).to_be_focused()
        tab.get_by_role("button", name="Undo").click()
        expect(tab.locator("#undo-plan")).to_have_text(re.compile(r"would undo task \S+\s+restore +calc\.py"))
        tab.get_by_role("button", name="Leave everything").click()
        assert "a + b" in done.read("calc.py")
        tab.get_by_role("button", name="Undo").click()
        tab.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
        expect(tab.locator("#head")).to_contain_text("Undone")
    assert "a - b" in done.read("calc.py")


SHOUT = "<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>\x1b[31m"


def test_nothing_that_a_model_or_a_file_says_runs(browser: Browser, new_repo: NewRepo) -> None:
    name = "<img src=x onerror=alert(4)>.py"
    repo = new_repo({**play.CALC, name: "x = 1\n"})
    change = [*play.edit(name, "x = 1", f"x = {SHOUT!r}"), *play.edit("calc.py", "a - b", "a + b")]
    loud = play.turn(play.call("Bash", command=f"echo '{SHOUT}'"), text=SHOUT)
    repo.task(
        f"let add return the sum {SHOUT}", script=play.crew(loud, *change, play.submit("calc.py", name))
    )
    ids = [record["id"] for record in repo.evidence()]
    with serve_page(repo) as page:
        task = of_task(page, repo)
        for address in (page.address, task, *(f"{task}evidence/{each}" for each in ids)):
            with look(browser, address) as tab:
                tab.wait_for_timeout(600)
                assert tab.locator("main img, main script, main [onload], main [onerror]").count() == 0
                assert "\x1b" not in tab.content()


@contextmanager
def serve_attacker(content: str) -> Iterator[str]:
    """Serve a page of another origin on this machine."""

    class Attack(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Attack) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


ATTACK = """<!doctype html><iframe src="{task}"></iframe>
<form method="post" action="{task}undo" target="sink" enctype="text/plain">
<input name='{{"dry_run":false,"x":"' value='"}}'></form>
<iframe name="sink"></iframe><script>
const sent = {{method: "POST", mode: "no-cors", body: '{{"dry_run": false}}'}};
Promise.allSettled([
  fetch("{task}undo", sent),
  fetch("{task}undo", {{...sent, mode: "cors", headers: {{"Content-Type": "application/json"}}}}),
  fetch("{task}").then((reply) => reply.text()).then(() => (window.learnt = true)),
]).then(() => {{ document.forms[0].submit(); setTimeout(() => (window.over = true), 800); }});
</script>"""


def test_a_page_of_another_origin_that_even_knows_the_token_does_nothing(
    browser: Browser, done: Repo
) -> None:
    with (
        serve_page(done) as page,
        serve_attacker(ATTACK.format(task=of_task(page, done))) as attacker,
        browser.new_context() as window,
    ):
        tab = window.new_page()
        tab.goto(attacker)
        tab.wait_for_function("window.over")
        assert tab.evaluate("window.learnt") is None
        assert all(done.folder.name not in _read_frame(frame) for frame in tab.frames[1:])
    assert "a + b" in done.read("calc.py")


def _read_frame(frame: Any) -> str:
    return "" if frame.url.startswith("chrome-error:") else str(frame.content())


def test_it_fits_narrow_windows_in_light_and_dark(browser: Browser, asking: Repo) -> None:
    grounds = set()
    with serve_page(asking) as page:
        for scheme in ("light", "dark"):
            for address in (page.address, of_task(page, asking)):
                with look(browser, address, viewport=NARROW, color_scheme=scheme) as tab:
                    expect(tab.locator("#connection")).to_have_text("live")
                    assert tab.evaluate("document.scrollingElement.scrollWidth") <= 360
                    grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
                    assert tab.evaluate(CONTRAST) == []
    assert len(grounds) == 2


CONTRAST = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    const color = getComputedStyle(one).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" ? ground(one.parentElement) : color;
  };
  const weak = [];
  for (const one of document.querySelectorAll("body *:not(svg *, noscript, script)")) {
    const says = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !one.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(one.outerHTML.slice(0, 80));
  }
  return weak;
}"""
"""The texts with less contrast than WCAG AA asks for."""

TURNS = 500


def work(store: TaskStore, begin: int, end: int) -> None:
    """Write what a role's turns leave, two events a call and two a turn."""
    for number in range(begin, end):
        store.emit(ModelAsked(run=9, turn=number))
        said = f"Step {number}: the next file says how this is done elsewhere."
        usage = Usage(input=900, output=80)
        store.emit(
            Replied(run=9, turn=number, text=said, calls=1, stop=Stop.TOOL_USE, usage=usage, seconds=0.4)
        )
        name = f"call-{number}"
        store.emit(ToolStarted(run=9, call_id=name, tool="Read", subject=f"src/f{number}.py", turn=number))
        store.emit(
            ToolFinished(
                run=9, call_id=name, tool="Read", is_error=False, summary="read", seconds=0.02, turn=number
            )
        )


def measure(tools: CDPSession) -> dict[str, float]:
    """Return what the page's thread has used by now, in seconds of the processor."""
    return {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}


def test_a_thousand_events_are_shown_without_jank(
    browser: Browser, done: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    store = TaskStore.reopen(done.folder)
    store.emit(RunStarted(run=9, role="explorer", agent="explorer", model="m", iteration=1))
    work(store, 1, TURNS // 2)
    with serve_page(done) as page, look(browser, "about:blank") as tab:
        tools = tab.context.new_cdp_session(tab)
        tools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
        tools.send("Performance.enable")
        tab.goto(of_task(page, done))
        expect(tab.locator(f"#turn-9-{TURNS // 2 - 1}")).to_be_attached()
        painted = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        time.sleep(2)
        begun = measure(tools)
        updates = range(TURNS // 2, TURNS, 10)
        for begin in updates:
            work(store, begin, begin + 10)
            time.sleep(0.5)  # asking the page meanwhile would cost it more than the update
        time.sleep(3)
        used = (measure(tools)["TaskDuration"] - begun["TaskDuration"]) / len(updates) * 1000
        expect(tab.locator(f"#turn-9-{TURNS - 1}")).to_be_attached(timeout=30_000)
        heap = measure(tools)["JSHeapUsedSize"] / 1e6
        assert tab.locator("#turns-9 > li").count() == TURNS - 1
        status = Path(f"/proc/{page.process.pid}/status").read_text()
        server = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1000
    with capsys.disabled():
        sys.stdout.write(
            f"\n{4 * TURNS} events: first paint after {painted:.0f} ms, {used:.0f} ms of the processor "
            f"an update, script memory {heap:.0f} MB, server {server:.0f} MB\n"
        )
    assert painted < 5_000, "on a machine that has nothing else to do it is a tenth of that"
    assert used < 100
    assert heap < 50
    assert server < 200
