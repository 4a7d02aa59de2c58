import stat
import unicodedata

import pytest

from agentflow.core.errors import InvalidInput, OutsideWorkspace
from agentflow.core.file_text import decode_file
from agentflow.core.messages import Reply, Text, ToolCall, ToolResult
from agentflow.core.run import CallAnswered, ReplyReceived
from agentflow.tools.files import EDIT, MAX_READ_CHARS, MULTI_EDIT, READ, WRITE
from agentflow.tools.inputs import check_input
from tests.unit.tools.bench import Bench

_KEPT = "encoding {}, which Edit and Write keep"
_UNKNOWN = "encoding unknown, each byte is shown as Latin-1: add ASCII only"
_BROKEN = "some bytes are not UTF-8 and shown as \ufffd: change other lines, with Edit"


def test_read_numbers_the_lines(bench: Bench) -> None:
    bench.file("src/a.py", "one\n\ttwo\n")
    assert bench(READ, file_path="src/a.py").content == "     1\tone\n     2\t\ttwo\n[2 lines]"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("", "a.txt is empty"),
        ("\n", "     1\t\n[1 lines]"),
        ("no end", "     1\tno end\n[1 lines]"),
        (b"\xef\xbb\xbfbom\r\ncrlf\r\n", "     1\tbom\n     2\tcrlf\n[2 lines]"),
        (b"caf\xe9\n", "     1\tcaf\xe9\n[1 lines; encoding latin-1, which Edit and Write keep]"),
        (b"5 \x80\n", "     1\t5 \u20ac\n[1 lines; encoding cp1252, which Edit and Write keep]"),
        (
            "# coding: koi8-r\n# \u0434\u0430\n".encode("koi8-r"),
            f"     1\t# coding: koi8-r\n     2\t# \u0434\u0430\n[2 lines; {_KEPT.format('koi8-r')}]",
        ),
        (
            "\u0434\u043e\u043c\n".encode("koi8-r"),
            f"     1\t\xc4\xcf\xcd\n[1 lines; {_UNKNOWN}]",
        ),
        (
            "\xe4\xf6\xfc\xdf".encode() + b"\xff",
            f"     1\t\xe4\xf6\xfc\xdf\ufffd\n[1 lines; {_BROKEN}]",
        ),
        (
            "\ufeffa\r\nb\r\n".encode("utf-16-le"),
            "     1\ta\n     2\tb\n[2 lines; encoding utf-16-le, which Edit and Write keep]",
        ),
        ("page\x0cbreak\u2028here\n", "     1\tpage\x0cbreak\u2028here\n[1 lines]"),
    ],
)
def test_read_shows_odd_texts_by_lines(bench: Bench, content: str | bytes, shown: str) -> None:
    bench.file("a.txt", content)
    assert bench(READ, file_path="a.txt").content == shown


def test_read_pages_through_a_long_file(bench: Bench) -> None:
    bench.file("long.txt", "".join(f"line {number}\n" for number in range(1, 4501)))
    first = bench(READ, file_path="long.txt").content.splitlines()
    assert len(first) == 2001
    assert first[-1] == "[lines 1 to 2000 of 4500; go on with offset 2001]"
    last = bench(READ, file_path="long.txt", offset=4500, limit=7).content
    assert last == "  4500\tline 4500\n[lines 4500 to 4500 of 4500]"
    with pytest.raises(InvalidInput, match="only 4500 lines"):
        bench(READ, file_path="long.txt", offset=4501)


def test_read_cuts_a_long_line_and_says_so(bench: Bench) -> None:
    bench.file("min.js", "x" * (MAX_READ_CHARS + 5) + "\n" + "y" * MAX_READ_CHARS)
    first, second, _ = bench(READ, file_path="min.js").content.splitlines()
    assert first == f"     1\t{'x' * MAX_READ_CHARS}… [5 more characters]"
    assert second == f"     2\t{'y' * MAX_READ_CHARS}"


def test_read_refuses_what_is_no_text(bench: Bench) -> None:
    bench.file("a.bin", b"abc\0def")
    with bench.file("big.txt").open("wb") as file:
        file.truncate(10_000_001)
    for path, problem in (("a.bin", "binary"), ("big.txt", "binary"), ("none", "no such"), (".", "folder")):
        with pytest.raises(InvalidInput, match=problem):
            bench(READ, file_path=path)


