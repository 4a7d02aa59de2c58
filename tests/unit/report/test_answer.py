"""What a reading task comes to, as a document."""

import pytest

from agentflow.report.report import split_advice

SUMMARIES = {
    "none": ("It waits.", ("It waits.", ())),
    "a list": ("It waits.\nRecommendations:\n- a\n* b\n", ("It waits.", ("a", "b"))),
    "a heading": ("It waits.\n\n## Recommendation\n\na\n\nb", ("It waits.", ("a", "b"))),
    "a word in a sentence": ("My recommendations: none.", ("My recommendations: none.", ())),
    "nothing but the list": ("Recommendations:\n- a", ("Recommendations:\n- a", ())),
    "nothing below": ("It waits.\nPlan:\n", ("It waits.", ())),
}


@pytest.mark.parametrize(("summary", "parts"), SUMMARIES.values(), ids=SUMMARIES)
def test_recommendations_are_what_stands_below_their_line(
    summary: str, parts: tuple[str, tuple[str, ...]]
) -> None:
    assert split_advice(summary) == parts
