"""The clauses of a task's text, what each of them wants, and how the task is judged."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.routing import Requirement, Routing
from agentflow.core.task import Complexity, Phase
from agentflow.core.test_ids import get_test_place
from agentflow.frontmatter import read_yaml

Words = tuple[str, ...]


class FileWords(Record):
    """The signs by which a file is recognised in a text."""

    suffixes: Words
    names: Words
    never: Words


class Orders(Record):
    """The signs that a verb of reading orders a change."""

    verbs: Words
    signs: Words
    asks: Words


class Fill(Record):
    """The signs that text of a file is asked for."""

    verbs: Words
    makers: Words
    places: Words
    told: Words


class Table(Record):
    """The whole of routing.yaml, where each key is explained."""

    routing: Routing
    heads: dict[str, Words]
    fill: Fill
    yours: Words
    orders: Orders
    polite: Words
    requests: Words
    kinds: dict[str, Words]
    wide: Words
    report: Words
    files: FileWords
    weights: dict[str, int]
    signs: dict[str, Words]
    readings: dict[str, Words]
    split_advice: str
    known: Words
    hollow: Words
    english: Words

    def list_required(self, complexity: Complexity, route: str = "") -> tuple[Requirement, ...]:
        """Return what a change of a class has to pass; a route with a review requires one."""
        wanted = self.routing.requires.get(complexity, ())
        steps = self.routing.routes.get(route, ())
        is_reviewed = {Phase.IMPLEMENTATION, Phase.REVIEW} <= {*steps}
        return tuple(dict.fromkeys((*wanted, Requirement.REVIEW))) if is_reviewed else wanted

    def list_steps(self, route: str, complexity: Complexity) -> tuple[Phase, ...]:
        """Return the phases whose role runs, in order; a review that the class requires is among them."""
        wanted = {*self.routing.routes[route]}
        if Phase.IMPLEMENTATION in wanted and Requirement.REVIEW in self.list_required(complexity):
            wanted.add(Phase.REVIEW)
        return tuple(phase for phase in Phase if phase in wanted)


def load_table(extra: Routing) -> Table:
    """Return the shipped table with what the settings add to it. Raises ConfigError."""
    shipped = Path(__file__).with_name("routing.yaml").read_text("utf-8")
    table = read_yaml(Table, shipped, "routing.yaml")
    routing = table.routing.extend(extra)
    for rule in routing.complex_when:
        if rule.route not in routing.routes:
            known = ", ".join(routing.routes)
            raise ConfigError(
                f"routing.complex_when: {rule.reason}: there is no route {rule.route}",
                hint=f"routes: {known}",
            )
    return table.replace(routing=routing)


_SENTENCE = regex(r"(?<=[.!?;:])(?<!error:)(?<!exception:)\s+|\n+")

_JOINT = regex(r"(?:,\s*|\s+)(?=(?:and then|then|and|but|so)\s)|,\s+(?!as your\b)(?=\w)")

_SETTING = regex(r"(?:when|if|in|on|for|using|after|before|since|because|while|as|with|at|by)\b[^,]*,\s*")

_QUOTED = regex(r"`[^`\n]*`|\"[^\"\n]*\"|(?<=\w)\([^()\n]*\)")
"""What belongs together: quoted, or the arguments of a call."""

_WORD = regex(r"\w")

_FOR_SOMEBODY = regex(r"\w+\s+(?:me|us)\b")

_DOCUMENT = r"(?:[\w./-]*\w\.(?:md|rst|txt|adoc)|readme|changelog|docs/\S+)\b"

_INTO_FILE = regex(
    r"\b(?:into|(?:it|them|this|that|these|those)\s+(?:down\s+)?(?:in|to)"
    r"|(?:write|draft|prepare|produce|make|create|compile)\b.*\bto)"
    rf"\s+(?:the\s+|file\s+)*(?:{_DOCUMENT}|[\w./-]*\w\.[a-z]\w{{0,4}}\b)"
)

_IN_DOCUMENT = regex(rf"\bin\s+(?:the\s+)?{_DOCUMENT}")

_WITHOUT = regex(r"\bwithout\b[^,.;]*")

_PART = "\x1f"
"""Stands between the parts of a name; in a pattern it is a space."""

_STATEMENT = regex(
    r"\w+(?:\s+(?!(?:that|which|who|where|if|whether|how|why|what|all|every|the|a|an)\b)\w+){0,2}\s+"
    r"(?:is|are|was|were|should|must|does|doesn't|do not|don't|fails?|crash(?:es)?|returns|raises|hangs|shows"
    r"|needs|gives|breaks|has|cannot|can't|never|always|ignores?|loses|drops|misses|leaves|freezes|disappears)\b(?![\x1f(])"
)
"""A sentence whose first word is a noun that could also be an order: "search results are wrong"."""

_AUXILIARY = regex(r"do\s(?!(?:it|this|that|so|the same|an?)\b)")
"""The beginning of a question that would be an order without its question mark: "do tests use ... ?"."""

_RELATIVE = regex(r"(?:which|where|who|whose|whom|when)\b")
"""After a comma it goes on with what was said: "pages() should take a size, where 0 means all"."""

_SAID = 3
"""Words that say something: "hi, where is it?" goes on with nothing."""

_GAP = r"\W+(?:\w+\W+){0,3}?"

_CAMEL = regex(r"\b[A-Z][a-z]+[A-Z]{2,}\b|(?<=[a-z0-9])(?=[A-Z])")
"""A name like MongoDB, or where a part of another begins."""

_FENCED = regex(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)

_AFTER = ("", *" \t\n,:;.!?)\"'")

_DASH = regex(r"[\u2010-\u2015]")

_BEGINNING, _END = 6_000, 2_000
"""The part of a long text that is read: people say what they want before or after what they paste."""

_LONGEST_LEAD = 200
"""Characters in which all words of a phrase stand that a text begins with."""


class Mood(StrEnum):
    """The wish of a clause; the order is that of precedence."""

    CHANGE = "change"
    AUDIT = "audit"
    RESEARCH = "research"
    EXPLORATORY = "exploratory"
    QUESTION = "question"
    LIMIT = "limit"
    """What must not happen."""
    STATEMENT = "statement"


class Clause(Record):
    text: str
    """Plain words, polite lead-ins left out."""
    mood: Mood
    head: str = ""
    """The words that decided the mood."""


def split_clauses(text: str, table: Table) -> tuple[Clause, ...]:
    found: list[Clause] = []
    is_asked = False
    for sentence in _SENTENCE.split(to_plain_words(text)):
        if _WORD.search(sentence):
            clauses = tuple(_clauses_of(sentence, table, is_asked=is_asked))
            is_asked = sentence.endswith(":") and any(each.mood is Mood.QUESTION for each in clauses)
            found += clauses
    return tuple(found)


def _clauses_of(sentence: str, table: Table, *, is_asked: bool) -> Iterator[Clause]:
    """Yield the clauses of a sentence; a part without a verb joins the clause before it.

    So do the verbs of a question: "which of set, get and delete checks the key?"
    """
    ends_asking = sentence.rstrip().endswith("?")
    setting = None if ends_asking else _SETTING.match(sentence)
    begin = setting.end() if setting else 0
    current, *pieces = _split_at_joints(sentence[begin:].strip())
    clause = _clause(current, table)
    if ends_asking and (is_asked or _AUXILIARY.match(sentence)) and clause.mood is Mood.CHANGE:
        clause = clause.replace(mood=Mood.QUESTION)
    clause = clause.replace(text=f"{clause.text} {sentence[:begin]}".strip())
    for piece in pieces:
        is_asked = ends_asking and (is_asked or clause.mood is Mood.QUESTION)
        follower = _clause(piece, table)
        is_inside = is_asked and follower.mood is Mood.CHANGE and not find_phrases(table.requests, piece)
        is_relative = not ends_asking and _RELATIVE.match(piece) and len(clause.text.split()) >= _SAID
        if follower.mood is Mood.STATEMENT or is_inside or is_relative:
            clause = clause.replace(text=f"{clause.text} {follower.text}")
        else:
            yield clause
            clause = follower
    if clause.text:
        # elsewhere than in English a question mark may end a polite order
        is_open = clause.mood is Mood.STATEMENT and ends_asking and find_phrases(table.english, sentence)
        yield clause.replace(mood=Mood.QUESTION) if is_open else clause


def _split_at_joints(sentence: str) -> Iterator[str]:
    whole = [found.span() for found in _QUOTED.finditer(sentence) if found[0] != sentence]
    begin = 0
    for joint in _JOINT.finditer(sentence):
        if not any(first < joint.start() < end for first, end in whole):
            yield sentence[begin : joint.start()]
            begin = joint.end()
    yield sentence[begin:]


def _clause(piece: str, table: Table) -> Clause:
    spoken = piece.strip(" \t-*\"'(")
    mood, head = _head(spoken, table)
    while (lead := find_lead(table.polite, spoken)) is not None and len(lead) >= len(head):
        spoken = spoken[len(lead) :].lstrip(" ,:")
        mood, head = _head(spoken, table)
    text = _WITHOUT.sub("", spoken)
    is_told = mood not in (Mood.QUESTION, Mood.LIMIT) and bool(_STATEMENT.match(spoken))
    if mood is Mood.STATEMENT or is_told:
        return Clause(text=text, mood=Mood.STATEMENT)
    if mood is Mood.CHANGE and find_phrases(table.yours, text) and not is_about_file_text(text, table):
        return Clause(text=text, mood=Mood.QUESTION, head=head)
    orders = table.orders
    is_order = (
        mood in (Mood.EXPLORATORY, Mood.RESEARCH)
        and find_lead(orders.verbs, text)
        and find_phrases(orders.signs, text)
        and not find_phrases(orders.asks, text)
    )
    is_text = mood in (Mood.QUESTION, Mood.EXPLORATORY) and is_about_file_text(text, table)
    return Clause(text=text, mood=Mood.CHANGE if is_order or is_text else mood, head=head)


def _head(spoken: str, table: Table) -> tuple[Mood, str]:
    found = {Mood(mood): head for mood, words in table.heads.items() if (head := find_lead(words, spoken))}
    mood = max(found, key=lambda mood: len(found[mood]), default=Mood.STATEMENT)
    return mood, found.get(mood, "")


def is_about_file_text(text: str, table: Table) -> bool:
    """Return whether a clause asks for text in a file, not only in the answer."""
    fill = table.fill
    if not find_lead(fill.verbs, text):
        return False
    if find_phrases(fill.places, text) and not find_phrases(fill.told, text):
        return True
    is_made = bool(find_lead(fill.makers, text)) and not _FOR_SOMEBODY.match(text)
    return bool(_INTO_FILE.search(text) or (is_made and _IN_DOCUMENT.search(text)))


def drop_quoted(text: str) -> str:
    """Return a person's own words: no fenced block, and of a long text its beginning and end."""
    said = _FENCED.sub(" ", text)
    is_short = len(said) <= _BEGINNING + _END
    return said if is_short else f"{said[:_BEGINNING]}\n{said[-_END:]}"