def test_edit_replaces_the_only_occurrence(bench: Bench) -> None:
    place = bench.file("src/a.py", "a = 1\nb = 1\n")
    place.chmod(0o755)
    bench(READ, file_path="src/a.py")
    output = bench(EDIT, file_path="src/a.py", old_string="a = 1", new_string="a = 2")
    assert output.content == "edited src/a.py: 1 replacement"
    assert place.read_text() == "a = 2\nb = 1\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def test_edit_takes_the_texts_as_they_are(bench: Bench) -> None:
    place = bench.file("a.txt", r"f(.*) \1 [x]")
    bench(READ, file_path="a.txt")
    bench(EDIT, file_path="a.txt", old_string=r"(.*) \1 [", new_string=r"\g<0> \n \\ ")
    assert place.read_text() == r"f\g<0> \n \\ x]"


@pytest.mark.parametrize("old", ["x = 1", "aa"])
def test_edit_refuses_an_ambiguous_place_and_names_the_lines(bench: Bench, old: str) -> None:
    place = bench.file("a.py", "x = 1\ny\nx = 1\naaa\n")
    bench(READ, file_path="a.py")
    lines = "1, 3" if old == "x = 1" else "4, 4"
    with pytest.raises(InvalidInput, match=f"occurs 2 times in a.py, on lines {lines}"):
        bench(EDIT, file_path="a.py", old_string=old, new_string="z")
    assert place.read_text() == "x = 1\ny\nx = 1\naaa\n"


def test_edit_replaces_all_when_told(bench: Bench) -> None:
    place = bench.file("a.py", "x = 1\ny\nx = 1\n")
    bench(READ, file_path="a.py")
    output = bench(EDIT, file_path="a.py", old_string="x = 1", new_string="z", replace_all=True)
    assert output.content == "edited a.py: 2 replacements"
    assert place.read_text() == "z\ny\nz\n"


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("nothing like it", r"0 matches\): read the file again"),
        ("     1\tdef f():", "leave out the line numbers"),
        ("def f():\n\treturn 1", "its first line is on 1, 3: compare white space"),
    ],
)
def test_edit_says_why_nothing_was_found(bench: Bench, old: str, hint: str) -> None:
    bench.file("a.py", "def f():\n    return 1\ndef f():\n")
    bench(READ, file_path="a.py")
    with pytest.raises(InvalidInput, match=hint):
        bench(EDIT, file_path="a.py", old_string=old, new_string="x")


LOOSE = "; white space at line ends differed from old_string (edit {})"


@pytest.mark.parametrize(
    ("before", "old", "after", "note"),
    [
        ("a  \nb\t\nc\n", "a\nb\n", "X\nc\n", LOOSE.format(1)),
        ("a\nb\nc\n", "a  \nb \n", "X\nc\n", LOOSE.format(1)),
        ("a \r\nb\r\n", "a\nb", "X\r\nb2\r\n", LOOSE.format(1)),
        ("a\nb\n", "b  ", "a\nX\n", LOOSE.format(1)),
        ("a \na\n", "a \n", "X\na\n", ""),
    ],
)
def test_an_edit_tolerates_white_space_at_line_ends_and_says_so(
    bench: Bench, before: str, old: str, after: str, note: str
) -> None:
    place = bench.file("a.txt", before)
    bench(READ, file_path="a.txt")
    new = {"a\nb": "X\nb2", "b  ": "X"}.get(old, "X\n")
    output = bench(EDIT, file_path="a.txt", old_string=old, new_string=new)
    assert (place.read_bytes().decode(), output.content) == (after, f"edited a.txt: 1 replacement{note}")


@pytest.mark.parametrize("old", ["a \nb", "a\n b", "a  b"])
def test_white_space_elsewhere_counts(bench: Bench, old: str) -> None:
    bench.file("a.txt", "a b\nbbb\n")
    bench(READ, file_path="a.txt")
    with pytest.raises(InvalidInput, match="0 matches"):
        bench(EDIT, file_path="a.txt", old_string=old, new_string="x")


