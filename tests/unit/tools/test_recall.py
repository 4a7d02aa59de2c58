import re

import pytest

from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.messages import DEFAULT_ROOM
from agentflow.tools.shell import BASH, HEAD_SHARE, MAX_CALLS, RECALL
from tests.unit.tools.bench import Bench

HEAD_BYTES = DEFAULT_ROOM.result_chars // HEAD_SHARE

NEXT = re.compile(r"\n\[bytes (\d+) to (\d+) of (\d+)(?:; the next offset is (\d+)|, the end)\]\Z")


def page(bench: Bench, offset: int, limit: int) -> tuple[str, int | None]:
    content = bench(RECALL, call_id="call-1", offset=offset, limit=limit).content
    found = NEXT.search(content)
    assert found is not None, content
    return content[: found.start()], int(found[4]) if found[4] else None


def test_pages_follow_one_another_byte_for_byte(bench: Bench) -> None:
    bench(BASH, command="seq 8000 | sed 's/$/ é€😀/'")
    full = (bench.outputs / "call-1.out").read_text("utf-8")
    read, offset = page(bench, 0, 29_999)
    while offset is not None:
        text, offset = page(bench, offset, 29_999)
        read += text
    assert read == full
    assert len(full.encode()) > 3 * 29_999


def test_the_middle_of_a_megabyte_is_read_by_its_offset(bench: Bench) -> None:
    bench(BASH, command="seq 150000")
    full = (bench.outputs / "call-1.out").read_bytes()
    text, following = page(bench, 500_000, 1000)
    assert (text, following) == (full[500_000:501_000].decode(), 501_000)
    assert page(bench, len(full) - 10, 100) == (full[-10:].decode(), None)


def test_an_unknown_id_is_told_which_there_are(bench: Bench) -> None:
    with pytest.raises(InvalidInput, match=r"no clipped result has the call id call-9; .*: none so far"):
        bench(RECALL, call_id="call-9")
    bench(BASH, command="seq 50000")
    with pytest.raises(InvalidInput, match="those that have one: call-2"):
        bench(RECALL, call_id="../../task")
    with pytest.raises(InvalidInput, match="offset: the result has"):
        bench(RECALL, call_id="call-2", offset=10**9)


def test_the_ninth_call_of_a_run_is_refused(bench: Bench) -> None:
    bench(BASH, command="seq 50000")
    for number in range(MAX_CALLS):
        assert bench(RECALL, call_id="call-1", offset=number).content
    with pytest.raises(NotAllowed, match="was used 8 times"):
        bench(RECALL, call_id="call-1")


def test_a_secret_across_two_pages_is_shown_on_neither(bench: Bench) -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 10
    bench(BASH, command=f"head -c {HEAD_BYTES} /dev/zero | tr '\\0' x; echo; echo {secret}; seq 20000")
    shown = "".join(page(bench, HEAD_BYTES - 2 + step * 20, 20)[0] for step in range(4))
    assert "A1b2C3d4" not in shown
