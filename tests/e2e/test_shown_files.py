"""An image read by a role reaches a model that sees it, over the Messages API."""

import struct
from collections.abc import Callable
from typing import Any

from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.live import live
from tests.support.messages_server import Answer, Asked, Plays, refuses, serving, use
from tests.support.repo import NewRepo

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 3) + b"\x08\x06"


def images_of(asked: Asked) -> list[dict[str, Any]]:
    blocks = [block for message in asked.body["messages"] for block in message["content"]]
    results = (block["content"] for block in blocks if block["type"] == "tool_result")
    parts = (part for content in results if isinstance(content, list) for part in content)
    return [part for part in parts if part["type"] == "image"]


def looking(*, refuse: bool) -> Callable[[Asked], Answer]:
    """Return a crew whose implementer looks at an image first, at a server that may not take it."""

    def policy(asked: Asked) -> Answer:
        if refuse and images_of(asked):
            return refuses(400, "invalid_request_error", "could not process image")
        if role_of(asked) == "implementer" and asked.turn == 0:
            return Plays(
                (use("Read", {"file_path": "a.png"}), use("Read", {"file_path": "calc.py"}, "toolu_2"))
            )
        return honest(asked)

    return policy


def test_an_image_is_sent_and_left_out_where_it_is_refused(new_repo: NewRepo) -> None:
    for refuse in (False, True):
        repo = new_repo(play.QUICK)
        (repo.root / "a.png").write_bytes(PNG)
        repo.commit()
        with serving(policy=looking(refuse=refuse)) as server:
            done = live(repo, server, limits={"shows": ["image"]})
        assert done.code == 0, done.err
        sent = [asked for asked in server.asked if images_of(asked)]
        assert images_of(sent[0])[0]["source"]["media_type"] == "image/png"
        told = [asked for asked in server.asked if b"did not take it" in asked.raw]
        assert bool(told) == refuse
