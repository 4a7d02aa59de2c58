"""Images and documents: what of them a model can be shown."""

import re
from base64 import b64encode
from collections.abc import Mapping

from agentflow.core.errors import InvalidInput
from agentflow.core.tool import Output, ToolContext
from agentflow.workspace.path_guard import suggest_near

MOST_BYTES = 2_000_000
MOST_PAGES = 20
MOST_PIXELS = 8_000
"""In width and height, beyond which providers refuse an image."""
_HEAD_BYTES = 16
_IMAGES: Mapping[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR(?P<wide>.{4})(?P<high>.{4})", re.DOTALL),
    "image/gif": re.compile(rb"GIF8[79]a(?P<wide>.{2})(?P<high>.{2})", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff.*?\xff[\xc0-\xc3]..\x08(?P<high>.{2})(?P<wide>.{2})", re.DOTALL),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8X.{8}(?P<wide>.{3})(?P<high>.{3})", re.DOTALL),
}
_STARTS = (b"\x89PNG\r\n", b"GIF8", b"\xff\xd8\xff", b"RIFF")
_LITTLE = ("image/gif", "image/webp")
_PDF = b"%PDF-"
_PAGE = re.compile(rb"/Type\s*/Page(?![\w])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})\b")


def show_file(path: str, context: ToolContext) -> Output | None:
    """Return an image or a PDF as the model sees it; None for another file. Raises InvalidInput."""
    with suggest_near(context.workspace), context.workspace.open(path) as file:
        head = file.read(_HEAD_BYTES)
        is_pdf = head.startswith(_PDF)
        is_image = head.startswith(_STARTS) and (head[:4] != b"RIFF" or head[8:12] == b"WEBP")
        if not is_pdf and not is_image:
            return None
        kind = "pdf" if is_pdf else "image"
        if kind not in context.shell.shows:
            raise InvalidInput(f"{path} is {_NAMES[kind]}, which this model cannot be shown")
        content = head + file.read(MOST_BYTES + 1 - len(head))
    if len(content) > MOST_BYTES:
        raise InvalidInput(
            f"{path} is {_NAMES[kind]} of more than {MOST_BYTES // 1_000_000} MB, too large to show"
        )
    return _show_pdf(path, content) if is_pdf else _show_image(path, content)


_NAMES = {"pdf": "a PDF", "image": "an image"}


def _show_image(path: str, content: bytes) -> Output:
    for kind, pattern in _IMAGES.items():
        if found := pattern.match(content):
            order = "little" if kind in _LITTLE else "big"
            wide, high = (int.from_bytes(found[side], order) for side in ("wide", "high"))  # type: ignore[arg-type]
            if max(wide, high) > MOST_PIXELS or not wide * high:
                raise InvalidInput(f"{path} has {wide} x {high} pixels; at most {MOST_PIXELS} can be shown")
            return _output(f"{path}: image, {wide} x {high}", kind, content)
    raise InvalidInput(f"{path} is an image of a form that cannot be shown: convert it to PNG")


def _show_pdf(path: str, content: bytes) -> Output:
    told = max(map(int, _COUNT.findall(content)), default=MOST_PAGES)
    pages = len(_PAGE.findall(content)) or told or MOST_PAGES  # they may lie in compressed objects
    if pages > MOST_PAGES:
        raise InvalidInput(
            f"{path} has {pages} pages; at most {MOST_PAGES} are shown: take some out into a file"
        )
    return _output(f"{path}: PDF, about {pages} pages", f"application/pdf;pages={pages}", content)


def _output(said: str, kind: str, content: bytes) -> Output:
    return Output(content=said, shown=f"data:{kind};base64,{b64encode(content).decode()}")
