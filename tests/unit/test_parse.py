import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record, encode
from agentflow.core.role import Findings, Plan
from agentflow.core.routing import SUBMITTED_BY
from agentflow.parse import Mismatch, decode, decode_or_none, expand_home, fit, make_schema, parse, read_json


class Kind(StrEnum):
    BOX = "box"
    LID = "lid"


class Item(Record):
    size: int


class Box(Record):
    name: Annotated[str, Meta(min_length=1)]
    items: tuple[Item, ...] = ()
    lids: dict[str, Item] = {}


@pytest.mark.parametrize(
    ("wrong", "key", "said"),
    [
        ({}, "", "object missing required field `name`"),
        ({"name": 1}, "name", "expected `str`, got `int`"),
        ({"name": ""}, "name", "expected `str` of length >= 1"),
        ({"name": "a", "colour": 1}, "", "object contains unknown field `colour`"),
        ({"name": "a", "items": [{"size": 1}, {"size": "2"}]}, "items[1].size", "expected `int`, got `str`"),
        ({"name": "a", "items": [{}]}, "items[0]", "object missing required field `size`"),
        ({"name": "a", "lids": {"x": {"size": None}}}, "lids[...].size", "expected `int`, got `null`"),
        ([], "", "expected `object`, got `array`"),
        (None, "", "expected `object`, got `null`"),
    ],
)
def test_a_misfit_names_its_key(wrong: object, key: str, said: str) -> None:
    with pytest.raises(Mismatch) as caught:
        fit(Box, wrong)
    assert (caught.value.key, caught.value.problem) == (key, said)


def test_numbers_in_text_fit_only_where_that_is_asked_for() -> None:
    assert fit(Item, {"size": "3"}, lax=True) == Item(size=3)
    with pytest.raises(Mismatch):
        fit(Item, {"size": "3"})


def test_a_file_that_does_not_fit_is_named_with_its_key() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse(Box, {"name": 1}, "box.yaml")
    assert str(caught.value) == "box.yaml: name: expected `str`, got `int`"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b'{"size": 1} x', "not JSON"),
        (b'{"size": "1"}', "size: expected `int`, got `str`"),
        ('{"size": null}', "size: expected `int`, got `null`"),
        (b'{"siz\xff": 1}', "item.json"),
    ],
)
def test_json_that_does_not_fit_is_named(raw: bytes | str, said: str) -> None:
    with pytest.raises(InvalidFile, match=said) as caught:
        decode(Item, raw, "item.json")
    assert caught.value.source == "item.json"


def test_very_deep_json_is_an_error_of_the_file() -> None:
    with pytest.raises(InvalidFile, match="nested too deeply"):
        decode(dict[str, object], '{"a":' * 50_000, "a.json")
    assert decode_or_none("[" * 50_000) is None


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{\n "size":\n ,\n}\n', "item.json:3: not JSON: invalid character"),
        (b'{\n "size": 1\n\n', "item.json:2: not JSON: Input data was truncated"),
        ('{"size": x}\n', "item.json: not JSON: invalid character"),
    ],
)
def test_json_of_several_lines_is_named_with_the_line(raw: bytes | str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        decode(Item, raw, "item.json")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n"a": }', "a.json:2: not JSON: Expecting value"),
        ("[" * 100_000, "a.json: nested too deeply"),
        ("9" * 5_000, "a.json: holds a number that is too long to be read"),
    ],
)
def test_json_of_any_shape_that_cannot_be_read_is_an_error_of_the_file(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_json(text, "a.json")
    assert str(caught.value) == said


def test_the_home_of_nobody_is_a_name_like_any_other(tmp_path: Path) -> None:
    assert expand_home("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert expand_home("~/x") == Path.home() / "x"
    assert expand_home(f"{tmp_path}/~") == tmp_path / "~"


@pytest.mark.parametrize("raw", [b'{"size": 1}', b'\xef\xbb\xbf{"size": 1}', '\ufeff{"size": 1}'])
def test_json_that_fits_is_a_value(raw: bytes | str) -> None:
    assert decode(Item, raw, "item.json") == Item(size=1)


@pytest.mark.parametrize(
    ("raw", "value"), [("{", None), ("x", None), ("null", None), ("[1]", [1]), ('{"a": {}}', {"a": {}})]
)
def test_text_that_may_be_json_is_tried(raw: str, value: object) -> None:
    assert decode_or_none(raw) == value


def test_a_schema_is_what_json_gives_back() -> None:
    assert make_schema(Box) == decode_or_none(encode(make_schema(Box)).decode())


@pytest.mark.parametrize("kind", [Item, Box, *SUBMITTED_BY])
def test_a_schema_is_one_object_that_refers_to_nothing(kind: type[Record]) -> None:
    found = make_schema(kind)
    assert found["type"] == "object"
    assert "title" not in found
    assert "description" not in found
    assert "$ref" not in str(found)
    assert "$defs" not in found


class Shape(Record):
    kind: Kind
    name: Annotated[str, Meta(min_length=1)]
    note: Annotated[str | None, Meta(description="What for.")] = None
    other: Kind | None = None
    size: int = 3
    label: Annotated[str | None, Meta(extra_json_schema={"deprecated": True})] = None


def test_a_schema_says_only_what_a_model_needs() -> None:
    kinds = {"enum": ["box", "lid"]}
    assert make_schema(Shape) == {
        "type": "object",
        "required": ["kind", "name"],
        "properties": {
            "kind": kinds,
            "name": {"type": "string"},
            "note": {"type": "string", "description": "What for."},
            "other": kinds,
            "size": {"type": "integer", "default": 3},
        },
    }
    assert fit(Shape, {"kind": "box", "name": "a", "label": "old"}).label == "old"


def test_a_schema_keeps_descriptions_and_what_is_required() -> None:
    found = make_schema(Findings)
    assert found["required"] == ["summary", "findings", "open_questions"]
    finding = found["properties"]["findings"]["items"]
    assert finding["properties"]["line"] == {"type": "integer", "description": "Line that shows it, from 1."}
    assert "description" in finding["properties"]["claim"]
    assert make_schema(Plan)["properties"]["steps"]["items"]["required"] == ["title", "files"]


MANY_AT_ONCE = """
import os, sys, threading
from agentflow.core.task import TaskState
from agentflow.parse import Mismatch, fit

def use(gate):
    gate.wait()
    try:
        fit(TaskState, {"task_id": "x", "status": "running"})
    except Mismatch:
        pass

sys.setswitchinterval(1e-6)
for _ in range(100):
    if not (child := os.fork()):
        gate = threading.Barrier(8)
        threads = [threading.Thread(target=use, args=(gate,)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


def test_the_first_values_of_a_type_may_come_in_several_threads_at_once() -> None:
    run = subprocess.run([sys.executable, "-c", MANY_AT_ONCE], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0"] * 100