def to_plain_words(text: str) -> str:
    """Return the words of a text in lower case, the parts of names apart."""
    text = _CAMEL.sub(lambda found: found[0] or _PART, text.replace("\u2019", "'").replace("_", _PART))
    return _DASH.sub(" ", text).lower()


def find_phrases(phrases: Iterable[str], text: str) -> tuple[str, ...]:
    """Return the phrases that occur in a text, as written there, each once."""
    found = (compile_phrase(phrase).search(text) for phrase in phrases if _may_stand(phrase, text))
    return tuple(dict.fromkeys(" ".join(one[0].split()) for one in found if one))


def find_lead(phrases: tuple[str, ...], text: str) -> str | None:
    """Return the longest phrase that a text begins with, or None."""
    letters, beginning = _by_first_letter(phrases), text[:_LONGEST_LEAD]
    fitting = (*letters.get(text[:1], ()), *letters.get("*", ()))
    if not fitting:
        return None
    likely = (phrase for phrase in fitting if _may_stand(phrase, beginning))
    found = [one[0] for phrase in likely if (one := compile_phrase(phrase).match(text))]
    whole = (one for one in found if text[len(one) : len(one) + 1] in _AFTER)
    return max(whole, key=len, default=None)


@cache
def _by_first_letter(phrases: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Return the phrases by each letter that may begin one, `*` for any: a long text has a thousand leads."""
    found = defaultdict[str, list[str]](list)
    for phrase in phrases:
        for letter in sorted({word[:1] for word in phrase.lower().split()[0].split("|")}):
            found[letter].append(phrase)
    return found


def _may_stand(phrase: str, text: str) -> bool:
    """Return whether a text has letters for each word of a phrase: most have not, and need no pattern."""
    for word in _letters(phrase):
        for one in word:
            if one in text:
                break
        else:
            return False
    return True


@cache
def _letters(phrase: str) -> tuple[tuple[str, ...], ...]:
    words = (word for word in phrase.lower().split() if word not in {"...", "."})
    return tuple(tuple(one.strip("*") for one in word.split("|")) for word in words)


@cache
def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Return the pattern of a phrase; its syntax is explained at the top of routing.yaml."""
    whole = phrase.removesuffix(" .")
    parts = list[str]()
    for part in whole.lower().split(" ... "):
        words = ("|".join(map(_alternative, word.split("|"))) for word in part.split())
        parts.append(r"[\s-]+".join(f"(?:{word})" for word in words))
    end = "" if whole == phrase else r"(?=\W*\Z)"
    return re.compile(rf"(?<![a-z0-9]){_GAP.join(parts)}(?![a-z0-9]){end}")


def _alternative(word: str) -> str:
    if word.startswith("*"):
        return rf"\w+{re.escape(word[1:])}"
    return rf"{re.escape(word[:-1])}\w*" if word.endswith("*") else f"{re.escape(word)}s?"


_TEXT = regex(
    r"(?:document\b|(?:add|fix|write|update|improve|correct|extend|reword|translate|remove)\s+(?:[\w'./-]+\s+){0,3}?"
    r"(?:docstrings?|comments?|readme(?:\.\w+)?|changelog(?:\.\w+)?|docs|documentation|typos?|wording|spelling)"
    r"(?=\s*(?:$|[.,;:!?)])|\s['\"`]|\s(?:in|to|for|of|on|about|at|with|from)\b))",
    re.IGNORECASE,
)
"""An order about text that only people read."""
_CHECKS = r"fail\w*|red|broken|green|pass(?:es|ing)?|tests?|checks?|suite"
_CHECK = r"(?:tests?|checks?|suite|build|ci|pipeline)"
_STATE = r"(?:fail\w*|red|broken|green|pass(?:es|ing)?)"
_ABOUT_CHECKS = regex(
    rf"\bfailing\b|\b{_CHECK}\b(?:\W+\w+){{0,4}}?\W+{_STATE}\b|\b{_STATE}\W+(?:\w+\W+)?{_CHECK}\b"
    rf"|\b(?:fix|mend|repair)\W+(?:(?:the|all|our|my|these|those)\W+)*{_CHECK}\b",
    re.IGNORECASE,
)
"""What a text says that wants checks to pass."""
_NEW_TEST = regex(
    rf"\b(?:add|write|includ|with|cover|extend)\w*\W+(?:\w+\W+){{0,3}}?{_CHECK}\b[^.;]*", re.IGNORECASE
)
"""An order for further tests, which says nothing of those that are there."""
_WORDS = regex(r"[\w./:\[\]-]+")
_MERE_WORDS = regex(
    rf"{_CHECKS}|cases?|unit|build|ci|pipeline|fix|mend|repair|debug|bugs?|regressions?|breaks?|succeed|make|get|turn"
    r"|see|ensure|have|want|need|please|can|could|would|you|kindly|now|just|again|currently|still|back|let|s|us|we|i"
    r"|to|that|so|and|then|until|the|a|an|all|both|every|each|my|our|this|these|those|there|any|which|it|they|them"
    r"|in|of|for|from|on|is|are|be|python|pytest|unittest"
)
"""Every word of a text that wants nothing but green checks; names of tests stand beside them."""
_ABOUT_FAULTS = regex(rf"\b(?:{_CHECKS}|bugs?|fix|mend|repair)\b", re.IGNORECASE)
_NAME = regex(r"[\w./:\[\]-]{3,}")
_CODE = regex(r"`([^`\n]+)`|([A-Za-z_][\w./]*)(\()?")
_IN_CODE = regex(r"[A-Za-z_]\w{2,}")
_LIKE_CODE = regex(r"[A-Za-z_]\w*(?:[_/]|\.\w)|[a-z][A-Z]|[A-Z][a-z]+[A-Z]")


def is_about_text(order: str) -> bool:
    return bool(_TEXT.match(order))


class Targets(Record):
    """The failing tests that a task is about."""

    asked: frozenset[str] = frozenset()
    """Those that its words ask for: they have to pass."""
    guessed: frozenset[str] = frozenset()
    """Those that may show its fault: they have to pass unless something else proves the change."""


def find_targets(
    task: str, failing: frozenset[str], speaking_of: Callable[[frozenset[str]], frozenset[str]]
) -> Targets:
    """Return which of the failing tests a task has to turn green.

    Tests that the text names are asked for; else all of them where the text wants checks to pass. Where it is
    about a fault, those that speak of the code it names are guessed, or else all.
    """
    if found := find_named_tests(task, failing):
        return Targets(asked=found)
    if _ABOUT_CHECKS.search(_NEW_TEST.sub("", task)):
        return Targets(asked=failing)
    if is_about_text(task) or not _ABOUT_FAULTS.search(task):
        return Targets()
    code = find_code_names(task)
    return Targets(guessed=(speaking_of(code) if code else frozenset()) or failing)


def is_only_about_checks(text: str) -> bool:
    """Return whether a text wants checks to pass and nothing else; a word that is not known may say more."""
    words = (word.strip(".:-") for word in _WORDS.findall(text.lower()))
    return all("test" in word or _MERE_WORDS.fullmatch(word) for word in words if word)


def find_code_names(text: str) -> frozenset[str]:
    """Return the identifiers in a text: in backticks, called, or spelled as only code is."""
    found = _CODE.findall(text)
    words = [quoted or word for quoted, word, call in found if quoted or call or _LIKE_CODE.match(word)]
    return frozenset(name for word in words for name in _IN_CODE.findall(_module(word)))


def _module(word: str) -> str:
    *folders, last = word.split("/")
    stem = last.partition(".")[0] if folders else last
    return folders[-1] if folders and stem == "__init__" else stem


def find_named_tests(task: str, tests: frozenset[str]) -> frozenset[str]:
    found = (word.strip(".:-").lower() for word in _NAME.findall(task))
    words = {word for word in found if not _ABOUT_FAULTS.fullmatch(word)}
    places = {_to_module(word) for word in words if re.search(r"[./_]", word)}

    def is_named(test: str) -> bool:
        place = get_test_place(test.lower())
        module = f".{_to_module(place) if '::' in test else place}"
        lies_in = any(module.endswith(f".{named}") or f".{named}".endswith(module) for named in places)
        return lies_in or bool(words & _names(test))

    return frozenset(filter(is_named, tests))


def _to_module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _names(test: str) -> set[str]:
    whole = test.lower()
    path, _, inside = whole.partition("::")
    parts = inside.split("::") if inside else whole.split(".")[-2:]
    names = {whole, *parts, *(part.split("[")[0] for part in parts)}
    return {name for name in names | ({path, path.rsplit("/", 1)[-1]} if inside else set()) if len(name) > 2}
