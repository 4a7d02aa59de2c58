"""A task's text becomes its intent, and what is unclear in it is asked once or assumed; rules, no model."""

import re

from agentflow.core.pending import OWN_WORDS, Pending, PendingKind
from agentflow.core.routing import Action, Classification
from agentflow.core.task import Intent, TaskState
from agentflow.process import timestamp
from agentflow.workflow.clauses import Mood, clauses
from agentflow.workflow.table import Table
from agentflow.workflow.waiting import assumed

QUESTION = "refine-1"
_SIGN = "ambiguity: "
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|\n+")
_CONSTRAINT = re.compile(
    r"\b(must|mustn't|shall|never|always|only|without|except|unless|do not|don't|may not|cannot|can't|keep|"
    r"at most|at least|no more than|leave \w+ alone|not (?:change|touch|break|edit|rename|add|remove))\b",
    re.IGNORECASE,
)


def intent_of(text: str, table: Table) -> Intent:
    """Return a text's sentences by what they are, each as it stands there; the goal is the whole of it."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    moods = {each: {clause.mood for clause in clauses(each, table)} for each in sentences}
    actions = [each for each in sentences if moods[each] - {Mood.STATEMENT, Mood.LIMIT}]
    limits = [each for each in sentences if _CONSTRAINT.search(each) or moods[each] == {Mood.LIMIT}]
    told = [each for each in sentences if each not in actions]
    return Intent(
        goal=text, description="\n".join(told), actions=_listed(actions), constraints=_listed(limits)
    )


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def gap_of(task: TaskState, found: Classification, table: Table) -> Pending | None:
    """Return the one question that an ambiguous text leads to, its default first; None for a clear one."""
    if found.action is Action.PROCEED:
        return None
    signs = [reason.removeprefix(_SIGN) for reason in found.reasons if reason.startswith(_SIGN)]
    heaviest = max(signs, key=lambda sign: table.weights[sign])
    options = (*table.readings[heaviest], f"something else, {OWN_WORDS}")
    asked = {
        "question": f"The task is not clear ({', '.join(signs)}). What is meant?",
        "options": [{"label": option, "description": ""} for option in options],
    }
    advice = {"advice": table.split_advice} if found.action is Action.SPLIT else {}
    return Pending(
        id=QUESTION,
        kind=PendingKind.QUESTION,
        tool=None,
        input={"task": task.task, **advice, "questions": [asked]},
        options=options,
        asked_at=timestamp(),
    )


def settled(task: TaskState) -> TaskState:
    """Return the task with the answer to that question among its assumptions."""
    answer = task.answers.get(QUESTION)
    if answer is None or f"- {answer.text}" in task.intent.assumptions.split("\n"):
        return task
    return assumed(task, answer.text)
