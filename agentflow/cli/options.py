"""Options and arguments that several commands have."""

from pathlib import Path

import typer

TASK = typer.Argument(..., metavar="TASK", help="A task's id or its beginning.")
FOLDER = typer.Option(Path(), "-C", help="The repository.", metavar="DIR")
MODEL = typer.Option(None, "--model", help="A model's name, repair, or script:FILE.", metavar="M")
YES = typer.Option(False, "--yes", help="Take defaults and approve what a rule asks about.")
NO_INPUT = typer.Option(False, "--no-input", help="Take defaults and deny approvals.")
NO_SANDBOX = typer.Option(False, "--no-sandbox", help="Run commands with all your rights.")
NETWORK = typer.Option(False, "--network", help="Let the implementer and the checks reach the network.")
EVENTS = typer.Option(None, "--events", metavar="FILE|-", help="Write each event as a JSON line.")
JSON = typer.Option(False, "--json", help="Print JSON.")
ONE_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else on stdout.")
