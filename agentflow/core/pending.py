"""Decisions of a person: pending items and their answers, skipped checks, and budgets."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from agentflow.core.errors import UsageError
from agentflow.core.evidence import CheckName
from agentflow.core.record import Record, encode


class PendingKind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"
    PLAN = "plan"
    ESCALATION = "escalation"
    SURFACE = "surface"


APPROVED = frozenset({PendingKind.APPROVAL, PendingKind.SURFACE})
"""The kinds that a person approves or denies; the others are answered."""
OWN_WORDS = "in your own words"
"""The end of an option that stands for the person's own words."""
_ASKED: Mapping[PendingKind, tuple[str, ...]] = {
    PendingKind.QUESTION: ("questions",),
    PendingKind.ESCALATION: ("options", "recommended"),
}
"""The input keys that a person sees as questions and options."""
_EDITS = dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit"), "edit")
_VERBS = {**_EDITS, "Write": "write", "Bash": "run", "WebFetch": "fetch", "WebSearch": "search"}


class Question(Record):
    """One question and its options, as a person sees them."""

    text: str
    options: tuple[str, ...]


class Answer(Record):
    """A person's decision about a pending item."""

    approved: bool
    text: str = ""
    """The reason of a denial, the choice or text of an answer."""
    input: dict[str, Any] | None = None
    """The input that the call is to be made with, where the person changed it."""
    by: str = ""
    """The person's name, or what decided in a person's place."""
    via: str = ""
    """Where a person decided, as the end of a sentence."""
    comment: str = ""
    at: str = ""
    tool: str | None = None
    asked: dict[str, Any] | None = None
    """The call's input as the model gave it; set once the decision is recorded."""
    question: str = ""
    """What was asked, where it was no call; set once the answer is recorded."""
    is_own: bool = False
    """The text is the person's own words, not an option."""

    @property
    def author(self) -> str:
        return f"{self.by.strip() or 'a person'} {self.via}".rstrip()

    def list_edits(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each part of the call's input that a person changed: its key, and both versions as a diff."""
        if not self.approved or self.input is None or self.asked is None:
            return
        sides = (("-", self.asked), ("+", self.input))
        for key in (*self.asked, *(self.input.keys() - self.asked.keys())):
            texts = {sign: _to_text(given.get(key)) for sign, given in sides}
            if texts["-"] != texts["+"]:
                rows = ((sign, text.split("\n")) for sign, text in texts.items() if text)
                yield key, [f"{sign}{row}" for sign, each in rows for row in each]


def tell_decision(pending_id: str, answer: Answer) -> str:
    verb = "approved" if answer.approved else "denied"
    why = "; ".join(filter(None, (answer.text, answer.comment)))
    edited = " with another input" if any(answer.list_edits()) else ""
    by = f"{edited} by {answer.author}, {answer.at}"
    return f"{answer.tool} ({pending_id}) {verb}{by}{why and f': {why}'}"


def _to_text(value: object) -> str:
    if value is None or value is False:  # an option that is left out
        return ""
    return value if isinstance(value, str) else encode(value).decode()


class Pending(Record):
    """Something a person has to decide before the task goes on."""

    id: str
    kind: PendingKind
    tool: str | None
    input: dict[str, Any]
    options: tuple[str, ...]
    asked_at: str
    expires_at: str | None = None
    """When it is denied if nobody has decided by then."""
    needed: int = 1
    """The number of people who have to approve it."""
    given: tuple[Answer, ...] = ()
    """The approvals so far, where it needs more."""
    first_input: dict[str, Any] | None = None
    """The input that the model gave, where one of these approvals changed it."""

    @property
    def identity(self) -> str:
        """A text that only the very same call, or change of the checks, has."""
        return hashlib.sha256(encode([self.tool, self.input])).hexdigest()

    def is_expired(self, now: str) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions; one without a text where the options are the whole question."""
        asked = self.input.get("questions", ()) if self.kind is PendingKind.QUESTION else ()
        listed = tuple(
            Question(text=each["question"], options=tuple(one["label"] for one in each["options"]))
            for each in asked
        )
        return listed or (Question(text="", options=self.options),)

    @property
    def question_text(self) -> str:
        asked = " ".join(each.text for each in self.questions)
        return asked or str(self.input.get("assumption", self.kind))

    @property
    def is_closed(self) -> bool:
        """Return whether only an option is an answer."""
        return self.kind is PendingKind.QUESTION and "questions" not in self.input

    @property
    def shown_input(self) -> dict[str, Any]:
        """The input without the questions and their options, as a person sees it."""
        return {key: value for key, value in self.input.items() if key not in _ASKED.get(self.kind, ())}

    @property
    def default(self) -> str:
        return str(self.input.get("recommended", "A")) if self.kind is PendingKind.ESCALATION else "A"

    @property
    def free_letters(self) -> tuple[str, ...]:
        """The letters of the options for own words; words without a letter mean the first of them."""
        ends = (option.endswith(OWN_WORDS) for option in self.options)
        return tuple(to_letter(place) for place, is_open in enumerate(ends) if is_open)

    def describe(self) -> str:
        """Return in words what waits; a person approves changed checks just as a call."""
        return f"{PendingKind.APPROVAL if self.kind in APPROVED else self.kind} {self.id}"

    def tell_what_waits(self) -> str:
        if self.kind is PendingKind.SURFACE:
            return f"changed tests or check settings (approve {self.id})"
        if self.kind is not PendingKind.APPROVAL:
            return f"{self.kind} (answer {self.id})"
        subject = next((text for text in self.input.values() if isinstance(text, str)), "").partition("\n")[0]
        verb = _VERBS.get(self.tool or "", self.tool or "")
        return f"{verb} {subject} (approve {self.id})".replace("  ", " ")

    def tell_how_to_decide(self, task_id: str) -> str:
        if self.kind in APPROVED:
            name = " --by NAME" if self.needed > 1 else ""
            return f"agentflow approve {self.id}{name}, or agentflow deny {self.id} --reason R"
        letters, free = (to_letter(place) for place in range(len(self.options))), self.free_letters
        choices = " | ".join(f"{letter} WORDS" if letter in free else letter for letter in letters)
        if len(self.questions) > 1:
            choices = " ".join(f"ANSWER{number}" for number in range(1, len(self.questions) + 1))
        return f"agentflow answer {task_id} {choices or 'WORDS'}"


class ApprovalTerms(Record):
    """What the user's settings require of an approval."""

    needed: int = 1
    """The number of people who have to give it."""
    seconds: float | None = None
    """The time after which it is denied; None for never."""

    def apply(self, item: Pending) -> Pending:
        if item.kind not in APPROVED:
            return item
        end = None
        if self.seconds is not None:
            ends = datetime.fromisoformat(item.asked_at) + timedelta(seconds=self.seconds)
            end = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        return item.replace(needed=self.needed, expires_at=end, given=(), first_input=None)


EXPIRED = Answer(approved=False, text="nobody approved it in time", by="approval_timeout")


def add_approval(item: Pending, answer: Answer) -> tuple[Pending, Answer | None]:
    """Return an item with one more answer, and the decision once enough people agree on the same input.

    Raises UsageError for an approval without a name, where more than one is needed.
    """
    if item.kind not in APPROVED or item.needed == 1 or not answer.approved:
        return item, answer
    if not answer.by.strip():
        raise UsageError(f"{item.needed} people have to approve {item.id}", hint="give your name (--by NAME)")
    if answer.input is not None and answer.input != item.input:  # what others approved was another call
        first = item.input if item.first_input is None else item.first_input
        item = item.replace(input=answer.input, first_input=first, given=())
    others = (one for one in item.given if _normalize(one.by) != _normalize(answer.by))
    item = item.replace(given=(*others, answer.replace(input=None)))
    if len(item.given) < item.needed:
        return item, None
    decision = answer.replace(
        by=", ".join(one.author for one in item.given),
        via="",
        comment="; ".join(f"{one.by.strip()}: {one.comment}" for one in item.given if one.comment),
        input=None if item.first_input is None else item.input,
    )
    return item, decision


def _normalize(name: str) -> str:
    return " ".join(name.casefold().split())


DECISION_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": ["leave it waiting", "approve", "deny"]},
        "reason": {"type": "string", "title": "Why not? The model or the report says this."},
        "name": {"type": "string", "title": "Your name, where several people have to approve"},
    },
    "required": ["decision"],
}
"""The JSON schema by which another program asks a person for an approval."""


