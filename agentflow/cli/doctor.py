"""`doctor`: the machine, the sandbox under attack, the model and the settings, without a secret."""

from pathlib import Path

import typer

from agentflow.cli.options import JSON
from agentflow.cli.printing import say_json, show

FOLDER = typer.Option(Path(), "-C", help="The repository, if there is one.", metavar="DIR")


def doctor(json: bool = JSON, folder: Path = FOLDER) -> int:
    """Test the sandbox by attacking it. Also report what is installed and configured."""
    from agentflow.cli.examination import examined, exit_code, rows

    found = examined(folder)
    if json:
        say_json(found)
    else:
        show(rows(found))
    return exit_code(found)
