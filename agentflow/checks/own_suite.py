"""The tests that a project itself runs: with pytest by tox, nox, its CI or a Makefile, in that order."""

import posixpath
import re
import shlex
from collections.abc import Iterator

from agentflow.checks.repository import Repository
from agentflow.core.regex import regex

_INVOKED = regex(
    r"(?m)^(?![^\n]*\b(?:name:|(?:install|echo|add)\b))[ \t]*(?:- )?(?:run:[ \t]*)?(?:[\w./=:{}-]+[ \t]+)*?"
    r"(?<![\w./-])pytest(?P<words>(?:[ \t][^\n#&|;]*)?)$"
)
_CONTINUED = regex(r"\\\n[ \t]*")
_POSITIONAL = regex(r"\{posargs:?([^{}]*)\}|\{toxinidir\}/?")
_SESSION = regex(r"session\.run\(([^()]*)\)")
_STRING = regex(r"[\"']([^\"'\n]*)[\"']")
_WORKFLOWS = regex(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml")
_KEPT = ("--doctest-modules", "--doctest-glob", "--import-mode", "-m")
"""The options that decide which tests there are."""
_OTHERS = ("-k", "-c", "--rootdir", "--pyargs", "--deselect", "--lf", "--ff", "--collect-only", "--co")
"""Those after which it is hardly the whole suite."""
_VALUED = (
    *("-m", "-n", "-p", "-W", "-o", "-r", "--cov", "--cov-report", "--cov-config", "--durations"),
    *("--timeout", "--junitxml", "--junit-xml", "--tb", "--dist", "--numprocesses", "--maxfail"),
    *("--doctest-glob", "--reruns", "--color", "--override-ini", "--import-mode", "--ignore"),
)
"""Those whose value may be a word of its own."""
_UNKNOWN = frozenset("{}$<>*`(")


def find_own_words(repository: Repository) -> tuple[str, ...]:
    """Return with what the project itself starts pytest, as far as that decides which tests there are.

    The first place that names pytest counts; where it does so in several ways, none is taken.
    """
    for text in _list_texts(repository):
        invoked = _INVOKED.finditer(_CONTINUED.sub(" ", text))
        ways = {_read_words(each["words"], repository) for each in invoked}
        if ways:
            return (ways.pop() if len(ways) == 1 else None) or ()
    return ()


def runs_in_ci(repository: Repository, program: str) -> bool:
    texts = (repository.read(name) for name in repository.files if _WORKFLOWS.fullmatch(name))
    return any(re.search(rf"(?<![\w.-]){re.escape(program)}(?![\w.-])", text) for text in texts)


def _list_texts(repository: Repository) -> Iterator[str]:
    yield repository.read_ini("tox.ini").get("testenv", "commands", fallback="")
    sessions = (_STRING.findall(said) for said in _SESSION.findall(repository.read("noxfile.py")))
    yield "\n".join(map(shlex.join, sessions))
    yield "\n".join(repository.read(name) for name in repository.files if _WORKFLOWS.fullmatch(name))
    yield "\n".join(recipe for *_, recipe in repository.tasks)


def _read_words(text: str, repository: Repository) -> tuple[str, ...] | None:
    try:
        words = iter(shlex.split(_POSITIONAL.sub(r"\1", text)))
    except ValueError:
        return None
    kept, places = list[str](), list[str]()
    for word in words:
        option, _, value = word.partition("=")
        if option in _OTHERS or "::" in word or _UNKNOWN & {*word}:
            return None
        if option in _VALUED and not value:
            value = next(words, "")
        if option in (*_KEPT, "--ignore"):
            said = f" {shlex.quote(value)}" if option == "-m" else f"={value}" if value else ""
            (kept if option in _KEPT else places).append(f"{option}{said}")
        elif not word.startswith("-"):
            places.append(posixpath.normpath(word))
    named = [place for place in places if not place.startswith("-") and place != "."]
    is_there = all(
        any(name == place or name.startswith(f"{place}/") for name in repository.files) for place in named
    )
    return (*sorted(kept), *(place for place in places if place != ".")) if is_there else None
