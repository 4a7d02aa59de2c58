"""`task` and `demo`: the main job from its words to its verdict."""

from pathlib import Path

import typer

from agentflow.cli.options import (
    EVENTS,
    FOLDER,
    MAX_COST,
    MAX_TOKENS,
    MODEL,
    NETWORK,
    NO_INPUT,
    NO_SANDBOX,
    ONE_JSON,
    STREAM,
    TIMEOUT,
    YES,
)
from agentflow.cli.printing import say


def task(
    words: list[str] | None = typer.Argument(
        None, metavar="TEXT", help="What is to be done; - reads it from stdin."
    ),
    model: str | None = MODEL,
    max_iterations: int | None = typer.Option(
        None, "--max-iterations", min=1, max=1000, metavar="N", help="Tries to pass the checks. [default: 10]"
    ),
    max_cost: float | None = MAX_COST,
    max_tokens: int | None = MAX_TOKENS,
    timeout: float | None = TIMEOUT,
    class_name: str | None = typer.Option(
        None,
        "--class",
        metavar="CLASS",
        help="trivial, exploratory, implementation, complex, research or question. [default: by the words]",
    ),
    skip_check: list[str] | None = typer.Option(
        None,
        "--skip-check",
        metavar="NAME",
        help="Skip a check. This is recorded, and the result is at best exit code 4.",
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
    stream: bool = STREAM,
    folder: Path = FOLDER,
) -> int:
    """Carry out a task and verify the result. The repository's own checks decide, not a model.

    The text may be unquoted words; options may stand before or after it, and behind -- all is text.
    Exit code 0 means verified.
    """
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.words import class_named, consent_of, phase_of, text_of
    from agentflow.core.pending import Budget
    from agentflow.verdict.overrides import overrides_of

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
        named_class=class_named(class_name),
        review=review,
        sequential=sequential,
        context=context,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=timeout),
        overrides=overrides_of(skip_check or [], reason),
    )
    return launch(folder, job)


def ask(
    words: list[str] | None = typer.Argument(
        None, metavar="TEXT", help="What you want to know; - reads it from stdin."
    ),
    model: str | None = MODEL,
    max_cost: float | None = MAX_COST,
    max_tokens: int | None = MAX_TOKENS,
    timeout: float | None = TIMEOUT,
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    json: bool = ONE_JSON,
    events: str | None = EVENTS,
    stream: bool = STREAM,
    folder: Path = FOLDER,
) -> int:
    """Ask about this repository. The explorer answers; no file is changed, whatever the words.

    The text may be unquoted words; options may stand before or after it, and behind -- all is text.
    Exit code 0 means answered.
    """
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.words import consent_of, text_of
    from agentflow.core.pending import Budget
    from agentflow.routing.classify import QUESTION

    job = Job(
        text=text_of(words or [], example="agentflow ask where are discounts computed?"),
        model=model,
        json=json,
        events=events,
        consent=consent_of(yes=yes, no_input=no_input),
        stream=stream,
        wish=Wish(no_sandbox=no_sandbox),
        named_class=QUESTION,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=timeout),
    )
    return launch(folder, job)


def demo(
    target: Path | None = typer.Argument(
        None, metavar="DIR", help="Where to put the repository; must be empty."
    ),
    json: bool = ONE_JSON,
) -> int:
    """Fix a real bug in a bundled example. The built-in repair engine does it, without key or network."""
    from agentflow.api.boundary import Wish
    from agentflow.cli.demo import make_demo
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.show import evidence
    from agentflow.store.reading import find

    folder = make_demo(target)
    code = launch(
        folder, Job(text="make the failing tests pass", model="repair", json=json, wish=Wish(must_run=True))
    )
    if not json:
        say()
        evidence(task_id=find(folder, None).name, evidence_id=None, export=None, json=False, folder=folder)
    return code