def read_decision_form(filled: Mapping[str, Any] | None, via: str) -> Answer | None:
    """Return the decision in a filled form; None leaves it waiting."""
    said = filled or {}
    by = str(said.get("name") or "")
    match said.get("decision"):
        case "approve":
            return Answer(approved=True, by=by, via=via)
        case "deny":
            return Answer(approved=False, text=str(said.get("reason") or "no reason given"), by=by, via=via)
        case _:
            return None


class Consent(StrEnum):
    """The decisions that are made at once instead of waiting for a person."""

    SUSPEND = "suspend"
    YES = "yes"
    """Take defaults and approve what a rule asks about."""
    NO = "no"
    """Take defaults and deny approvals."""

    @property
    def option(self) -> str:
        """The option with which a person gives it."""
        return "--yes" if self is Consent.YES else "--no-input"


def decide_now(consent: Consent, pending: Pending) -> Answer | None:
    if consent is Consent.SUSPEND:
        return None
    if pending.kind is PendingKind.SURFACE:
        said = "it never approves changed tests; run again without it to decide"
        return Answer(approved=False, text=said, by=consent.option)
    if pending.kind is PendingKind.APPROVAL:
        is_yes = consent is Consent.YES
        if is_yes and pending.needed > 1:
            return None
        return Answer(approved=is_yes, text="" if is_yes else "nobody was asked", by=consent.option)
    return read_answer(pending, [pending.default] * len(pending.questions)).replace(by="default")