def test_multi_edit_makes_its_edits_in_turn_all_or_none(bench: Bench) -> None:
    place = bench.file("a.py", "a = 1\nb = 1\nc = 1  \n")
    edits = [
        {"old_string": "a = 1\n", "new_string": "a = 2\n"},
        {"old_string": "a = 2", "new_string": "a = 3"},
        {"old_string": "c = 1\n", "new_string": "c = 2\n"},
        {"old_string": " = ", "new_string": ": ", "replace_all": True},
    ]
    with pytest.raises(InvalidInput, match="was not read"):
        bench(MULTI_EDIT, file_path="a.py", edits=edits)
    bench(READ, file_path="a.py")
    late = [*edits, {"old_string": "gone", "new_string": "x"}]
    with pytest.raises(InvalidInput, match=r"edit 5 of 5: .*0 matches.*; nothing was written"):
        bench(MULTI_EDIT, file_path="a.py", edits=late)
    assert place.read_text() == "a = 1\nb = 1\nc = 1  \n"
    output = bench(MULTI_EDIT, file_path="a.py", edits=edits)
    assert output.content == f"edited a.py: 6 replacements{LOOSE.format(3)}"
    assert place.read_text() == "a: 3\nb: 1\nc: 2\n"


def test_edit_refuses_to_change_nothing(bench: Bench) -> None:
    bench.file("a.py", "a\nb\n")
    bench(READ, file_path="a.py")
    for old, new in (("a", "a"), ("a\nb", "a\r\nb")):
        with pytest.raises(InvalidInput, match="are the same"):
            bench(EDIT, file_path="a.py", old_string=old, new_string=new)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a", "x", b"\xef\xbb\xbfx\r\nb\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\nb\r\nc\nd\n", "b\nc", "x\ny", b"a\nx\r\ny\nd\n"),
        (b"a\nb\r\nc\nd\n", "a\nb", "x\ny", b"x\ny\r\nc\nd\n"),
        (b"caf\xe9 a\n", "a\n", "b\n", b"caf\xe9 b\n"),
        (b"a\n\n\nb", "\n\n\n", "\n", b"a\nb"),
    ],
)
def test_edit_keeps_line_endings_mark_and_foreign_bytes(
    bench: Bench, before: bytes, old: str, new: str, after: bytes
) -> None:
    place = bench.file("a.txt", before)
    bench(READ, file_path="a.txt")
    bench(EDIT, file_path="a.txt", old_string=old, new_string=new)
    assert place.read_bytes() == after


def test_edit_needs_the_file_to_have_been_read(bench: Bench) -> None:
    place = bench.file("a.py", "a\n")
    bench.file("b.py", "a\n")
    bench(READ, file_path="b.py")
    with pytest.raises(InvalidInput, match="Read it first"):
        bench(EDIT, file_path="a.py", old_string="a", new_string="b")
    assert place.read_text() == "a\n"


@pytest.mark.parametrize(
    ("command", "said", "old", "is_seen"),
    [
        ("sed -n 1,9p src/a.py", "first = 1\nsecond = 2\n", "first = 1\nsecond = 2", True),
        ("grep -n second src/a.py", "2:second = 2\n", "second = 2", True),
        ("grep -n second src/a.py", "2:second = 2\n", "first = 1\nsecond = 2", False),
        ("cat src/b.py", "first = 1\n", "first = 1", False),
        ("cat src/a.py", "first = 1\n", "first", False),
    ],
)
def test_lines_that_a_command_showed_can_be_edited(
    bench: Bench, command: str, said: str, old: str, is_seen: bool
) -> None:
    bench.file("src/a.py", "first = 1\nsecond = 2\n")
    call = ToolCall(id="b", name="Bash", input={"command": command})
    bench.advance(ReplyReceived(reply=Reply(parts=(Text(text="a.py: first = 1\nsecond = 2"), call))))
    bench.advance(CallAnswered(result=ToolResult(call_id="b", content=said)))
    if is_seen:
        assert bench(EDIT, file_path="src/a.py", old_string=old, new_string="x").content.startswith("edited")
    else:
        with pytest.raises(InvalidInput, match="Read it first"):
            bench(EDIT, file_path="src/a.py", old_string=old, new_string="x")


def test_a_failed_read_does_not_count(bench: Bench) -> None:
    bench.file("a.py", "a\n")
    with pytest.raises(InvalidInput):
        bench(READ, file_path="a.py", offset=9)
    with pytest.raises(InvalidInput, match="Read it first"):
        bench(EDIT, file_path="a.py", old_string="a", new_string="b")


