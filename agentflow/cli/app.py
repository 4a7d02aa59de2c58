"""The command's front door: the one place that turns errors into messages and exit codes."""

import sys

from agentflow import __version__


def main() -> None:
    """Run the command line and exit with the code of CONTRACT section 2."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        print(f"agentflow {__version__}")  # noqa: T201  # the answer
        raise SystemExit(0)
    from agentflow.cli.outcome import run  # so that --version stays free of every import

    raise SystemExit(run(arguments))
