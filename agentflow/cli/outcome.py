"""What a command comes to: an exit code, and one message when it failed."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from typer.exceptions import TyperException

from agentflow.cli.commands import app
from agentflow.core.errors import AgentflowError, Exit, describe_os_error
from agentflow.view.terminal import send


def run(arguments: Sequence[str]) -> int:
    """Run one command; every error ends here as a message on stderr and a code."""
    try:
        code = int(app(list(arguments), prog_name="agentflow", standalone_mode=False) or 0)
    except TyperException as error:
        code = _misused(error)
    except AgentflowError as error:
        code = _say(str(error), error.hint, error.exit_code)
    except SystemExit:  # the library's own answer to a reader who has gone
        code = Exit.VERIFIED
    except OSError as error:
        # what the library could not write, such as its help, still waits in stdout
        code = _failed(error) if send("", sys.stdout) else Exit.VERIFIED
    except KeyboardInterrupt:
        code = _say("interrupted", "", Exit.INTERRUPTED)
    except Exception:  # noqa: BLE001  # a bug, told as one
        code = _say(f"internal error; the report is in {_crash_report()}", "", Exit.INTERNAL)
    send("", sys.stdout)
    return code


def _failed(error: OSError) -> int:
    return _say(describe_os_error(error), "", Exit.CONFIG)


def _misused(error: TyperException) -> int:
    """Say what was wrong with the command line; where it was empty, what there is."""
    told = error.format_message()
    if told.startswith("Usage: "):
        send(f"{told}\n", sys.stderr)
        return Exit.CONFIG
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "agentflow"
    return _say(told, f"see {command} --help", Exit.CONFIG)


def _say(message: str, hint: str, code: Exit) -> int:
    from agentflow.redact import visible

    lines = [visible(f"agentflow: {message}"), *([f"  {visible(hint)}"] if hint else [])]
    send("\n".join(lines) + "\n", sys.stderr)
    return code


def _crash_report() -> Path:
    from agentflow.redact import redacted

    descriptor, name = tempfile.mkstemp(prefix="agentflow-crash-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(redacted(traceback.format_exc()))
    return Path(name)
