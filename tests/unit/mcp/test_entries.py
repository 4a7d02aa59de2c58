"""What the files that configure servers mean."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentflow.mcp.entries import ServerEntries, ServerFile, ServerSource, read_entries

STDIO = {"command": "run", "args": ["x"]}


def read(folder: Path, **files: Any) -> ServerEntries:
    """Return the servers of files by their source."""
    places = []
    for source, servers in files.items():
        path = folder / f"{source}.json"
        path.write_text(servers if isinstance(servers, str) else json.dumps(servers), "utf-8")
        places.append(ServerFile(path=path, source=ServerSource(source)))
    return read_entries(places, folder)


def only(folder: Path, entry: Any, name: str = "a", source: str = "user") -> tuple[Any, tuple[str, ...]]:
    found = read(folder, **{source: {"mcpServers": {name: entry}}})
    (server,) = found.all
    return server, found.warnings


@pytest.mark.parametrize("name", ["a", "A-1", "plugin_x_y", "x" * 64])
def test_a_plain_name_is_taken(name: str, tmp_path: Path) -> None:
    assert only(tmp_path, STDIO, name)[0].problem == ""


@pytest.mark.parametrize(
    "name", ["a b", "a__b", "_a", "a_", "", "a.b", "ä", "a/b", "x" * 65, "a\n", "mcp__a"]
)
def test_a_name_that_could_be_another_rule_is_refused(name: str, tmp_path: Path) -> None:
    server, warnings = only(tmp_path, STDIO, name)
    assert "its name may hold letters" in server.problem
    assert json.dumps(name) in warnings[0]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"url": "http://h"}, "has a url and no type"),
        ({"type": "sse", "url": "http://h"}, "sse is not supported"),
        ({"type": "carrier", "url": "http://h"}, "'carrier' is not supported"),
        ({"type": "http", "url": "file:///etc/passwd"}, "not an http address"),
        ({}, "needs a command"),
        ({"command": "x", "type": "http", "url": "http://h"}, "needs a command"),
        ({"command": ["x"]}, "command: expected"),
        ({"command": "x", "args": "y"}, "args: expected"),
        ({**STDIO, "env": {"A": 1}}, "env"),
        ({**STDIO, "disabled": True}, "is disabled"),
        ("run", "expected"),
        (None, "expected"),
    ],
)
def test_an_entry_that_cannot_be_started_says_why(entry: Any, problem: str, tmp_path: Path) -> None:
    assert problem in only(tmp_path, entry)[0].problem


def test_keys_of_other_programs_are_left_to_them(tmp_path: Path) -> None:
    server, warnings = only(tmp_path, {**STDIO, "type": "stdio", "autoApprove": ["x"], "alwaysAllow": True})
    assert (server.problem, server.command, warnings) == ("", ("run", "x"), ())


def test_variables_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "here")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    entry = {
        "command": "${HERE}/${CLAUDE_PROJECT_DIR}",
        "args": ["${MISSING:-else}", "${MISSING}", "${MISSING:-}", "$HERE"],
        "env": {"A": "${ANTHROPIC_API_KEY}"},
    }
    own, warnings = only(tmp_path, entry)
    assert own.command == (f"here/{tmp_path}", "else", "${MISSING}", "", "$HERE")
    assert own.env == {"A": "secret"}
    assert warnings == (f"{tmp_path}/user.json: MCP server a: MISSING is not set",)
    theirs, warnings = only(tmp_path, entry, source="project")
    assert theirs.env == {"A": "${ANTHROPIC_API_KEY}"}
    assert "ANTHROPIC_API_KEY is a key of the model, which no repository gets" in warnings[1]
    assert "secret" not in theirs.does


def test_of_two_servers_of_one_name_the_whole_entry_of_the_higher_counts(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user={"mcpServers": {"a": {**STDIO, "env": {"X": "1"}}, "b": STDIO}},
        project={"mcpServers": {"a": {"command": "theirs"}}},
        local={"projects": {str(tmp_path): {"mcpServers": {"b": {"command": "mine"}}}}},
    )
    assert {each.name: (each.command[0], each.source, dict(each.env)) for each in found.all} == {
        "b": ("mine", "local", {}),
        "a": ("theirs", "project", {}),
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\ufeff"])
def test_a_file_that_is_wrong_is_named_and_the_others_count(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, project=text, user={"mcpServers": {"a": STDIO}})
    assert [each.name for each in found.all] == ["a"]
    assert str(tmp_path / "project.json") in found.warnings[0]


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    found = read(tmp_path, user="\ufeff" + json.dumps({"mcpServers": {"a": STDIO}}))
    assert (len(found.usable), found.warnings) == (1, ())


def test_the_secrets_of_an_entry_are_those_with_such_a_name(tmp_path: Path) -> None:
    entry = {
        "type": "http",
        "url": "http://h",
        "headers": {"Authorization": "Bearer 0123456789", "X": "0123456789"},
    }
    assert only(tmp_path, entry)[0].secrets == ("0123456789",)
