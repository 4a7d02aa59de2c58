"""`ci`: a pull request verified again without a model, and a task that an issue asks for.

The file in which GitHub describes the event says which; no text of it reaches a shell.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import FOLDER, MODEL, NO_SANDBOX, read_words
from agentflow.cli.printing import say, show, write_result
from agentflow.core.errors import ConfigError, Exit
from agentflow.core.pending import Consent
from agentflow.core.record import Record, encode
from agentflow.parse import decode

if TYPE_CHECKING:
    from agentflow.ci.review import ReviewRemark
    from agentflow.workspace.git import Git

BASE = typer.Option(
    "", "--base", metavar="REF", help="Check the commits since this one. [default: the pull request's base]"
)
SARIF = typer.Option(None, "--sarif", metavar="FILE", help="Write the findings as SARIF.")
SUMMARY = typer.Option(
    None,
    "--summary",
    metavar="FILE",
    help="Add the Markdown report to this file. [default: $GITHUB_STEP_SUMMARY]",
)
REQUIRE = typer.Option(False, "--require", help="Exit with 1 if no commit names a task.")
LABEL = typer.Option("agentflow", "--label", metavar="NAME", help="The issue label that starts a task.")
_MOST_BYTES = 20_000_000


class CiEvent(Record):
    """A pull request, a label put on an issue, or neither."""

    base: str = ""
    """The commit that a pull request is compared with."""
    description: str = ""
    """The text of a pull request."""
    issue: int = 0
    """The number of the issue that was given a label; 0 for none."""
    label: str = ""
    request: str = ""
    """The title and the text of that issue."""

    @property
    def branch(self) -> str:
        """The branch for the change that an issue asks for; made of its number alone."""
        return f"agentflow/issue-{self.issue}"


def _read_event(environ: Mapping[str, str]) -> CiEvent:
    """Return the event that started this job, or an empty one outside of GitHub. Raises ConfigError."""
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return CiEvent()
    try:
        with Path(path).open("rb") as file:
            told: object = decode(dict[str, object], file.read(_MOST_BYTES), path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    number = _find(told, "issue", "number")
    if _text(told, "action") != "labeled" or not isinstance(number, int):
        base, description = _text(told, "pull_request", "base", "sha"), _text(told, "pull_request", "body")
        return CiEvent(base=base, description=description)
    request = f"{_text(told, 'issue', 'title')}\n\n{_text(told, 'issue', 'body')}".strip()
    return CiEvent(issue=number, label=_text(told, "label", "name"), request=request)


def _find(event: object, *keys: str) -> object:
    """Return the value under a path of keys, or None."""
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def _text(event: object, *keys: str) -> str:
    found = _find(event, *keys)
    return found if isinstance(found, str) else ""


def ci(
    base: str = BASE,
    summary: Path | None = SUMMARY,
    sarif: Path | None = SARIF,
    require: bool = REQUIRE,
    label: str = LABEL,
    model: str | None = MODEL,
    no_sandbox: bool = NO_SANDBOX,
    folder: Path = FOLDER,
) -> int:
    """Re-verify the tasks that a pull request names, without a key or a model.

    Tasks are named by Agentflow-Task trailers of commits, or by the pull request's description; their records
    are in refs/agentflow, where `export --ref` keeps them. Exit code 4 means that no verified task accounts
    for some of the changed files. Started by a label on an issue, it carries out what the issue says and
    commits it on a branch. Exit codes are those of `verify` and `task`.
    """
    from agentflow.workspace.git import open_repository

    git, event = open_repository(folder), _read_event(os.environ)
    if event.issue:
        return _work_on_issue(git, event, label, model, no_sandbox=no_sandbox)
    start = base or event.base
    if not start:
        raise ConfigError("the base of the pull request is not known", hint="agentflow ci --base origin/main")
    return _verify_again(git, event, start, (summary, sarif), is_required=require, no_sandbox=no_sandbox)


def _verify_again(
    git: "Git",
    event: CiEvent,
    base: str,
    targets: tuple[Path | None, Path | None],
    *,
    is_required: bool,
    no_sandbox: bool,
) -> int:
    """Run the records of the named tasks again and report the result."""
    from agentflow.api.boundary import Wish, describe_sandbox, open_sandbox
    from agentflow.ci.review import find_named_tasks, review_pull_request

    named = find_named_tasks(git, base, event.description)
    if not named:
        say("No commit of this pull request names an agentflow task, so nothing was verified.")
        return Exit.NOT_VERIFIED if is_required else Exit.VERIFIED
    sandbox = open_sandbox(git, Wish(no_sandbox=no_sandbox))
    say(describe_sandbox(sandbox))
    review = review_pull_request(sandbox, git, base, named, show)
    _tell(review.remarks, review.text, targets)
    return review.exit_code


def _tell(remarks: "Sequence[ReviewRemark]", text: str, targets: tuple[Path | None, Path | None]) -> None:
    """Write summary and SARIF, and on GitHub an annotation for each remark."""
    from agentflow.ci.review import to_annotation, to_sarif

    summary, sarif = targets
    place = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        _append(Path(place), text)
    if sarif is not None:
        write_result(sarif, encode(to_sarif(remarks)).decode())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for remark in remarks:
            say(to_annotation(remark))


def _append(place: Path, text: str) -> None:
    try:
        with place.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write {place}: {error.strerror}") from None


def _work_on_issue(git: "Git", event: CiEvent, label: str, model: str | None, *, no_sandbox: bool) -> int:
    """Carry out what an issue asks for and commit it on a branch of its own, where it is verified."""
    from agentflow.api.boundary import Wish
    from agentflow.api.undo import commit_task
    from agentflow.ci.review import keep_record
    from agentflow.cli.launch import Job, launch
    from agentflow.store.reading import find

    if event.label != label:
        say(f"The issue did not get the label {label}, so there is nothing to do.")
        return Exit.VERIFIED
    job = Job(
        text=read_words([event.request]),
        model=model,
        plain=True,
        consent=Consent.NO,
        wish=Wish(no_sandbox=no_sandbox),
    )
    code = launch(git.root, job)
    if code == Exit.VERIFIED:
        committed = commit_task(git.root, branch=event.branch)
        ref = keep_record(git, find(git.root, None))
        say(f"committed  {committed.commit[:10]} on {event.branch}; its record is {ref}")
        if output := os.environ.get("GITHUB_OUTPUT"):
            _append(Path(output), f"branch={event.branch}\nrecord={ref}\n")
    return code
