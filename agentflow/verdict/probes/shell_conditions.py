"""Where new conditions and arms of shell scripts stand, and what records how they come out."""

import re
from collections.abc import Iterator

from agentflow.verdict.diff.conditions import Spot
from agentflow.verdict.same.comments import split_program

_WORD = re.compile(r"(?<![\w$./-])(?:if|then|elif|else|fi)(?![\w./=-])")
_BEGINS = re.compile(r"(?:^|[;&|({\n]|\b(?:then|else|do|if|elif|while|until)[ \t])[ \t]*$")
_JOIN = re.compile(r"&&|\|\|")
_LEFT = re.compile(
    r"[;({\n]|&&|\|\||(?<![>&])&(?![>&])|\b(?:if|elif|while|until|then|else|do|in)\b[ \t]|\)[ \t]"
)
_ARM = re.compile(r"(?:\bin\b|;;)\s*\(?(?P<arm>[^()\n;]+)\)")
_TESTS = re.compile(r"\[\[.*?\]\]|\(\(.*?\)\)", re.DOTALL)
"""Where `&&` joins no commands."""
_LEAVES = re.compile(r"\s*(?:\{\s*)?(?:return|exit)\b[ \t]*(?:[;}\n]|$|\$\?)|[^\n]*\$\?")
"""What needs the exit code of the command before."""


class ShellSpot(Spot):
    """A condition or an arm of a script."""

    puts: tuple[tuple[int, str], ...] = ()
    """What is put in where, with `{call}` for the call that records."""


def find_shell_spots(text: str) -> Iterator[ShellSpot]:
    """Yield the conditions of `if`, the commands before `&&` and `||`, and the arms of `case`."""
    parts = split_program("a.sh", text)
    if parts is None:
        return
    masked = "".join(
        re.sub(r"[^\n]", " " if kind == "comment" else "\x01", part) if kind != "code" else part
        for kind, part in parts
    )
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


def _find_ifs(text: str, masked: str) -> Iterator[ShellSpot]:
    """Yield each condition between `if` and `then`, once what follows where it fails is found."""
    opened = list[tuple[int, int]]()
    for found in _WORD.finditer(masked):
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
