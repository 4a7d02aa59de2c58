"""Whether a task's words ask for other behaviour, or for text, names, form or tests alone."""

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePosixPath

from agentflow.core.regex import regex
from agentflow.routing.clauses import drop_quoted


class Wanted(StrEnum):
    """What a change has to make different, as far as the words of its task say."""

    BEHAVIOUR = "behaviour"
    """What the program does: a change after which it provably does the same is none."""
    FORM = "form"
    """Documents, comments, annotations, names, layout, structure or tests."""
    UNCLEAR = "unclear"


_NAME_IN_CODE = regex(r"`[^`\n]*`|\"[^\"\n]*\"|\b\w*(?:[_/.]+\w+)+/?|\b\w+\(\)?|\b[a-z]+[A-Z]\w*")
"""What the task calls code, text or a file by: a function `rename_comment` says nothing of the wish."""

_COMPANION = regex(
    r"(?:(?:,|;|\band\b|\bplus\b|^)\W*)?\b(?:with|add|write|includ(?:e|ing)|updat(?:e|ing)|document|cover)\b"
    r"(?:[^\w.,;!?\n]+(?!that\b|for\b|which\b)\w+){0,4}?[^\w.,;!?\n]+"
    r"(?:tests?|docs|documentation|changelog|docstrings?)\b(?![/.]\w)[^.;!?\n]*",
    re.IGNORECASE,
)
"""What comes with another wish: "…, with a test", "and add tests and documentation"."""

_LEADS = regex(
    r"\W*(?:please\W+)?(?:refactor\w*|renam\w+|document|describe|explain|mention|reformat|format|reindent|annotate"
    r"|restructure|reorgani[sz]e|move|extract|inline|simplify|tidy|clean|reword|rephrase|translate|cover|comment|say|note"
    r"|use|wrap|type|parametri[sz]e|sharpen|split|convert|replace|switch|remove|delete|drop)\b",
    re.IGNORECASE,
)
"""An order that begins so is about text or form, whatever it names."""

_FORM = regex(
    r"\b(?:docs?|document(?:s|ed|ation)?|docstrings?|comments?|readme|changelog|guides?|manual|typos?|spelling"
    r"|wording|grammar|prose|licen[cs]e|copyright|authors?|examples?|hints?|annotat\w+|typing|typed|mypy|pyright"
    r"|renam\w+|naming|constants?|magic|quotes|f-?strings?|reformat\w*|format(?:ting|ter)|indent\w*|whitespace"
    r"|blank lines?|styles?|lint\w*|isort|ruff|imports|unused|dead code|refactor\w*|restructur\w*|readab\w+"
    r"|tid(?:y|ied)|clean\w*|extract\w*|inline|simplif\w+|duplicat\w+|moderni[sz]\w+|tests?|coverage"
    r"|(?:pull|factor|hoist)(?:s|ed|ing)?\b[^.;!?\n]{0,40}?\b(?:out|up)\b[^.;!?\n]{0,40}?\b(?:in|into|as|of))\b",
    re.IGNORECASE,
)

_STAYS = regex(
    r"\b(?:behaviou?r (?:(?:must|should|has to) )?(?:stays?|remains?|be|is) (?:kept )?(?:exactly )?"
    r"(?:the same|identical|as it (?:is|was)|unchanged)|same behaviou?r"
    r"|(?:without|no) (?:any )?(?:changes? (?:of|in|to) (?:the )?)?behaviou?r(?:al)?(?: changes?)?)\b"
    r"(?! (?:without|unless|otherwise|if|when|where|elsewhere)\b)",
    re.IGNORECASE,
)
"""Who says so of the whole change, in an order about structure, wants no other behaviour."""

_SPEED = regex(r"\b(?:fast(?:er)?|slow(?:ly)?|speed\w*|performan\w+|optimi[sz]\w+|memory)\b", re.IGNORECASE)
"""A faster program does the same: no proof of equal behaviour shows that it is faster."""

_DEEDS = regex(
    r"\b(?:bugs?|crash\w*|rais(?:e|es|ing)|returns?|off.by.one|tracebacks?|exceptions?|support\w*|allow\w*|accept\w*"
    r"|handl(?:e|es|ing)|reject\w*|pars(?:e|es|ing|er)|los(?:e|es|ing)|ignor\w+|wrongly|options?"
    r"|flags?)\b",
    re.IGNORECASE,
)
"""Words for what a program does."""

_WISHES = regex(
    r"\b(?:fix|mend|repair|correct|resolve|debug|add|implement|introduce|give|let|enable|disable|prevent"
    r"|validate|escape|should|must|may not|cannot|can't|does not|doesn't|do not|don't|is not|isn't|possible"
    r"|wrong|broken|missing|fails?)\b",
    re.IGNORECASE,
)
"""Words that want something to be otherwise, of text as well as of a program."""


_REPAIRS = regex(r"\b(?:fix|mend|repair|correct|resolve|debug)\b", re.IGNORECASE)
"""Who wants a test mended may mean the code that it tries."""

_TEST_NAME = regex(r"(?<![\w/])(?:test_\w+|\w+_test)\b(?![./]\w)")
"""A test as people name it, which is no file."""


_DOCUMENTS = regex(
    r"\b(?:docs|document(?:s|ed|ing|ation)?|readme|changelog|docstrings?|guide|manual)\b|\.(?:md|rst|adoc)\b",
    re.IGNORECASE,
)


def drop_companions(text: str) -> str:
    """Return a text without the tests and documents that it wants beside something else."""
    return _COMPANION.sub(" ", text)


def asks_for_documents(task: str) -> bool:
    return bool(_DOCUMENTS.search(drop_quoted(task)))


def find_wanted(task: str, texts: Iterable[str] = (), checks: Iterable[str] = ()) -> Wanted:
    """Return what a task asks for; one that names a changed file which holds no code asks for text.

    One that names a changed file of the checks may mean that file, or the code that it tries.
    """
    text = drop_quoted(task)
    if _names_one(_keep_own_wish(text), texts):
        return Wanted.FORM
    wanted = _find_by_words(text)
    return Wanted.UNCLEAR if wanted is Wanted.BEHAVIOUR and _names_one(text, checks) else wanted


def _keep_own_wish(text: str) -> str:
    rest = drop_companions(text)
    return rest if regex(r"\w").search(rest) else text


def _names_one(text: str, paths: Iterable[str]) -> bool:
    names = {name for path in paths for name in (PurePosixPath(path).name, PurePosixPath(path).stem)}
    return any(name.lower() in text.lower() for name in names if len(name) > 2)


def _find_by_words(text: str) -> Wanted:
    names_test = bool(_TEST_NAME.search(text))
    text = _NAME_IN_CODE.sub(" ", text)
    text = _keep_own_wish(text)
    if _LEADS.match(text):
        return Wanted.FORM
    is_deed = bool(_DEEDS.search(text) or (names_test and _REPAIRS.search(text)))
    if names_test or _FORM.search(text):
        return Wanted.UNCLEAR if is_deed and not _STAYS.search(text) else Wanted.FORM
    is_plain = (is_deed or _WISHES.search(text)) and not _SPEED.search(text)
    return Wanted.BEHAVIOUR if is_plain else Wanted.UNCLEAR
