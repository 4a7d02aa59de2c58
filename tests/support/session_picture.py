"""Plays a session in tmux and writes what the terminal shows as docs/session.svg.

    python -m tests.support.session_picture docs/session.svg

It needs tmux. What a person types is real, the model plays a script.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.support.live import KEY
from tests.support.messages_server import Asked, MessagesServer, Plays, serving, use
from tests.support.repo import COMMAND, Repo

COLUMNS, ROWS = 100, 40
_OLD, _NEW = "subtotal(lines) - discount / 100", "subtotal(lines) * (1 - discount / 100)"
CART = f'''"""What a cart costs."""


def subtotal(lines):
    return sum(price * amount for price, amount in lines)


def total(lines, discount=0):
    return {_OLD}
'''
TESTS = """import time
import unittest

from cart import subtotal, total


class CartTest(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(total([(10, 2), (5, 1)], discount=10), 22.5)


def make_test(number):
    def test(self):
        time.sleep(0.15)
        self.assertEqual(subtotal([(number, 1)]), number)

    return test


for number in range(30):
    setattr(CartTest, f"test_subtotal_{number:02}", make_test(number))
"""


_ANSWER = {
    "summary": "`total()` in `cart.py`.",
    "findings": [
        {"claim": "takes the discount off as an amount, not as a share", "path": "cart.py", "line": 9}
    ],
    "open_questions": [],
}
_CHANGE = {"summary": "Take the discount as a percentage of the subtotal", "files": ["cart.py"]}
STEPS = {
    "SubmitFindings": (use("Read", {"file_path": "cart.py"}), use("SubmitFindings", _ANSWER)),
    "SubmitChange": (
        use("Read", {"file_path": "cart.py"}),
        use("Bash", {"command": "grep -rn discount . && sleep 4"}),
        use("Edit", {"file_path": "cart.py", "old_string": _OLD, "new_string": _NEW}),
        use("SubmitChange", _CHANGE),
    ),
    "SubmitVerdict": (use("SubmitVerdict", {"verdict": "VERIFIED", "evidence": ["ev-0003"], "reasons": []}),),
}


def play_role(asked: Asked) -> Plays:
    """Reply as the role whose turn it is."""
    time.sleep(1)
    (steps,) = (steps for tool, steps in STEPS.items() if tool in asked.tools)
    return Plays((steps[min(asked.turn, len(steps) - 1)],))


class Screen:
    """A terminal of tmux, and who types there."""

    def __init__(self, repo: Repo, server: MessagesServer) -> None:
        self._socket = f"agentflow-{os.getpid()}"
        environ = {**repo.environment, "ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        shown = [f"{key}={value}" for key, value in environ.items() if key != "TERM"]
        self.run("new-session", "-d", *size, "-c", str(repo.root), "env", *shown, str(COMMAND))

    def run(self, *words: str) -> str:
        argv = ["tmux", "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def type(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def wait_for(self, text: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while text not in self.run("capture-pane", "-p"):
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} was not shown:\n{self.run('capture-pane', '-p')}")
            time.sleep(0.1)

    def close(self) -> None:
        self.run("kill-server")


def hold_session(screen: Screen) -> str:
    """Hold a session and return what stands on the screen in the middle of it, colours included."""
    screen.wait_for("leaves.")
    screen.type("where is the discount computed?", "Enter")
    screen.wait_for("cart.py:9")
    screen.wait_for("/new begins")
    screen.type("make the failing tests pass", "Enter")
    screen.wait_for("Bash grep")
    screen.type("leave subtotal as it is", "Enter")
    screen.wait_for("queued")
    screen.type("C-c")
    screen.wait_for("paused>")
    screen.type("and add no new function", "Enter")
    screen.wait_for("of 31")
    while not re.search(r" (?:5|6|7|8|9) of 31", screen.run("capture-pane", "-p")):
        time.sleep(0.05)
    screen.type("now also round to cents")
    screen.wait_for("to cents")
    return screen.run("capture-pane", "-p", "-e")


def draw(shown: str) -> str:
    """Return a screen as an SVG that needs nothing from elsewhere."""
    rows = shown.rstrip("\n").split("\n")
    filled = [place for place, row in enumerate(rows) if row.strip()]
    kept = [row for place, row in enumerate(rows) if place <= filled[-2] or place == filled[-1]]
    kept.insert(-1, "")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        for row in kept:
            console.print(Text.from_ansi(row), no_wrap=True, crop=True)
        svg = console.export_svg(title="agentflow", unique_id="session")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        home = Path(folder)
        repo = (
            Repo(home / "shop", home / "home").write({"cart.py": CART, "tests/test_cart.py": TESTS}).commit()
        )
        with serving(policy=play_role) as server:
            screen = Screen(repo, server)
            try:
                shown = hold_session(screen).replace(folder, "~/src")
            finally:
                screen.close()
    target.write_text(draw(shown), "utf-8")


if __name__ == "__main__":
    main()
