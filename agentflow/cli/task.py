"""`task` and `demo`: the main job from its words to its verdict."""

from pathlib import Path

import typer

from agentflow.cli.options import EVENTS, FOLDER, MODEL, NETWORK, NO_INPUT, NO_SANDBOX, ONE_JSON, YES
from agentflow.cli.printing import say


def task(
    words: list[str] | None = typer.Argument(
        None, metavar="TEXT", help="What is to be done; - reads it from stdin."
    ),
    model: str | None = MODEL,
    max_iterations: int | None = typer.Option(
        None, "--max-iterations", min=1, max=1000, metavar="N", help="Tries to pass the checks. [default: 10]"
    ),
    max_cost: float | None = typer.Option(
        None, "--max-cost", min=0, metavar="USD", help="What the whole task may cost."
    ),
    max_tokens: int | None = typer.Option(
        None, "--max-tokens", min=1, metavar="N", help="What the whole task may read and write."
    ),
    timeout: float | None = typer.Option(
        None, "--timeout", min=0.1, metavar="S", help="Seconds the whole task may take."
    ),
    skip_check: list[str] | None = typer.Option(
        None, "--skip-check", metavar="NAME", help="Do without a check; recorded, and never exit code 0."
    ),
    reason: str = typer.Option("", "--reason", metavar="R", help="Why a check is skipped."),
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    json: bool = ONE_JSON,
    events: str | None = EVENTS,
    pause_after: str | None = typer.Option(
        None, "--pause-after", metavar="PHASE", help="Wait after this phase until `resume`."
    ),
    review: bool | None = typer.Option(
        None,
        "--review/--no-review",
        help="Have the change reviewed, or not. [default: as its class requires]",
    ),
    sequential: bool = typer.Option(
        False, "--sequential", help="Review first and verify then, instead of side by side."
    ),
    context: bool = typer.Option(
        False, "--context", help="Use what `explore` found, if it is complete and not too old."
    ),
    stream: bool = typer.Option(False, "--stream", help="Show what a live model says as it comes."),
    folder: Path = FOLDER,
) -> int:
    """Do a task, and prove it by the checks. The roles explore, plan, implement, review and verify.

    The text may be unquoted words; options may stand before or after it. Exit code 0 means verified.
    """
    from agentflow.cli.boundary import Wish
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.words import consent_of, phase_of, refuse_options, text_of
    from agentflow.core.allowance import Budget
    from agentflow.workflow.overrides import overrides_of

    refuse_options(words or [], task)
    job = Job(
        text=text_of(words or []),
        model=model,
        max_iterations=max_iterations,
        json=json,
        events=events,
        consent=consent_of(yes=yes, no_input=no_input),
        pause_after=phase_of(pause_after),
        stream=stream,
        wish=Wish(no_sandbox=no_sandbox, network=network),
        review=review,
        sequential=sequential,
        context=context,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=timeout),
        overrides=overrides_of(skip_check or [], reason),
    )
    return launch(folder, job)


def demo(
    target: Path | None = typer.Argument(
        None, metavar="DIR", help="Where to put the repository; must be empty."
    ),
    json: bool = ONE_JSON,
) -> int:
    """Mend a real bug in a bundled example. The embedded model does it, without key and network."""
    from agentflow.cli.boundary import Wish
    from agentflow.cli.demo import make_demo
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.show import evidence

    folder = make_demo(target)
    code = launch(
        folder, Job(text="make the failing tests pass", model="repair", json=json, wish=Wish(must_run=True))
    )
    if not json:
        say()
        evidence(task_id=None, evidence_id=None, export=None, json=False, folder=folder)
    return code
