"""Options that several commands have."""

from pathlib import Path

import typer

FOLDER = typer.Option(Path(), "-C", help="The repository.", metavar="DIR")
JSON = typer.Option(False, "--json", help="Print JSON.")
ONE_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else on stdout.")
