"""The commands: their table, how one of them is found and run, and what an error becomes."""

import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from agentflow import __version__
from agentflow.cli.printing import say_error, suggest, tell_error
from agentflow.core.errors import AgentflowError, Exit, UsageError, advise_on_os_error, describe_os_error
from agentflow.redact import redact_text, to_one_line
from agentflow.view.text import send

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import HelpFormatter
    from typer._click.core import Context


_TABLE = Path(__file__).with_name("commands.txt")
"""The groups; in each its commands, with what stands after a command in its example, and their summaries.

The second word is the module in `agentflow/cli/`, with the function or group after a colon where its name is
not the command's.
"""


class CommandRow(NamedTuple):
    name: str
    module: str
    example: str
    summary: str


def _read_table() -> Iterator[tuple[str, CommandRow]]:
    group, rows = "", iter(_TABLE.read_text("utf-8").splitlines())
    for row in rows:
        if not row.startswith(" "):
            group = row
            continue
        name, module, *words = row.split(maxsplit=2)
        yield group, CommandRow(name, module, " ".join(("agentflow", name, *words)), next(rows).strip())


GROUPS: dict[str, list[CommandRow]] = {}
for _group, _row in _read_table():
    GROUPS.setdefault(_group, []).append(_row)
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
_EVERYDAY = (
    *("demo", "init", "task", "ask", "plan", "status"),
    *("why", "evidence", "resume", "commit", "undo", "verify"),
)
_ALL = ["help", "all"]


class _Commands(TyperGroup):
    """The commands in their groups; only the one that runs is imported."""

    def list_commands(self, _ctx: "Context") -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: "Context", cmd_name: str) -> "ClickCommand | None":
        found = COMMANDS.get(cmd_name)
        return None if found is None else _build(found)

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, ClickCommand | None, list[str]]":
        """Return the named command. Raises UsageError with the name that was meant."""
        if args[0].startswith("-") or args[0] in COMMANDS:
            return super().resolve_command(ctx, args)
        is_text = len(" ".join(args).split()) > 1 and args[1:] != ["--help"]
        start = f"to start a task: agentflow task {shlex.join(args)}"
        hint = start if is_text else "see agentflow help all" if args[1:] else "see agentflow --help"
        raise UsageError(
            f"there is no command {to_one_line(args[0], 60)}{suggest(args[0], COMMANDS)}", hint=hint
        )

    def format_commands(self, _ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write nothing: the commands stand above the options."""

    def format_help_text(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        super().format_help_text(ctx, formatter)
        everyday = {"Every day": [COMMANDS[name] for name in _EVERYDAY]}
        width = max(map(len, COMMANDS))
        for title, commands in (GROUPS if ctx.obj == _ALL else everyday).items():
            with formatter.section(title):
                formatter.write_dl([(each.name.ljust(width), each.summary) for each in commands])


app = typer.Typer(
    name="agentflow",
    cls=_Commands,
    help=(
        "A command-line developer assistant that proves each result with the repository's own checks. "
        "Without a command it opens a session."
    ),
    epilog="`agentflow help all` lists all commands, `agentflow help COMMAND` explains one of them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def top(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit."),
    goes_on: bool = typer.Option(False, "--continue", help="Continue the newest session of this repository."),
    plain: bool = typer.Option(False, "--plain", help="In a session: no colours, menus or redrawn lines."),
) -> int | None:
    if version:
        typer.echo(f"agentflow {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is not None:
        return None
    if not ((sys.stdin.isatty() and sys.stdout.isatty()) or goes_on or plain):
        send(f"{context.get_help()}\n", sys.stderr)
        return Exit.CONFIG
    from agentflow.cli.session import open_session

    return open_session(Path(), run_command, goes_on=goes_on, plain=plain)


def _build(command: CommandRow) -> "ClickCommand":
    """Import a command and return it as typer runs it; one that takes words takes them unquoted."""
    module, _, function = command.module.partition(":")
    found: typer.Typer | Callable[..., object] = getattr(
        import_module(f"agentflow.cli.{module}"), function or command.name
    )
    if isinstance(found, typer.Typer):
        built = get_command(found)
        built.help = command.summary
    else:
        from agentflow.cli.arguments import TextCommand, spread_options

        is_text = "words" in signature(found).parameters
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(cls=TextCommand if is_text else None)(spread_options(found))
        built = get_command(alone)
        built.help = getdoc(found) or command.summary
    built.name = command.name
    built.epilog = f"Example: {command.example}"
    return built


def run_command(arguments: Sequence[str]) -> int:
    """Run one command; every error ends here as a message on stderr and a code."""
    try:
        words = list(arguments)
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"] if words != _ALL else ["--help"]
        code = int(app(words, prog_name="agentflow", standalone_mode=False, obj=list(arguments)) or 0)
    except TyperException as error:
        code = _report_misuse(error, arguments)
    except AgentflowError as error:
        code = tell_error(error)
    except SystemExit:  # the library's own answer to a reader who has gone
        code = Exit.VERIFIED
    except OSError as error:
        # what the library could not write, such as its help, still waits in stdout
        code = Exit.CONFIG if send("", sys.stdout) else Exit.VERIFIED
        if code:
            say_error(describe_os_error(error), advise_on_os_error(error), code)
    except KeyboardInterrupt:
        code = say_error("interrupted", "", Exit.INTERRUPTED)
    except Exception:  # noqa: BLE001  # a bug, told as one
        code = _report_crash()
    send("", sys.stdout)
    return code


def _report_misuse(error: TyperException, arguments: Sequence[str]) -> int:
    message = error.format_message()
    message = message.replace("a valid float range", "a number").replace(
        "a valid int range", "a whole number"
    )
    if message.startswith("Usage: "):
        send(f"{message}\n", sys.stderr)
        return Exit.CONFIG
    context = getattr(error, "ctx", None)
    named = " ".join(("agentflow", *(word for word in arguments[:1] if word in COMMANDS)))
    return say_error(message, f"see {context.command_path if context else named} --help", Exit.CONFIG)


def _report_crash() -> int:
    report = redact_text(traceback.format_exc())
    try:
        descriptor, name = tempfile.mkstemp(prefix="agentflow-crash-", suffix=".txt", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(report)
    except OSError as error:
        said = f"internal error; its report cannot be written: {describe_os_error(error)}"
        return say_error(said, report.rstrip(), Exit.INTERNAL)
    return say_error(f"internal error; the report is in {name}", "", Exit.INTERNAL)
