"""Read of images and PDFs, for models that see them and for others."""

import struct
from base64 import b64decode

import pytest

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.messages import ToolResult, measure_part
from agentflow.core.tool import ToolContext
from agentflow.model.tiers import find_shown_kinds
from agentflow.settings import Settings
from agentflow.tools.files import MOST_BYTES, READ
from tests.unit.tools.bench import Bench


def png(wide: int, high: int, rest: bytes = b"\x08\x06") -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", wide, high) + rest


def pdf(pages: int) -> bytes:
    return b"%PDF-1.7\n<< /Type /Pages /Count 3 >>\n" + b"<< /Type /Page >>\n" * pages


class Seeing(Bench):
    shows: tuple[str, ...] = ("image", "pdf")

    def context(self, call_id: str = "call-0") -> ToolContext:
        context = super().context(call_id)
        return context.replace(shell=context.shell.replace(shows=self.shows))


@pytest.fixture
def seeing(bench: Bench) -> Seeing:
    return Seeing(bench.root, bench.outputs)


GOOD = {
    "a.png": (png(640, 480), "image/png", "a.png: image, 640 x 480"),
    "a.gif": (b"GIF89a\x02\x00\x03\x00;", "image/gif", "a.gif: image, 2 x 3"),
    "a.jpg": (
        b"\xff\xd8\xff\xe0\x00\x02\xff\xc0\x00\x0b\x08\x00\x05\x00\x07",
        "image/jpeg",
        "a.jpg: image, 7 x 5",
    ),
    "a.pdf": (pdf(2), "application/pdf", "a.pdf: PDF, about 2 pages"),
    "packed.pdf": (pdf(0), "application/pdf", "packed.pdf: PDF, about 3 pages"),
}
BAD = {
    "bomb.png": (png(100_000, 2), "has 100000 x 2 pixels"),
    "cut.png": (png(1, 1)[:12], "of a form that cannot be shown"),
    "huge.png": (png(1, 1, bytes(MOST_BYTES)), "of more than 2 MB"),
    "huge.pdf": (pdf(1) + bytes(12_000_000), "of more than 2 MB"),
    "long.pdf": (pdf(400), "has 400 pages"),
    "other.bin": (b"\0\1\2", "is binary"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_a_model_sees_is_shown_whole(seeing: Seeing, name: str) -> None:
    content, kind, said = GOOD[name]
    seeing.file(name, content)
    output = seeing(READ, file_path=name)
    shown = ToolResult(call_id="c", content=output.content, shown=output.shown)
    assert (output.content, shown.shown_kind, b64decode(shown.shown_content)) == (said, kind, content)
    # its bytes say nothing of its tokens
    assert measure_part(shown) < 30_000


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_shown_is_named(seeing: Seeing, name: str) -> None:
    content, said = BAD[name]
    seeing.file(name, content)
    with pytest.raises(InvalidInput, match=said):
        seeing(READ, file_path=name)


def test_another_model_gets_one_line(bench: Bench) -> None:
    for name, what in (("a.png", "an image"), ("a.pdf", "a PDF")):
        bench.file(name, GOOD[name][0])
        with pytest.raises(InvalidInput, match=f"^{name} is {what}, which this model cannot be shown$"):
            bench(READ, file_path=name)


def test_the_guard_of_files_comes_first(seeing: Seeing) -> None:
    seeing.file("../out.png", GOOD["a.png"][0])
    (seeing.root / "link.png").symlink_to("../out.png")
    for name in ("../out.png", "link.png"):
        with pytest.raises(ToolError, match="out of the repository"):
            seeing(READ, file_path=name)


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("claude-opus-5", ("image", "pdf")),
        ("anthropic/claude-opus-5", ("image", "pdf")),
        ("openrouter/anthropic/claude-opus-5", ("image",)),
        ("openai/gpt-5-mini", ("image",)),
        ("ollama/qwen3-coder", ()),
        ("ollama/qwen2.5-vl", ("image",)),
        ("small-1", ()),
    ],
)
def test_a_name_tells_what_a_model_sees(model: str, kinds: tuple[str, ...]) -> None:
    assert find_shown_kinds(model, Settings()) == kinds
