import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentflow.core.errors import InvalidFile
from agentflow.frontmatter import dump_yaml, find_key_line, join, load_yaml, split, write_atomic

ANY_TEXT = st.text()
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), PLAIN, max_size=4))
def test_plain_values_come_back_equal(values: dict[str, Any]) -> None:
    assert load_yaml(dump_yaml(values), "a") == values


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_comes_back_from_head_and_body(value: str, body: str) -> None:
    assert split(join({"key": value}, body), "a") == ({"key": value}, body)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "yes",
        "on",
        "1.10",
        "12:30:45",
        "0x1F",
        "010",
        "1_000",
        "1e3",
        ".inf",
        "2026-01-02",
        "+1",
        "True",
        "NULL",
        "=",
    ],
)
def test_what_only_looks_like_something_else_stays_text(text: str) -> None:
    assert load_yaml(f"key: {text}\n", "a") == {"key": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [("null", None), ("~", None), ("", None), ("true", True), ("false", False), ("0", 0), ("-12", -12)],
)
def test_few_words_are_not_text(text: str, value: object) -> None:
    assert load_yaml(f"key: {text}\n", "a") == {"key": value}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' stands twice"),
        ("a:\n  b: 1\n  b: 2\n", 3, "key 'b' stands twice"),
        ("a: &x 1\nb: *x\n", 2, "aliases are not allowed"),
        ("a: [1\nb: 2\n", 2, ""),
        ("a: b: c\n", 1, "mapping values are not allowed in this context"),
        ("? [a]\n: 1\n", 1, "a key must be a word"),
        ("a: !!python/object:os.system x\n", 1, "could not determine a constructor"),
        ("a: 1\nb: \x07\n", 2, "control character"),
        ("a: \x00\n", 1, "control character"),
        ("a: 1\n\tb: 2\n", 2, ""),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_yaml(text, "some.yaml")
    assert (caught.value.source, caught.value.line) == ("some.yaml", line)
    assert said in caught.value.problem


def test_lines_count_from_the_first_one_of_the_file() -> None:
    with pytest.raises(InvalidFile) as caught:
        split("---\na: 1\na: 2\n---\n", "a.md")
    assert str(caught.value).startswith("a.md:3: ")


def test_a_bomb_of_aliases_is_refused() -> None:
    bomb = "a: &a [x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcde", "bcdef", strict=True))
    with pytest.raises(InvalidFile, match="aliases"):
        load_yaml(bomb, "a")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f")))
@example("\U000e0041")
@example("\\ud83d\\ude00")
def test_json_is_yaml_also_where_it_escapes_pairs_of_surrogates(text: str) -> None:
    assert load_yaml(json.dumps([text, {"key": text}]), "a") == [text, {"key": text}]


def test_half_a_pair_of_surrogates_comes_back() -> None:
    assert load_yaml(dump_yaml({"name": "a\udc80"}), "a") == {"name": "a\udc80"}


def test_a_merge_key_is_no_way_around() -> None:
    with pytest.raises(InvalidFile):
        load_yaml("a: &a {x: 1}\nb:\n  <<: *a\n", "a")


def test_very_deep_nesting_is_an_error_of_the_file() -> None:
    with pytest.raises(InvalidFile):
        load_yaml("[" * 5000, "a")


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(InvalidFile, match="longer than 1,000,000 characters"):
        load_yaml("a" * 1_000_001, "a")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "must begin with"),
        ("a: 1\n", 1, "must begin with"),
        ("\n---\na: 1\n---\n", 1, "must begin with"),
        ("----\na: 1\n---\n", 1, "must begin with"),
        ("---\na: 1\n", 2, "not closed"),
        ("---\na: 1\n--- x\n", 3, "not closed"),
        ("---\n- a\n---\n", 2, "keys and values"),
        ("---\n---\n", 2, "keys and values"),
        ("---\nword\n---\n", 2, "keys and values"),
    ],
)
def test_a_damaged_head_is_an_error_and_never_empty(text: str, line: int, said: str) -> None:
    with pytest.raises(InvalidFile, match=said) as caught:
        split(text, "a.md")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\na: b\n---\nbody\n---\nmore\n", "body\n---\nmore\n"),
        ("\ufeff---\na: b\n---\n", ""),
        ("---  \r\na: b\r\n--- \r\nbody\r\n", "body\r\n"),
        ("---\na: b\n---", ""),
    ],
)
def test_the_body_begins_after_the_head(text: str, body: str) -> None:
    assert split(text, "a.md") == ({"a": "b"}, body)


def test_the_line_of_a_key_is_found_in_the_head_only() -> None:
    text = "---\nname: a\ntools:\n  - name: x\n---\nskills: no\n"
    assert [find_key_line(text, key) for key in ("name", "tools", "skills", "nam")] == [2, 3, None, None]


def test_a_file_is_replaced_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    write_atomic(path, b"old")
    write_atomic(path, b"new", mode=0o644)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o644)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/full").touch()
    with pytest.raises(OSError, match="folder"):
        write_atomic(tmp_path / "folder", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "real").read_bytes() == b"mine"
    assert not (tmp_path / "link").is_symlink()


def test_a_reader_sees_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, b"0" * 100_000)
    seen: set[bytes] = set()
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            content = path.read_bytes()
            seen.add(content[:1] if content == content[:1] * 100_000 else b"torn")

    reader = threading.Thread(target=poll)
    reader.start()
    begin, number = time.monotonic(), 0
    while number < 40 or (len(seen) < 3 and time.monotonic() < begin + 30):
        number += 1
        write_atomic(path, str(number % 10).encode() * 100_000)
    done.set()
    reader.join()
    assert b"torn" not in seen
    assert len(seen) >= 3


def test_a_file_is_for_its_owner_unless_said_otherwise(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomic(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