def test_the_same_file_by_another_name_counts(bench: Bench) -> None:
    bench.file("src/a.py", "a\n")
    (bench.root / "link.py").symlink_to("src/a.py")
    bench(READ, file_path=str(bench.root / "link.py"))
    bench(EDIT, file_path="./src/../src/a.py", old_string="a", new_string="b")
    bench(EDIT, file_path="src/a.py", old_string="b", new_string="c")
    assert (bench.root / "src/a.py").read_text() == "c\n"


def test_a_read_of_the_same_reply_counts_once_it_has_a_result(bench: Bench) -> None:
    bench.file("a.py", "a\n")
    calls = (
        ToolCall(id="r", name="Read", input={"file_path": "a.py"}),
        ToolCall(id="e", name="Edit", input={"file_path": "a.py"}),
    )
    bench.advance(ReplyReceived(reply=Reply(parts=calls)))
    wanted = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    with pytest.raises(InvalidInput, match="Read it first"):
        check_input(EDIT, wanted, bench.context("e"))
    bench.advance(CallAnswered(result=ToolResult(call_id="r", content="")))
    check_input(EDIT, wanted, bench.context("e"))


def test_a_result_counts_for_the_call_of_its_own_reply_only(bench: Bench) -> None:
    bench.file("a.py", "a\n")
    for name, path in (("Read", "a.py"), ("Glob", "x")):
        call = ToolCall(id="same", name=name, input={"file_path": path})
        bench.advance(ReplyReceived(reply=Reply(parts=(call,))))
        failed = name == "Read"
        bench.advance(CallAnswered(result=ToolResult(call_id="same", content="", is_error=failed)))
    with pytest.raises(InvalidInput, match="Read it first"):
        bench(EDIT, file_path="a.py", old_string="a", new_string="b")


def test_write_creates_a_file_with_its_folders(bench: Bench) -> None:
    output = bench(WRITE, file_path="new/deep/a.py", content="a\nb\n")
    assert output.content == "created new/deep/a.py: 2 lines"
    assert (bench.root / "new/deep/a.py").read_bytes() == b"a\nb\n"
    bench(EDIT, file_path="new/deep/a.py", old_string="a", new_string="c")
    assert bench(WRITE, file_path="new/deep/a.py", content="x").content == "replaced new/deep/a.py: 1 line"


def test_write_does_not_replace_what_was_not_read(bench: Bench) -> None:
    place = bench.file("a.py", "precious\n")
    for path in ("a.py", "./a.py", str(place)):
        with pytest.raises(InvalidInput, match="Read it first"):
            bench(WRITE, file_path=path, content="")
    assert place.read_text() == "precious\n"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        (b"a\n", "x\r\n", b"x\r\n"),
        (b"a", "", b""),
    ],
)
def test_write_keeps_the_form_of_what_it_replaces(
    bench: Bench, before: bytes, content: str, after: bytes
) -> None:
    place = bench.file("a.txt", before)
    bench(READ, file_path="a.txt")
    bench(WRITE, file_path="a.txt", content=content)
    assert place.read_bytes() == after


