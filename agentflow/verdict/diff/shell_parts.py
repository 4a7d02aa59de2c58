"""Conditions, arms, defaults and filters of shell scripts."""

import re
from collections.abc import Iterable, Iterator

from agentflow.verdict.diff.conditions import Spot
from agentflow.verdict.tokens import split_program

_SHELL_WORD = re.compile(r"(?<![\w$./-])(?:if|then|elif|else|fi)(?![\w./=-])")
_BEGINS = re.compile(r"(?:^|[;&|({\n]|\b(?:then|else|do|if|elif|while|until)[ \t])[ \t]*$")
_JOIN = re.compile(r"&&|\|\|")
_LEFT = re.compile(
    r"[;({\n]|&&|\|\||(?<![>&])&(?![>&])|\b(?:if|elif|while|until|then|else|do|in)\b[ \t]|\)[ \t]"
)
_ARM = re.compile(r"(?:\bin\b|;;)\s*\(?(?P<arm>[^()\n;]+)\)")
_TESTS = re.compile(r"\[\[.*?\]\]|\(\(.*?\)\)", re.DOTALL)
"""Brackets in which `&&` joins no commands."""
_LEAVES = re.compile(r"\s*(?:\{\s*)?(?:return|exit)\b[ \t]*(?:[;}\n]|$|\$\?)|[^\n]*\$\?")
"""Commands that need the exit code of the command before."""
_DEFAULT = re.compile(r"(?<!\\)\$\{(?P<name>\w+)(?P<sign>:?[-=+])(?!\})")
"""What stands for a variable that has no value; nothing is chosen where that is nothing, too."""
_DEFAULT_WORDS = ("does not take its default", "takes its default")
_NOT_EXPANDED = re.compile(r"'|<<-?[ \t]*['\"]")
_FILTER = re.compile(
    r"(?<![|>])\|(?![|&])\s*(?P<it>(?:awk|cut|grep|head|sed|sort|tail|tr|uniq)\b(?![-./=])[^|;&()\n]*)"
)
"""A program between two pipes, or behind one, that lets through what it reads or something else."""


class ShellSpot(Spot):
    """A condition or an arm of a script."""

    puts: tuple[tuple[int, str], ...] = ()
    """The texts that are put in, each with its place, and `{call}` for the call that records.

    `{filter}` calls what follows, and records whether it changes what it reads.
    """


def find_shell_spots(text: str) -> Iterator[ShellSpot]:
    """Yield the conditions of `if`, the commands before `&&` and `||`, and the arms of `case`."""
    parts = split_program("a.sh", text)
    if parts is None:
        return
    masked = "".join(_mask(kind, part) for kind, part in parts)
    yield from _find_defaults(text, parts)
    yield from _find_filters(text, masked)
    masked = _TESTS.sub(lambda found: re.sub(r"[^\n]", "\x02", found[0]), masked)
    yield from _find_ifs(text, masked)
    for found in _ARM.finditer(masked):
        if found["arm"].strip() != "esac":
            puts = ((found.end(), " {call} r;"),)
            begin = text.rfind("\n", 0, found.start("arm")) + 1
            around = (begin, found.end())
            yield ShellSpot(start=found.start("arm"), end=found.end(), around=around, is_arm=True, puts=puts)
    for found in _JOIN.finditer(masked):
        begin = max((each.end() for each in _LEFT.finditer(masked, 0, found.start())), default=0)
        if masked[begin : found.start()].strip() and not _LEAVES.match(masked, found.end()):
            put = " && {call} 1 || ! {call} 0 "
            around = (begin, found.end())
            yield ShellSpot(start=begin, end=found.start(), around=around, puts=((found.start(), put),))


def _mask(kind: str, part: str) -> str:
    """Return a part with signs for what is no code; a document in the script keeps its lines."""
    if kind == "code":
        return part
    return re.sub(
        r"[^\n]" if part.startswith("<<") else r"[\s\S]", " " if kind == "comment" else "\x01", part
    )


def _find_defaults(text: str, parts: Iterable[tuple[str, str]]) -> Iterator[ShellSpot]:
    """Yield the variables that have something in their place for the case that they are not set, or set."""
    start = 0
    for kind, part in parts:
        is_expanded = kind == "code" or (kind == "string" and not _NOT_EXPANDED.match(part))
        for found in _DEFAULT.finditer(part) if is_expanded else ():
            begin, end = start + found.start(), text.find("}", start + found.end()) + 1
            is_default = not found["sign"].endswith("+")
            asked = f"{found['name']}{found['sign'][:-1]}+1"
            yield ShellSpot(
                start=begin,
                end=end,
                around=(begin, end),
                words=_DEFAULT_WORDS if is_default else ("is set", "is not set"),
                puts=((begin, f"$({{call}} ${{{{{asked}}}}})"),),
            )
        start += len(part)


def _find_filters(text: str, masked: str) -> Iterator[ShellSpot]:
    """Yield the programs that read what another one prints, and that may always let all of it through."""
    arms = {at for found in _ARM.finditer(masked) for at in range(*found.span("arm"))}
    for found in (each for each in _FILTER.finditer(masked) if each.start() not in arms):
        begin, end = found.start("it"), found.start("it") + len(found["it"].rstrip())
        yield ShellSpot(
            start=begin,
            end=end,
            around=(found.start(), end),
            told=" ".join(text[begin:end].split()),
            words=("changes something", ""),
            puts=((begin, "{filter} "),),
        )


def _find_ifs(text: str, masked: str) -> Iterator[ShellSpot]:
    """Yield each condition between `if` and `then`, once what follows where it fails is found."""
    opened = list[tuple[int, int]]()
    for found in _SHELL_WORD.finditer(masked):
        if not _BEGINS.search(masked, max(0, found.start() - 80), found.start()):
            continue
        word, place = found[0], found.end()
        if word == "if":
            opened.append((place, 0))
        elif opened and word == "then":
            opened[-1] = (opened[-1][0], found.start())
        elif opened:
            begin, then = opened.pop()
            if then and not _LEAVES.match(masked, place):
                is_last = word == "fi"
                no = (found.start(), "else {call} 0; ") if is_last else (place, " {call} 0;")
                yield _to_spot(text, begin, then, no)
            if word != "fi":
                opened.append((place, 0))


def _to_spot(text: str, begin: int, then: int, no: tuple[int, str]) -> ShellSpot:
    end = begin + len(text[begin:then].rstrip(" \t\n;"))
    return ShellSpot(start=begin, end=end, around=(begin, then), puts=((then + 4, " {call} 1;"), no))
