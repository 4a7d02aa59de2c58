"""The answer of a command, on stdout."""

import sys


def say(text: str = "") -> None:
    """Write a line; once the reader has gone, write nothing and go on."""
    from agentflow.view.terminal import send

    send(f"{text}\n", sys.stdout)