_XML = "<?xml version='1.0' encoding='iso-8859-1'?>\n"
_UMLAUT = ("M\xfcn\n", "M\xfcn \xd6l\n")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (_UMLAUT[0].encode("latin-1"), *_UMLAUT, _UMLAUT[1].encode("latin-1")),
        (_UMLAUT[0].encode(), *_UMLAUT, _UMLAUT[1].encode()),
        (_XML.encode(), "?>\n", "?>\n\xd6\n", (_XML + "\xd6\n").encode("latin-1")),
        (b"# coding: latin-1\n# \xdf\n", "latin-1", "utf-8", "# coding: utf-8\n# \xdf\n".encode()),
        (
            "\ufeffa\r\n\xf6".encode("utf-16-be"),
            "a\n\xf6",
            "\u0434\n",
            "\ufeff\u0434\r\n".encode("utf-16-be"),
        ),
        ("\u0434\u043e\u043c a\n".encode("koi8-r"), "a", "b", "\u0434\u043e\u043c b\n".encode("koi8-r")),
        (
            "\xe4\xf6\xfc\xdf ".encode() + b"\xff a\n",
            "a",
            "\xe4",
            "\xe4\xf6\xfc\xdf ".encode() + b"\xff \xc3\xa4\n",
        ),
        (b"# coding: rot13\n# a\n", "# a", "# \xf6", b"# coding: rot13\n# \xc3\xb6\n"),
    ],
)
def test_edit_and_write_keep_the_encoding(
    bench: Bench, before: bytes, old: str, new: str, after: bytes
) -> None:
    place = bench.file("a.txt", before)
    shown = bench(READ, file_path="a.txt").content
    bench(EDIT, file_path="a.txt", old_string=old, new_string=new)
    assert place.read_bytes() == after
    if "not UTF-8" not in shown:
        place.write_bytes(before)
        whole = decode_file(before).text.replace("\r\n", "\n").replace(old, new)
        bench(WRITE, file_path="a.txt", content=whole)
        assert place.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "old", "new", "problem"),
    [
        (b"M\xfcn\n", "M", "\u20ac", r"a.txt is latin-1, in which '\\u20ac' cannot be written"),
        (b"M\xfcn\n", "M", "\ufffd", r"a.txt is latin-1, in which '\\ufffd' cannot be written"),
        ("\u0434\u043e\u043c a\n".encode("koi8-r"), "a", "\u0434", "unknown encoding"),
        ("\u0434\u043e\u043c a\n".encode("koi8-r"), "a", "\xfc", "unknown encoding"),
        ("\xe4\xf6\xfc\xdf a".encode() + b"\xff", "a", "\ufffd", "Write would destroy"),
    ],
)
def test_letters_that_the_file_cannot_hold_are_refused(
    bench: Bench, before: bytes, old: str, new: str, problem: str
) -> None:
    place = bench.file("a.txt", before)
    bench(READ, file_path="a.txt")
    whole = decode_file(before).shown.replace(old, new)
    with pytest.raises(InvalidInput, match=problem):
        bench(WRITE, file_path="a.txt", content=whole)
    if "destroy" not in problem:
        with pytest.raises(InvalidInput, match=problem):
            bench(EDIT, file_path="a.txt", old_string=old, new_string=new)
    assert place.read_bytes() == before


def test_a_new_file_has_the_encoding_that_it_names(bench: Bench) -> None:
    bench(WRITE, file_path="a.py", content="# coding: latin-1\n# \xdf\n")
    assert (bench.root / "a.py").read_bytes() == b"# coding: latin-1\n# \xdf\n"


def test_names_match_whatever_composes_their_letters(bench: Bench) -> None:
    stored, typed = (unicodedata.normalize(form, "d\xe9j\xe0/\ud559\uc810.md") for form in ("NFD", "NFC"))
    place = bench.file(stored, "points\n")
    assert "points" in bench(READ, file_path=typed).content
    bench(EDIT, file_path=str(bench.root / typed), old_string="points", new_string="marks")
    bench(WRITE, file_path=typed, content="one\n")
    assert place.read_text() == "one\n"
    assert [*place.parent.iterdir()] == [place]


@pytest.mark.parametrize("name", ["src/page.py", "lib/pages.py", "Pages.py"])
def test_a_name_that_leads_nowhere_is_told_the_near_ones(bench: Bench, name: str) -> None:
    bench.file("src/pages.py", "")
    with pytest.raises(InvalidInput, match=r"no such file; did you mean src/pages.py\?"):
        bench(READ, file_path=name)


def test_binary_files_are_neither_edited_nor_replaced(bench: Bench) -> None:
    place = bench.file("a.bin", b"a\0")
    for tool, given in ((EDIT, {"old_string": "a", "new_string": "b"}), (WRITE, {"content": ""})):
        with pytest.raises(InvalidInput, match="binary"):
            bench(tool, file_path="a.bin", **given)
    assert place.read_bytes() == b"a\0"


def test_half_a_surrogate_pair_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        bench(WRITE, file_path="a.txt", content="\ud800")
    assert not (bench.root / "a.txt").exists()


def test_nothing_is_written_outside_or_into_policy(bench: Bench) -> None:
    (bench.root / "out").symlink_to("..")
    before = sorted(bench.root.parent.iterdir())
    for path in ("../a.py", "out/a.py", "/tmp/a.py", ".git/config", ".claude/settings.json"):
        with pytest.raises(OutsideWorkspace):
            bench(WRITE, file_path=path, content="x")
        with pytest.raises((OutsideWorkspace, InvalidInput)):
            bench(EDIT, file_path=path, old_string="a", new_string="x")
    assert sorted(bench.root.parent.iterdir()) == before
