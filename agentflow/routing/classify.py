"""The class and the route of a task, and how ambiguous its text is, by rules over its words."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from agentflow.core.languages import is_document_path, is_test_path
from agentflow.core.regex import regex
from agentflow.core.routing import Action, Classification, RiskRule
from agentflow.core.task import Complexity, Phase
from agentflow.routing.clauses import (
    Clause,
    Mood,
    Table,
    drop_quoted,
    find_lead,
    find_phrases,
    is_about_file_text,
    is_about_text,
    is_only_about_checks,
    split_clauses,
    to_plain_words,
)
from agentflow.routing.wanted import drop_companions

RANK = (
    Complexity.UNCLASSIFIED,
    Complexity.EXPLORATORY,
    Complexity.RESEARCH,
    Complexity.TRIVIAL,
    Complexity.IMPLEMENTATION,
    Complexity.COMPLEX,
)
"""A class may only rise along this order."""

_MENDS = ("fix", "repair", "mend", "correct", "resolve", "debug")

MOST_FILES = 5
"""A change of more product files is complex."""

_FAILING = regex(r"\b(fail\w*|red|broken|pass(es|ing)?|green)\b", re.IGNORECASE)


QUESTION = "question"

CLASSES = (*(str(one) for one in Complexity if one is not Complexity.UNCLASSIFIED), QUESTION)
"""What a person may name as the class of a task."""

_ROUTES = {
    Complexity.TRIVIAL: "single_file",
    Complexity.IMPLEMENTATION: "default",
    Complexity.COMPLEX: "full",
    Complexity.EXPLORATORY: "exploratory",
    Complexity.RESEARCH: "research",
}
"""The route of a class that a person named, where the words lead to another class."""

_CONCRETE = regex(
    r"`[^`\n]+`|\"[^\"\n]+\"|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+\(\)?|\b[A-Za-z]\w+\.[A-Za-z]\w+|\b\w+/\w+|::"
)
"""A name that can be looked up: quoted, in code style, or a path."""

_ABBREVIATION = regex(r"\b[A-Z]{2,5}\b")

_SPOKEN = regex(r"[a-z][a-z'-]+")

_LEVELS = (Action.PROCEED, Action.ASSUME, Action.ASK, Action.SPLIT)

_LAST_SCORES = (2, 4, 6)
"""The highest score of each level but the last."""


class RouteChoice(NamedTuple):
    """A class, its route, and why."""

    complexity: Complexity
    route: str
    reasons: tuple[str, ...]
    forced: bool = False
    hints: tuple[str, ...] = ()


def classify(text: str, table: Table) -> Classification:
    """Return what the words of a task say about it; the same text always gives the same."""
    text = drop_quoted(text)
    said = split_clauses(text, table)
    changes = tuple(clause for clause in said if clause.mood is Mood.CHANGE)
    report = bool(find_phrases(table.report, to_plain_words(text)))
    wanted = tuple(
        clause
        for clause in changes
        if not find_phrases(table.report, clause.text) or is_about_file_text(clause.text, table)
    )
    mood = _mood_of(said, wanted, is_report=report)
    found = find_ambiguities(text, said, table)
    score = sum(table.weights[name] for name in found)
    choice = _choose_change(text, said, table) if mood is Mood.CHANGE else _choose_reading(mood, said, table)
    is_anchored = is_concrete(text) and any(clause.head for clause in said)
    # a known verb with a concrete target lowers the level of ambiguity by one
    level = sum(score > last for last in _LAST_SCORES)
    return Classification(
        complexity=choice.complexity,
        route=choice.route,
        score=score,
        action=_LEVELS[max(0, level - is_anchored)],
        forced=choice.forced,
        report=report and mood is not Mood.CHANGE,
        decided=choice.reasons,
        ambiguities=found,
        hints=choice.hints,
        steps=table.list_steps(choice.route, choice.complexity),
        requires=table.list_required(choice.complexity, choice.route),
    )


def use_named_class(found: Classification, name: str, table: Table) -> Classification:
    """Return a classification in the class that a person named; the words decide the rest."""
    is_question = name == QUESTION
    complexity = Complexity.EXPLORATORY if is_question else Complexity(name)
    fits = found.complexity is complexity and not is_question
    route = QUESTION if is_question else found.route if fits else _ROUTES[complexity]
    steps = table.list_steps(route, complexity)
    return found.replace(
        complexity=complexity,
        route=route,
        forced=found.forced and fits,
        report=found.report and Phase.IMPLEMENTATION not in steps and not is_question,
        decided=(f"named by a person: {name}", *(found.decided if fits else ())),
        hints=found.hints if fits else (),
        steps=steps,
        requires=table.list_required(complexity, route),
    )


def _mood_of(said: tuple[Clause, ...], changes: tuple[Clause, ...], *, is_report: bool) -> Mood:
    """Return what the whole text asks for; a text of statements alone describes what is to be fixed."""
    moods = {clause.mood for clause in said} - {Mood.LIMIT, Mood.STATEMENT}
    if not changes:
        moods.discard(Mood.CHANGE)
        if is_report:
            moods.add(Mood.EXPLORATORY)
    return next((mood for mood in Mood if mood in moods), Mood.CHANGE)


def _choose_reading(mood: Mood, said: tuple[Clause, ...], table: Table) -> RouteChoice:
    spoken = " ; ".join(clause.text for clause in said if clause.mood is not Mood.LIMIT)
    sayings = [phrase for phrase in table.routing.keywords.get(Complexity.RESEARCH, ()) if " " in phrase]
    if mood is Mood.RESEARCH or (mood is not Mood.AUDIT and find_phrases(sayings, spoken)):
        mood = Mood.RESEARCH
    reason = f"{mood}: changes nothing"
    complexity = Complexity.RESEARCH if mood is Mood.RESEARCH else Complexity.EXPLORATORY
    return RouteChoice(complexity, str(mood), (reason,), hints=tuple(_hints(spoken, table)))


def _choose_change(text: str, said: tuple[Clause, ...], table: Table) -> RouteChoice:
    heard = tuple(clause for clause in said if clause.mood is not Mood.LIMIT)
    spoken = " ; ".join(clause.text for clause in heard)
    files = tuple(file for file in find_named_files(text, table) if to_plain_words(file) in spoken)
    choice = _choose_by_risk(heard, spoken, table) or _choose_by_size(
        _kind(heard, spoken, table), files, spoken, table
    )
    plural = "" if len(files) == 1 else "s"
    named = f"names {len(files)} file{plural}: {', '.join(files)}" if files else "file count unknown"
    reasons = tuple(dict.fromkeys((*choice.reasons, named)))
    hints = (hint for hint in _hints(spoken, table) if hint not in reasons)
    return choice._replace(reasons=reasons, hints=tuple(dict.fromkeys(hints)))


def _choose_by_risk(heard: tuple[Clause, ...], spoken: str, table: Table) -> RouteChoice | None:
    """Return the route of high risk, if the words name one; documentation carries none."""
    found = find_risks(spoken, table)
    orders = tuple(clause for clause in heard if clause.mood is Mood.CHANGE) or heard
    if not found or all(is_about_text(clause.text) for clause in orders):
        return None
    routes = {rule.route for rule, _ in found}
    route = routes.pop() if len(routes) == 1 else "full"
    why = (*(rule.reason for rule, _ in found), *(f"complex: {', '.join(words)}" for _, words in found))
    return RouteChoice(Complexity.COMPLEX, route, why, forced=True)


def _choose_by_size(kind: str | None, files: tuple[str, ...], spoken: str, table: Table) -> RouteChoice:
    count = classify_size(len(files), len(list_product(files))) if files else Complexity.IMPLEMENTATION
    wide = find_phrases(table.wide, spoken) if kind == "refactor" else ()
    named = [to_plain_words(file) for file in files]
    found = [phrase for phrase in wide if not any(f"{phrase} in {file}" in spoken for file in named)]
    found += find_phrases(table.routing.keywords.get(Complexity.COMPLEX, ()), spoken)
    if count is Complexity.COMPLEX or found:
        return RouteChoice(Complexity.COMPLEX, "full", tuple(f"complex: {phrase}" for phrase in found))
    if kind:
        return RouteChoice(Complexity.IMPLEMENTATION, kind, (kind,))
    if not files:
        return RouteChoice(Complexity.IMPLEMENTATION, "default", ())
    return RouteChoice(count, "single_file" if count is Complexity.TRIVIAL else "several_files", ())


def _kind(heard: tuple[Clause, ...], spoken: str, table: Table) -> str | None:
    if any(find_lead(table.kinds["refactor"], clause.text) for clause in heard):
        return "refactor"
    for kind in ("performance", "bug_hunt"):
        if find_phrases(table.kinds[kind], spoken):
            return kind
    asks = any(clause.mood in (Mood.QUESTION, Mood.EXPLORATORY) for clause in heard)
    mends = any(clause.mood is Mood.CHANGE and clause.head.startswith(_MENDS) for clause in heard)
    return "bug_hunt" if asks and mends else None


def _hints(spoken: str, table: Table) -> tuple[str, ...]:
    return tuple(
        f"{complexity}: {found}"
        for complexity, phrases in table.routing.keywords.items()
        for found in find_phrases(phrases, spoken)
    )


def find_risks(spoken: str, table: Table) -> tuple[tuple[RiskRule, tuple[str, ...]], ...]:
    """Return the rules that force the class complex, each with the words that it found."""
    found = ((rule, find_phrases(rule.words, spoken)) for rule in table.routing.complex_when)
    return tuple((rule, words) for rule, words in found if words)


def list_risks(text: str, table: Table) -> tuple[str, ...]:
    """Return why a text is of high risk; what it forbids is no risk."""
    heard = (
        clause.text for clause in split_clauses(drop_quoted(text), table) if clause.mood is not Mood.LIMIT
    )
    return tuple(dict.fromkeys(rule.reason for rule, _ in find_risks(" ; ".join(heard), table)))


def classify_size(files: int, product: int) -> Complexity:
    """Return the class of a change by its number of files, and of those among them that are product."""
    if files <= 1:
        return Complexity.TRIVIAL
    return Complexity.IMPLEMENTATION if product <= MOST_FILES else Complexity.COMPLEX


def list_product(paths: Iterable[str]) -> list[str]:
    """Return the paths that are neither documents nor tests by their names."""
    return [path for path in paths if not (is_test_path(path) or is_document_path(path))]


def choose_higher(first: Complexity, second: Complexity) -> Complexity:
    return max(first, second, key=RANK.index)


def find_named_files(text: str, table: Table) -> tuple[str, ...]:
    """Return the files that a text names as targets; the file of a failing test is none."""
    suffixes = "|".join(map(re.escape, table.files.suffixes))
    names = "|".join(map(re.escape, table.files.names))
    paths = re.findall(rf"(?<![\w/.:@-])(?:\./)?([\w./-]*\w\.(?:{suffixes}))(?![\w/(-])", text, re.IGNORECASE)
    bare = re.findall(rf"(?<![\w/.-])({names})(?![\w./-]*\w)", text)
    never = {name.lower() for name in table.files.never}
    found = dict.fromkeys(path for path in (*paths, *bare) if path.lower() not in never)
    targets = [path for path in found if not is_test_path(path)]
    return tuple(targets if _FAILING.search(text) else found)


def find_ambiguities(text: str, said: tuple[Clause, ...], table: Table) -> tuple[str, ...]:
    """Return what makes a text ambiguous, in the order of the table's weights."""
    spoken = to_plain_words(text)
    found = {name for name, phrases in table.signs.items() if find_phrases(phrases, spoken)}
    if is_concrete(text):
        found.discard("pronoun")
    elif not _content(spoken, said, table):
        found.add("missing target")
    if sum(clause.mood is Mood.CHANGE for clause in said) > 1:
        found.add("compound")
    if not text.isupper() and set(_ABBREVIATION.findall(text)) - set(table.known):
        found.add("jargon")
    return tuple(name for name in table.weights if name in found)


def count_wishes(text: str, table: Table) -> int:
    """Return how many changes a text asks for, without the tests and documents beside them."""
    said = split_clauses(drop_companions(drop_quoted(text)), table)
    return sum(each.mood is Mood.CHANGE and not is_only_about_checks(each.text) for each in said)


def is_concrete(text: str) -> bool:
    return bool(_CONCRETE.search(text))


def _content(spoken: str, said: tuple[Clause, ...], table: Table) -> set[str]:
    signs = " ".join(found for phrases in table.signs.values() for found in find_phrases(phrases, spoken))
    heads = " ".join(clause.head for clause in said)
    hollow = {*table.hollow, *_SPOKEN.findall(f"{signs} {heads}")}
    return {word for word in _SPOKEN.findall(spoken) if not {word, word.removesuffix("s")} & hollow}
