"""Relevance is a count of shared words, the same in every run."""

from agentflow.core.record import Record
from agentflow.library.skills import list_shared_words, rank_by_words


class Described(Record):
    name: str
    description: str


KNOWN = (
    Described(name="rounding", description="How prices are computed."),
    Described(name="prices", description="Where a list of goods is kept."),
    Described(name="tests", description="How tests of goods are named."),
)


def test_words_of_the_name_count_twice_and_endings_do_not_count() -> None:
    ranked = rank_by_words("Round the price", KNOWN)
    assert [item.name for item, _ in ranked] == ["rounding", "prices", "tests"]
    assert ranked[-1][1] == 0


def test_a_rare_word_counts_more_than_a_usual_one() -> None:
    assert rank_by_words("goods named", KNOWN)[0][0].name == "tests"


def test_nothing_in_common_stands_by_name() -> None:
    assert [item.name for item, _ in rank_by_words("", KNOWN)] == ["prices", "rounding", "tests"]


def test_the_shared_words_are_named_as_they_were_written() -> None:
    assert list_shared_words("Rounding of a price", KNOWN[0]) == ("rounding", "price")
