"""What is understood of a task: its intent, the gaps in it, and the plan that a person confirms."""

import re

from agentflow.core.pending import OWN_WORDS, Pending, PendingKind
from agentflow.core.role import Plan
from agentflow.core.routing import Action, Classification
from agentflow.core.task import Intent, Phase, TaskState
from agentflow.process import timestamp
from agentflow.routing.classify import MOST_FILES
from agentflow.routing.clauses import Mood, split_clauses
from agentflow.routing.table import Table
from agentflow.workflow.waiting import assumed

QUESTION = "refine-1"
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+|\n+")
_CONSTRAINT = re.compile(
    r"\b(must|mustn't|shall|never|always|only|without|except|unless|do not|don't|may not|cannot|can't|keep|"
    r"at most|at least|no more than|leave \w+ alone|not (?:change|touch|break|edit|rename|add|remove))\b",
    re.IGNORECASE,
)


def intent_of(text: str, table: Table) -> Intent:
    """Return a text's sentences by what they are, each as it stands there; the goal is the whole of it."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    moods = {each: {clause.mood for clause in split_clauses(each, table)} for each in sentences}
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
    signs = found.ambiguities
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


PLAN = "plan-1"
CHOICES = ("confirm", f"correct the plan: {OWN_WORDS}", f"adjust the scope: {OWN_WORDS}")


def unconfirmed(task: TaskState) -> Pending | None:
    """Return what a person has to confirm, or None where nothing has, or somebody was asked already."""
    if task.plan is None or task.reads_only or PLAN in task.answers:
        return None
    files = {file for step in task.plan.steps for file in step.files}
    if not task.forced and len(files) <= MOST_FILES:
        return None
    intent = task.intent
    shown = {
        "goal": intent.goal,
        "constraints": intent.constraints,
        "assumptions": intent.assumptions,
        "why": "of high risk" if task.forced else f"touches {len(files)} files",
        "plan": _written(task.plan),
    }
    return Pending(
        id=PLAN,
        kind=PendingKind.PLAN,
        tool=None,
        input={key: text for key, text in shown.items() if text},
        options=CHOICES,
        asked_at=timestamp(),
    )


def is_kept(task: TaskState, phase: Phase) -> bool:
    """Return whether the one interruption of a phase is kept for the confirmation of its plan."""
    return phase is Phase.PLANNING and task.forced


def _written(plan: Plan) -> str:
    steps = (f"{number}. {step.title} ({', '.join(step.files)})" for number, step in enumerate(plan.steps, 1))
    after = (f"must hold: {text}" for text in plan.acceptance)
    return "\n".join((plan.summary, *steps, *after, *(f"risk: {risk}" for risk in plan.risks)))
