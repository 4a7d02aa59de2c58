"""Each type of event has one schema, and the reference page tells it."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from agentflow.core.events import Event
from agentflow.core.run import RunEntry, RunOutcome

PAGE = Path(__file__).parents[3] / "docs/reference/files.md"
ROW = re.compile(r"\| `(\w+)` \| (.*) \|")
EVENTS: tuple[type[msgspec.Struct], ...] = get_args(Event)
ENTRIES: tuple[type[msgspec.Struct], ...] = get_args(RunEntry)


def told(title: str) -> dict[str, set[str]]:
    """Return the words in code of each row under a title."""
    section = PAGE.read_text("utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return {name: set(re.findall(r"`(\w+)`", text)) for name, text in ROW.findall(section)}


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_the_page_tells_the_keys_of_an_event(kind: type[msgspec.Struct]) -> None:
    assert set(kind.__struct_fields__) <= told("The events")[kind.__name__]


@pytest.mark.parametrize("kind", ENTRIES, ids=lambda kind: kind.__name__)
def test_the_page_tells_the_keys_of_a_run_entry(kind: type[msgspec.Struct]) -> None:
    assert set(kind.__struct_fields__) <= told("The run file")[kind.__name__]


def test_the_page_tells_of_no_other_type() -> None:
    assert set(told("The events")) == {kind.__name__ for kind in EVENTS}
    assert set(told("The run file")) == {kind.__name__ for kind in ENTRIES}


def test_the_page_tells_every_outcome() -> None:
    words = " ".join(PAGE.read_text("utf-8").split("`RunClosed`")[1].split("\n")[0].split("`"))
    assert {outcome for outcome in RunOutcome if outcome not in words.split()} == {RunOutcome.ERROR}


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_a_closed_schema_refuses_another_key(kind: type[msgspec.Struct]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"colour": "red"}, kind)
