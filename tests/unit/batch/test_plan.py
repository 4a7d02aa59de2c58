"""What a file of tasks may say, and how a mistake in it is named."""

from pathlib import Path

import pytest

from agentflow.batch.plan import read_plan
from agentflow.core.errors import ConfigError

HERE = '{"repository": ".", "text": "x", '
GOOD = '{"repository": ".", "text": "mend it"}\n'
YAML = "- repository: .\n  text: mend it\n"
BAD = {
    "t.jsonl": {
        GOOD + '{"text": "x"}': "t.jsonl:2: object missing required field `repository`",
        GOOD + "\n{": "t.jsonl:3: not JSON",
        GOOD + '{"repository": "away", "text": "x"}': "t.jsonl:2: repository: away is neither a folder nor",
        GOOD + HERE + '"id": "../up"}': "t.jsonl:2: id: ",
        GOOD + HERE + '"id": "0001"}': "t.jsonl:2: id: '0001' is the id of an earlier",
        HERE + '"max_tokens": "many"}': "t.jsonl:1: max_tokens: ",
        '{"repository": "a\\u0000", "text": "x"}': "t.jsonl:1: a text in it has a null character",
        '{"repository": "~no-such-user/a", "text": "x"}': "t.jsonl:1: repository: ~no-such-user/a is neither",
        HERE + '"check": {"command": "c", "files": {"../a": ""}}}': "check.files: '../a'",
        HERE + '"edits": [{"file": ".git/config", "old": "a", "new": "b"}]}': "edits: ",
        "\n": "there is no task in it",
    },
    "t.yaml": {
        YAML + "- repository: .\n": "t.yaml:3: [1]: object missing required field `text`",
        YAML + "- {repository: ., text: x,\n   modle: y}\n": "t.yaml:4: [1]: object contains unknown",
        YAML + "- {repository: ., text: x, id: '0001'}\n": "t.yaml:3: id: '0001' is the id of",
        "a: [": "t.yaml:",
    },
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_mistake_is_one_message_with_file_line_and_key(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_plan(tmp_path / name)
    said = str(caught.value)
    assert BAD[name][text] in said
    assert "\n" not in said
    assert said.startswith(str(tmp_path / name))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe")
    for name in ("a.jsonl", "b.jsonl"):
        with pytest.raises(ConfigError, match=name):
            read_plan(tmp_path / name)


@pytest.mark.parametrize(("name", "text"), [("t.jsonl", GOOD * 2), ("t.yaml", YAML * 2), ("t.yml", YAML * 2)])
def test_tasks_get_ids_in_the_order_of_the_file_and_absolute_places(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    found = read_plan(tmp_path / name)
    assert [task.id for task in found] == ["0001", "0002"]
    assert {task.repository for task in found} == {str(tmp_path.resolve())}


def test_a_byte_order_mark_and_line_breaks_inside_a_text_are_no_mistakes(tmp_path: Path) -> None:
    odd = GOOD.replace("mend", "a\u2028b\x85c")
    (tmp_path / "t.jsonl").write_text(f"\ufeff{GOOD}\r\n{odd}", "utf-8", newline="")
    assert [task.text for task in read_plan(tmp_path / "t.jsonl")] == ["mend it", "a\u2028b\x85c it"]


def test_a_script_lies_beside_the_file_and_an_address_stays_as_it_is(tmp_path: Path) -> None:
    line = '{"repository": "https://git.example.org/a/b.git", "text": "x", "model": "script:s.yaml"}'
    (tmp_path / "t.jsonl").write_text(line)
    (task,) = read_plan(tmp_path / "t.jsonl")
    assert (task.repository, task.model) == ("https://git.example.org/a/b.git", f"script:{tmp_path}/s.yaml")
