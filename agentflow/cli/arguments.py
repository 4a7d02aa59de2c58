"""The command line of a command that takes a text: options before, behind and between its words."""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from agentflow.core.errors import UsageError

if TYPE_CHECKING:
    from typer._click.core import Context

LATER = ("--no-memory",)
"""Options that the published command has and this version does not."""


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
    """Return whether a word begins as an option does; a gap in its name tells that it was quoted."""
    if not word.startswith("-") or word == "-":
        return False
    is_attached = known.get(word[:2], False) and not word[2:3].isspace()
    return is_attached or not any(map(str.isspace, word.partition("=")[0]))


def _takes_next(word: str, known: Mapping[str, bool], command: str) -> bool:
    """Return whether the next word is the value of an option. Raises UsageError for an unknown one."""
    name, equals, _ = word.partition("=")
    if name in known:
        return known[name] and not equals
    if not word.startswith("--") and known.get(word[:2]) is not None:
        is_cluster = all(known.get(f"-{letter}") is False for letter in word[1:])
        if known[word[:2]] or is_cluster:
            return False
    if name in LATER:
        raise UsageError(f"{name} is not in this version")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    raise UsageError(
        f"unknown option {name}" + (f"; did you mean {near[0]}?" if near else ""),
        hint=f"if it belongs to the text, quote the whole text or put -- before it: {command} -- TEXT",
    )
