"""The answer of a command, on stdout."""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentflow.view.text import Line


def show(lines: Iterable["Line"]) -> None:
    """Write lines, fitted to the terminal and coloured where there is one."""
    from agentflow.view.terminal import choose, write

    write(lines, sys.stdout, choose(sys.stdout, os.environ))


def say(text: str = "") -> None:
    """Write a line, safe for a terminal; once the reader has gone, write nothing and go on."""
    from agentflow.redact import visible
    from agentflow.view.terminal import send

    send(f"{visible(text)}\n", sys.stdout)


def say_json(value: object) -> None:
    """Write a value as one line of JSON."""
    from agentflow.core.record import encode

    say_line(encode(value).decode())


def say_line(text: str) -> None:
    """Write JSON that stands already, every character that no terminal shows as an escape of JSON's own."""
    from agentflow.redact import json_visible
    from agentflow.view.terminal import send

    send("".join(f"{json_visible(line)}\n" for line in text.split("\n")), sys.stdout)
