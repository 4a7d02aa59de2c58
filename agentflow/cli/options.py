"""Options and arguments that several commands have."""

from pathlib import Path

import typer

TASK = typer.Argument(None, metavar="TASK", help="A task's id or its beginning; the newest by default.")
FOLDER = typer.Option(Path(), "-C", help="The repository.", metavar="DIR")
MODEL = typer.Option(
    None, "--model", help="repair, anthropic, a model's id, deep=ID,fast=ID, or script:FILE.", metavar="M"
)
MAX_COST = typer.Option(None, "--max-cost", min=0, metavar="USD", help="What the whole task may cost.")
MAX_TOKENS = typer.Option(
    None, "--max-tokens", min=1, metavar="N", help="What the whole task may read and write."
)
TIMEOUT = typer.Option(None, "--timeout", min=0.1, metavar="S", help="Seconds the whole task may take.")
STREAM = typer.Option(False, "--stream", help="Show what a live model says as it comes.")
YES = typer.Option(False, "--yes", help="Take defaults and approve what a rule asks about.")
NO_INPUT = typer.Option(False, "--no-input", help="Take defaults and deny approvals.")
NO_SANDBOX = typer.Option(False, "--no-sandbox", help="Run commands with all your rights.")
NETWORK = typer.Option(False, "--network", help="Let the implementer and the checks reach the network.")
EVENTS = typer.Option(None, "--events", metavar="FILE|-", help="Write each event as a JSON line.")
JSON = typer.Option(False, "--json", help="Print JSON.")
ONE_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else on stdout.")
