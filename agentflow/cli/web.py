"""`web`: the tasks of this repository as a page in the browser."""

from importlib.util import find_spec
from pathlib import Path

import typer

from agentflow.cli.arguments import FOLDER
from agentflow.cli.printing import say

PORT = typer.Option(0, "--port", metavar="N", min=0, max=65535, help="The port. [default: any free one]")
_PACKAGES = ("starlette", "uvicorn")


def web(port: int = PORT, folder: Path = FOLDER) -> None:
    """Show the tasks of this repository in the browser, live, and decide there. Ctrl-C ends it.

    It answers only on this machine. Its address holds a secret token: whoever has that can decide for you.
    """
    from agentflow.core.errors import ConfigError
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    if not all(map(find_spec, _PACKAGES)):
        raise ConfigError("the page needs two more packages: pip install 'agentflow[web]'")
    from agentflow.web.server import serve_page

    serve_page(git, port, say)
