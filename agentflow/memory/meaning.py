"""The meaning of a text as 256 bits, by a static model whose weights lie in the package `wordllama`.

Only the two files of that package are read: importing it costs half a second and ten packages, and where it
does not find its tokenizer it asks the network.
"""

import json
import mmap
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from struct import unpack_from
from typing import Any, Self

_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_NUMBERS = 256
CODE_BYTES = _NUMBERS // 8
"""Bytes of a text's code: one bit for each number of its vector, set where that is positive."""
_MOST_CHARS = 4_000
_BYTES = bytes(range(256))
_BITS = bytes(number.bit_count() for number in _BYTES)
_FIRST = CODE_BYTES * 3 // 4
"""Bytes of a code by which those are chosen that are compared exactly; most of a meaning is there."""


class Meaning:
    """The static model: each token has a vector, and a text has the sum of those of its tokens."""

    def __init__(self, tokenizer: Any, weights: mmap.mmap, start: int) -> None:
        self._tokenizer = tokenizer
        self._weights = weights
        self._start = start

    @classmethod
    def load(cls) -> Self | None:
        """Return the model, or None where the extra `memory` is not installed."""
        spec = find_spec("wordllama")
        folder = Path(spec.origin).parent if spec and spec.origin else None
        if folder is None or not ((folder / _TOKENS).is_file() and (folder / _WEIGHTS).is_file()):
            return None
        from tokenizers import Tokenizer  # noqa: PLC0415  # of the extra

        with (folder / _WEIGHTS).open("rb") as file:
            weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (size,) = unpack_from("<Q", weights)
        (tensor,) = (each for name, each in json.loads(weights[8 : 8 + size]).items() if name[:2] != "__")
        if (tensor["dtype"], tensor["shape"][1]) != ("F16", _NUMBERS):
            return None
        start = 8 + size + tensor["data_offsets"][0]
        return cls(Tokenizer.from_file(str(folder / _TOKENS)), weights, start)

    def embed(self, text: str) -> tuple[float, ...]:
        """Return the vector of a text."""
        ids = self._tokenizer.encode(text[:_MOST_CHARS], add_special_tokens=False).ids
        rows = (unpack_from(f"<{_NUMBERS}e", self._weights, self._start + 2 * _NUMBERS * one) for one in ids)
        return tuple(map(sum, zip(*rows, strict=True))) or (0.0,) * _NUMBERS


@cache
def load_meaning() -> Meaning | None:
    """Return the model of this process, loaded once."""
    return Meaning.load()


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
    tables = [_xor(_BYTES, bytes([byte]) * 256).translate(_BITS) for byte in wanted]
    distances = b"".join(_measure(block, tables) for block in blocks)
    near: list[int] = []
    for distance in range(256):
        at = distances.find(distance) if len(near) < most else -1
        while at >= 0:
            near.append(at)
            at = distances.find(distance, at + 1)
    coded = [(at, code) for at in near[:most] if any(code := _get_code(blocks, at))]
    return [at for at, _ in sorted(coded, key=lambda each: -_compare(each[1], vector))]


def _measure(block: bytes, tables: Sequence[bytes]) -> bytes:
    count, total = len(block) // CODE_BYTES, 0
    for place, table in enumerate(tables):
        total += int.from_bytes(block[place * count : (place + 1) * count].translate(table), "little")
    return total.to_bytes(count, "little")


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def _get_code(blocks: Sequence[bytes], at: int) -> bytes:
    count = len(blocks[0]) // CODE_BYTES
    number, place = divmod(at, count)
    return blocks[number][place::count]


def _compare(code: bytes, vector: Sequence[float]) -> float:
    bits = int.from_bytes(code, "little")
    return sum(value if bits >> place & 1 else -value for place, value in enumerate(vector))
