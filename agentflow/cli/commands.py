"""The command line's table of contents."""

import typer

from agentflow.cli import (
    catalog,
    checks,
    config,
    doctor,
    exploring,
    init,
    permissions,
    routing,
    show,
    task,
    tasks,
    trust,
    undo,
    waiting,
)
from agentflow.cli.arguments import TextCommand

app = typer.Typer(
    name="agentflow",
    help="A multi-agent developer assistant that runs the checks itself and believes only them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def top(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit."),
) -> None:
    if version:
        from agentflow import __version__

        typer.echo(f"agentflow {__version__}")
        raise typer.Exit


app.command(name="task", cls=TextCommand)(task.task)
app.command(name="ask", cls=TextCommand)(task.ask)
app.command(name="demo")(task.demo)
app.command(name="explore")(exploring.explore)
app.command(name="resume")(waiting.resume)
app.command(name="answer", cls=TextCommand)(waiting.answer)
app.command(name="approve")(waiting.approve)
app.command(name="deny")(waiting.deny)
app.command(name="cancel")(waiting.cancel)
app.command(name="undo")(undo.undo)
app.command(name="verify")(checks.verify)
app.command(name="replay")(checks.replay)
app.command(name="tasks")(tasks.tasks)
app.command(name="status")(show.status)
app.command(name="log")(show.log)
app.command(name="evidence")(show.evidence)
app.command(name="route", cls=TextCommand)(routing.route)
app.command(name="init")(init.init)
app.command(name="check")(checks.check)
app.command(name="trust")(trust.trust)
app.command(name="config")(config.config)
app.command(name="doctor")(doctor.doctor)
app.add_typer(catalog.agents, name="agents")
app.add_typer(catalog.skills, name="skills")
app.add_typer(catalog.tools, name="tools")
app.add_typer(permissions.permissions, name="permissions")
