"""What a command comes to: an exit code, and one message when it failed."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from typer.exceptions import TyperException

from agentflow.cli.commands import app
from agentflow.core.errors import AgentflowError
from agentflow.core.exits import Exit


def run(arguments: Sequence[str]) -> int:
    """Run one command; every error ends here as a message on stderr and a code."""
    try:
        code = int(app(list(arguments), prog_name="agentflow", standalone_mode=False) or 0)
        sys.stdout.flush()
    except TyperException as error:
        code = _say(str(error), "agentflow --help lists what there is", Exit.CONFIG)
    except AgentflowError as error:
        code = _say(str(error), error.hint, error.exit_code)
    except BrokenPipeError:
        code = _unread()
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        code = _say(f"{error.strerror or error}{place}", "", Exit.CONFIG)
    except KeyboardInterrupt:
        code = _say("interrupted", "", Exit.INTERRUPTED)
    except Exception:  # noqa: BLE001  # a bug, told as one
        code = _say(f"internal error; the report lies in {_crash_report()}", "", Exit.INTERNAL)
    return code


def _unread() -> int:
    """Lead what is still buffered to nowhere: nobody reads our answer any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.VERIFIED


def _say(message: str, hint: str, code: Exit) -> int:
    from agentflow.redact import visible

    lines = [visible(f"agentflow: {message}"), *([f"  {visible(hint)}"] if hint else [])]
    sys.stderr.write("\n".join(lines) + "\n")
    return code


def _crash_report() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="agentflow-crash-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(traceback.format_exc())
    return Path(name)
