"""The meaning of a text as 256 bits, by a model of the extra `memory` or at the endpoint of a provider."""

import json
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from struct import unpack_from
from typing import NamedTuple

import anyio

from agentflow.core.errors import ModelRefused, ModelRejected
from agentflow.model.endpoint import Endpoint, choose_provider_endpoint
from agentflow.parse import Mismatch, decode_or_none, fit
from agentflow.redact import keep_secret, redact_prose
from agentflow.settings import load_settings

_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_NUMBERS = 256
CODE_BYTES = _NUMBERS // 8
"""Bytes of a text's code: one bit for each number of its vector, set where that is positive."""
_MOST_CHARS = 4_000
_SENT, _SENT_CHARS, _SENT_SECONDS = 50, 1_000, 5.0
"""Texts of one request to a server, characters of each, and how long it may take."""
_FIRST = CODE_BYTES * 3 // 4
"""Bytes of a code by which those are chosen that are compared exactly; most of a meaning is there."""
_BY_CHANCE = _FIRST * 4
"""Half of their bits: what differs in that many is no nearer than any text."""


class Meaning(NamedTuple):
    """A model in which texts that mean the same have vectors alike."""

    name: str
    """Codes by one model say nothing about those by another."""
    at_once: int
    """Entries that get their codes before a search."""
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]]
    """Return the vector of each text. Raises ModelError."""


@cache
def load_static_model() -> Meaning | None:
    """Return the model of the extra `memory`, or None where that is not installed.

    Each token has a vector, and a text has the sum of those of its tokens. Only two files of the package
    `wordllama` are read: importing it costs half a second and ten packages, and where it does not find its
    tokenizer it asks the network.
    """
    spec = find_spec("wordllama")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not ((folder / _TOKENS).is_file() and (folder / _WEIGHTS).is_file()):
        return None
    from tokenizers import Tokenizer  # noqa: PLC0415  # of the extra

    tokenizer = Tokenizer.from_file(str(folder / _TOKENS))
    with (folder / _WEIGHTS).open("rb") as file:
        weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (size,) = unpack_from("<Q", weights)
    (tensor,) = (each for name, each in json.loads(weights[8 : 8 + size]).items() if name[:2] != "__")
    if (tensor["dtype"], tensor["shape"][1]) != ("F16", _NUMBERS):
        return None
    start = 8 + size + tensor["data_offsets"][0]

    def embed(text: str) -> Sequence[float]:
        ids = tokenizer.encode(text[:_MOST_CHARS], add_special_tokens=False).ids
        rows = (unpack_from(f"<{_NUMBERS}e", weights, start + 2 * _NUMBERS * one) for one in ids)
        return tuple(map(sum, zip(*rows, strict=True))) or (0.0,) * _NUMBERS

    return Meaning("wordllama", 2_000, lambda texts: [*map(embed, texts)])


def load_meaning() -> Meaning | None:
    """Return the model that the user named, else that of the extra, else None.

    Raises ConfigError, or ModelRejected without the key of a named one.
    """
    settings = load_settings(os.environ)
    if (name := settings.embeddings) is None:
        return load_static_model()
    provider = name.partition("/")[0]
    endpoint = choose_provider_endpoint(provider, os.environ, settings).replace(path="/embeddings")
    keep_secret(endpoint.secrets)
    if endpoint.lacks:
        raise ModelRejected(f"no key for {provider}", hint=f"set {endpoint.lacks}")

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        parts = (texts[start : start + _SENT] for start in range(0, len(texts), _SENT))
        return [vector for part in parts for vector in _ask_server(name, endpoint, part)]

    return Meaning(name, 4 * _SENT, embed)


def _ask_server(name: str, endpoint: Endpoint, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return the vectors of texts, which a provider is sent without known secrets."""
    from agentflow.model.http import post_json  # noqa: PLC0415  # only where the user named a server

    said = [redact_prose(text)[:_SENT_CHARS] or "-" for text in texts]
    wanted = {"model": name.partition("/")[2], "input": said}
    post = partial(post_json, endpoint.url, wanted, _SENT_SECONDS, endpoint.request_headers)
    answer = anyio.run(post).decode("utf-8", "replace")
    try:
        given = [one["embedding"] for one in decode_or_none(answer)["data"]]
        found = fit(tuple[tuple[float, ...], ...], given)
    except (Mismatch, TypeError, LookupError):
        found = ()
    if len(found) != len(said) or not all(found):
        raise ModelRefused(f"{name} gave no embeddings")
    return [(*one[:_NUMBERS], *(0.0,) * (_NUMBERS - len(one))) for one in found]


def to_bits(vector: Sequence[float]) -> bytes:
    """Return the signs of a vector as bits."""
    number = sum(1 << place for place, value in enumerate(vector) if value > 0)
    return number.to_bytes(CODE_BYTES, "little")


def find_nearest(blocks: Sequence[bytes], vector: Sequence[float], most: int) -> list[int]:
    """Return the places of the codes nearest to a vector, nearest first; a code of zeros is none.

    A block has the first byte of each of its codes, then the second of each, and so on. So its codes are
    compared at once: each byte is looked up in a table of distances, and these are added as large numbers.
    """
    wanted = to_bits(vector)[:_FIRST]
    tables = [bytes((byte ^ other).bit_count() for other in range(256)) for byte in wanted]
    distances = b"".join(_measure(block, tables) for block in blocks)
    empty = sum(byte.bit_count() for byte in wanted)
    near: list[int] = []
    for distance in range(_BY_CHANCE):
        at = distances.find(distance) if len(near) < most else -1
        while at >= 0:
            if distance != empty or any(_get_code(blocks, at)):
                near.append(at)
            at = distances.find(distance, at + 1)
    return sorted(near[:most], key=lambda at: -_compare(_get_code(blocks, at), vector))


def _measure(block: bytes, tables: Sequence[bytes]) -> bytes:
    count, total = len(block) // CODE_BYTES, 0
    for place, table in enumerate(tables):
        total += int.from_bytes(block[place * count : (place + 1) * count].translate(table), "little")
    return total.to_bytes(count, "little")


def _get_code(blocks: Sequence[bytes], at: int) -> bytes:
    count = len(blocks[0]) // CODE_BYTES
    number, place = divmod(at, count)
    return blocks[number][place::count]


def _compare(code: bytes, vector: Sequence[float]) -> float:
    bits = int.from_bytes(code, "little")
    return sum(value if bits >> place & 1 else -value for place, value in enumerate(vector))
