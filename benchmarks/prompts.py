"""Prompts as blocks: what two share, and what a provider's cache would read of them."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from agentflow.core.record import Record

LOOK_BACK = 20
"""Blocks in which a provider finds an earlier prefix, the one with the breakpoint among them."""
MINIMUM = 1_024
"""Tokens below which nothing is cached."""
CHARACTERS_A_TOKEN = 4
_WRITE, _READ = 1.25, 0.1


class Block(NamedTuple):
    """A tool, a system text or a part of a message, as a cache sees it."""

    key: str
    """Its content, and whose it is."""
    tokens: float
    marked: bool


class Parts(NamedTuple):
    """A request's blocks in the order in which a provider puts them together."""

    tools: tuple[Block, ...]
    system: tuple[Block, ...]
    text: tuple[Block, ...]
    model: str

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*self.tools, *self.system, *self.text)


def parts(raw: bytes) -> Parts:
    body = json.loads(raw)
    messages = ((m["role"], content) for m in body["messages"] for content in m["content"])
    return Parts(
        tools=tuple(_block("tool", tool) for tool in body.get("tools", ())),
        system=tuple(_block("system", text) for text in body.get("system", ())),
        text=tuple(_block(speaker, content) for speaker, content in messages),
        model=body["model"],
    )


def _block(kind: str, content: dict[str, Any]) -> Block:
    marked = content.pop("cache_control", None) is not None
    written = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    said = content["text"] if content.get("type") == "text" else written
    return Block(key=f"{kind} {written}", tokens=len(said) / CHARACTERS_A_TOKEN, marked=marked)


def tokens(blocks: Iterable[Block]) -> float:
    return sum(block.tokens for block in blocks)


def common(before: Sequence[Block], after: Sequence[Block]) -> float:
    """Return the tokens at the head that two prompts share."""
    shared = 0.0
    for one, other in zip(before, after, strict=False):
        if one.key != other.key:
            break
        shared += one.tokens
    return shared


def append_only(prompts: Sequence[Parts]) -> float:
    """Return how much of each prompt stands unchanged at the head of the next one."""
    pairs = [(before.blocks, after.blocks) for before, after in pairwise(prompts)]
    return sum(common(*pair) for pair in pairs) / sum(tokens(before) for before, _ in pairs)


def prefix_share(prompts: Sequence[Parts]) -> float:
    """Return how much of all that was sent stood in the request before."""
    shared = sum(common(before.blocks, after.blocks) for before, after in pairwise(prompts))
    return shared / sum(tokens(prompt.blocks) for prompt in prompts)


class Bill(Record):
    """Tokens of requests, by what is paid for them."""

    sent: float = 0
    read: float = 0
    written: float = 0

    @property
    def units(self) -> float:
        return self.sent - self.read - self.written + _WRITE * self.written + _READ * self.read

    @property
    def read_share(self) -> float:
        return self.read / self.sent


def billed(prompts: Iterable[Parts]) -> Bill:
    """Return what requests cost with a provider's cache, as their breakpoints ask for it."""
    known: set[bytes] = set()
    bill = Bill()
    for prompt in prompts:
        one = _billed(prompt, known)
        bill = Bill(sent=bill.sent + one.sent, read=bill.read + one.read, written=bill.written + one.written)
    return bill


def _billed(prompt: Parts, known: set[bytes]) -> Bill:
    """Look up a request's breakpoints, then keep the prefixes that end at them."""
    prefixes = list(_prefixes(prompt))
    marks = [place for place, block in enumerate(prompt.blocks) if block.marked]
    read = 0.0
    for mark in marks:
        for digest, length in prefixes[max(0, mark - LOOK_BACK + 1) : mark + 1]:
            read = max(read, length) if digest in known else read
    kept = [prefixes[mark] for mark in marks if prefixes[mark][1] >= MINIMUM]
    known.update(digest for digest, _ in kept)
    end = max((length for _, length in kept), default=0.0)
    return Bill(sent=prefixes[-1][1], read=read, written=max(0.0, end - read))


def _prefixes(prompt: Parts) -> Iterator[tuple[bytes, float]]:
    """Yield name and length of the prefix that ends with each block."""
    digest, length = hashlib.blake2b(prompt.model.encode(), digest_size=16), 0.0
    for block in prompt.blocks:
        digest.update(b"\0" + block.key.encode())
        length += block.tokens
        yield digest.digest(), length