def read_answer(pending: Pending, said: Sequence[str]) -> Answer:
    """Return the answer that a person's words mean, one text for each question. Raises UsageError."""
    if pending.kind in APPROVED:
        raise UsageError(f"{pending.id} is approved or denied, not answered")
    if not all(text.strip() for text in said):
        raise UsageError("an answer is an option or your own words")
    if pending.free_letters:
        return _read_own_words(pending, " ".join(said))
    asked = pending.questions
    if len(asked) == 1:
        text = _choose(asked[0].options, " ".join(said))
        if pending.is_closed and text not in pending.options:
            raise UsageError(f"{text!r} is not an option", hint=f"one of: {', '.join(pending.options)}")
        return Answer(approved=True, text=text)
    if len(said) != len(asked):
        hint = "one for each, your own words in quotes, for example: A 'only in tests'"
        raise UsageError(f"{len(asked)} questions need {len(asked)} answers, not {len(said)}", hint=hint)
    lines = [f"{one.text} {_choose(one.options, text)}" for one, text in zip(asked, said, strict=True)]
    return Answer(approved=True, text="\n".join(lines))


def _read_own_words(pending: Pending, text: str) -> Answer:
    """Return the answer to a question with options that take the person's own words."""
    free, said = pending.free_letters, text.strip()
    first, _, words = said.partition(" ")
    letter = _find_letter(pending.options, said)
    if letter is None and words:
        begun = _find_letter(pending.options, first.rstrip(":.,"))
        letter, words = (begun, words.strip()) if begun in free else (free[0], said)
    choice = _choose(pending.options, letter or said)
    if letter is not None and letter not in free:
        return Answer(approved=True, text=choice)
    if not words:
        begin = letter or free[0]
        raise UsageError(f"{begin} needs your own words, for example: {begin} only in tests")
    is_plan = pending.kind is PendingKind.PLAN
    return Answer(approved=not is_plan, text=f"{choice.removesuffix(OWN_WORDS)}{words}" if is_plan else words)


def to_letter(place: int) -> str:
    return chr(ord("A") + place)


def _find_letter(options: tuple[str, ...], said: str) -> str | None:
    letters = [to_letter(place) for place in range(len(options))]
    named = {str(number): letter for number, letter in enumerate(letters, 1)}
    named |= {letter: letter for letter in letters}
    named |= {option.upper(): letter for option, letter in zip(options, letters, strict=True)}
    return named.get(said.upper())


def _choose(options: tuple[str, ...], text: str) -> str:
    """Return the option that a text means, else the text itself. Raises UsageError for an unknown letter."""
    said = text.strip()
    if letter := _find_letter(options, said):
        return options[ord(letter) - ord("A")]
    if options and len(said) == 1 and said.isalpha():
        last = to_letter(len(options) - 1)
        raise UsageError(f"{said} is not an option", hint=f"A to {last}, or your own words")
    return text


class Override(Record):
    """A required check that a person skips."""

    check: CheckName
    reason: str
    by: str
    """Who said so: a person, or a file that one trusts."""
    risk: str
    """What goes unchecked because of it."""


class Budget(Record):
    """The most that a task may use; None is no limit."""

    cost: float | None = None
    """USD."""
    tokens: int | None = None
    seconds: float | None = None
    """Of one process; they count from zero when a task is resumed."""
