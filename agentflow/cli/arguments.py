"""Options that several commands share, and command lines whose text needs no quotes."""

import math
import sys
from collections.abc import Callable, Mapping
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from typer.core import TyperCommand

from agentflow.cli.printing import suggest
from agentflow.core.errors import UsageError
from agentflow.core.pending import Consent
from agentflow.core.record import Record
from agentflow.redact import redact_text
from agentflow.view.words import Detail

if TYPE_CHECKING:
    from typer._click.core import Context


class TextCommand(TyperCommand):
    """A command whose text may be unquoted words; a word that looks like an option has to be one."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Take options and words apart. Raises UsageError for a word that is neither."""
        if not args and self.no_args_is_help:
            return super().parse_args(ctx, args)
        known = {
            name: not getattr(option, "is_flag", False)
            for option in self.get_params(ctx)
            for name in (*option.opts, *option.secondary_opts)
            if name.startswith("-")
        }
        options, words = _separate(args, known, ctx.command_path)
        return super().parse_args(ctx, [*options, "--", *words])


def _separate(args: list[str], known: Mapping[str, bool], command: str) -> tuple[list[str], list[str]]:
    """Return the options with their values, and the words of the text.

    `known` says of each option whether it takes a value.
    """
    options: list[str] = []
    words: list[str] = []
    rest = iter(args)
    for word in rest:
        if word == "--":
            words += rest
        elif not _is_meant_as_option(word, known):
            words.append(word)
        elif _takes_next(word, known, command):
            value = next(rest, None)
            if value is None:
                raise UsageError(f"{word} needs a value", hint=f"see {command} --help")
            options += (word, value)
        else:
            options.append(word)
    return options, words


def _is_meant_as_option(word: str, known: Mapping[str, bool]) -> bool:
    """Return whether a word is meant as an option; a space in its name shows that it is quoted text."""
    if not word.startswith("-") or word == "-":
        return False
    is_attached = known.get(word[:2], False) and not word[2:3].isspace()
    return is_attached or not any(map(str.isspace, word.partition("=")[0]))


def _takes_next(word: str, known: Mapping[str, bool], command: str) -> bool:
    name, equals, _ = word.partition("=")
    if name in known:
        return known[name] and not equals
    if not word.startswith("--") and known.get(word[:2]) is not None:
        is_cluster = all(known.get(f"-{letter}") is False for letter in word[1:])
        if known[word[:2]] or is_cluster:
            return False
    hint = f"if it belongs to the text, quote the whole text or put -- before it: {command} -- TEXT"
    raise UsageError(f"unknown option {name}{suggest(name, known, cutoff=0.8)}", hint=hint)


def spread_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that has each field of a record among its parameters as an option of its own."""
    parameters, records = [], dict[str, type[Record]]()
    for parameter in signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not (isinstance(kind, type) and issubclass(kind, Record)):
            parameters.append(parameter)
            continue
        records[parameter.name] = kind
        parameters += (
            parameter.replace(name=field.name, annotation=field.type, default=field.default)
            for field in msgspec.structs.fields(kind)
        )

    def run(**given: Any) -> Any:
        made = {
            name: kind(**{key: given.pop(key) for key in kind.__struct_fields__})
            for name, kind in records.items()
        }
        return command(**given, **made)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = command.__doc__
    return run


def make_group() -> typer.Typer:
    """Return a group of commands, such as `skills`; its row in the table of commands has its help."""
    return typer.Typer(
        callback=_begin_group, no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )


def _begin_group() -> None:
    """Make typer treat even a single command as a group."""


def _refuse_nan(value: float | None) -> float | None:
    """Return the number of an option. Raises BadParameter for `nan`, which no bound refuses."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def take_number(name: str, purpose: str, metavar: str = "N", least: float = 0.1) -> Any:
    return typer.Option(None, name, min=least, callback=_refuse_nan, metavar=metavar, help=purpose)


TASK = typer.Argument(None, metavar="TASK", help="A task's id or its beginning; the newest by default.")
FOLDER = typer.Option(Path(), "-C", help="The repository.", metavar="DIR")
MODEL = typer.Option(
    None,
    "--model",
    help="repair, anthropic, a model id, openai/ID, deep=ID,fast=ID, or script:FILE.",
    metavar="M",
)
YES = typer.Option(False, "--yes", help="Use defaults, and approve calls that a rule asks about.")
NO_INPUT = typer.Option(False, "--no-input", help="Use defaults, and deny calls that a rule asks about.")
NO_SANDBOX = typer.Option(False, "--no-sandbox", help="Run commands without a sandbox, with all your rights.")
NETWORK = typer.Option(False, "--network", help="Let the implementer and the checks reach the network.")
QUIET = typer.Option(False, "-q", "--quiet", help="Print only the verdict.")
VERBOSE = typer.Option(False, "-v", "--verbose", help="Show every step and the whole report.")
PLAIN = typer.Option(False, "--plain", help="Never redraw a line on the terminal.")
JSON = typer.Option(False, "--json", help="Print JSON.")
ONE_JSON = typer.Option(False, "--json", help="Print one JSON object on stdout and nothing else.")


MAX_TASK_CHARS = 100_000


def read_words(words: list[str], example: str = "agentflow task make the failing tests pass") -> str:
    """Return the text of a task; `-` alone reads it from stdin. Raises UsageError."""
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    text = redact_text(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").strip())
    if not text:
        raise UsageError("say what to do", hint=f"for example: {example}")
    if len(text) > MAX_TASK_CHARS:
        raise UsageError(f"the text is longer than {MAX_TASK_CHARS:,} characters")
    return text


def choose_consent(*, yes: bool, no_input: bool) -> Consent:
    """Return the consent that the switches give. Raises UsageError for both switches."""
    if yes and no_input:
        raise UsageError("--yes and --no-input exclude each other")
    return Consent.YES if yes else Consent.NO if no_input else Consent.SUSPEND


def choose_detail(*, quiet: bool, verbose: bool) -> Detail:
    if quiet and verbose:
        raise UsageError("-q and -v exclude each other")
    return Detail.VERDICT if quiet else Detail.FULL if verbose else Detail.BRIEF
