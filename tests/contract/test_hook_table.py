"""What a script may do wrong, as a table: whether the call goes on, for a role and for a sub-agent."""

from pathlib import Path
from typing import Any

import pytest

from agentflow.core.hook import Decision
from agentflow.core.points import Point, Scene
from tests.unit.hooks.stage import GUARDED, a_scene, fire, script

DENY = '{"decision": "deny", "reason": "no"}'
GO, NO, ASK = Decision.NONE, Decision.DENY, Decision.ASK
CASES: dict[str, tuple[str, Decision]] = {
    "0": ("exit 0", GO),
    "1": ("exit 1", GO),
    "2": ("exit 2", NO),
    "2 with a reason": ("echo no >&2; exit 2", NO),
    "2 and an allow": ("""echo '{"decision": "allow"}'; exit 2""", NO),
    "2 and broken JSON": ("echo '{'; exit 2", NO),
    "3": ("exit 3", GO),
    "126": ("exit 126", NO),
    "127": ("exit 127", NO),
    "255": ("exit 255", GO),
    "a deny": (f"echo '{DENY}'", NO),
    "a deny at 1": (f"echo '{DENY}'; exit 1", NO),
    "an ask": ("""echo '{"decision": "ask"}'""", ASK),
    "an old block": ("""echo '{"decision": "block", "reason": "no"}'""", NO),
    "plain text": ("echo hello", GO),
    "noise before": (f"echo hello; echo '{DENY}'", GO),
    "noise after": (f"echo '{DENY}'; echo hello", NO),
    "an array": ("echo '[1]'", GO),
    "an empty object": ("echo '{}'", GO),
    "half an object": ("echo '{\"decision\": '", NO),
    "a word that is none": ("""echo '{"decision": "maybe"}'""", NO),
    "a misspelled key": ("""echo '{"decison": "deny"}'""", NO),
    "an unknown key": ("""echo '{"zzz": 1}'""", GO),
    "invalid UTF-8": (r"printf '\377\376'", GO),
    "invalid UTF-8 in JSON": (r"""printf '{"decision": "deny", "reason": "\377"}'""", NO),
    "a byte order mark": (rf"printf '\357\273\277'; echo '{DENY}'", NO),
    "100 MB": ("head -c 100000000 /dev/zero", NO),
    "a hang": ("sleep 20", NO),
    "a child that holds the pipe": ("sleep 20 & exit 0", GO),
    "a session of its own": ("setsid sleep 20 & exit 0", GO),
    "killed": ("kill -9 $$", NO),
    "terminated": ("kill -15 $$", NO),
    "a missing file": ("./none.sh", NO),
    "no execute bit": ("./plain.sh", NO),
    "CRLF": ("./crlf.sh", NO),
}


@pytest.mark.parametrize("depth", [0, 1], ids=["role", "sub-agent"])
@pytest.mark.parametrize("name", CASES)
def test_what_a_script_does_decides_about_a_call(tmp_path: Path, name: str, depth: int) -> None:
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n")
    (tmp_path / "crlf.sh").write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
    (tmp_path / "crlf.sh").chmod(0o755)
    command, decision = CASES[name]
    scene: Scene = a_scene(tmp_path, depth=depth)
    said = fire(scene, script(command, timeout=0.5 if name == "a hang" else 10))
    assert said.decision is decision, said


@pytest.mark.parametrize("point", sorted(GUARDED))
def test_a_guard_that_cannot_work_blocks_at_every_event_that_can_block(tmp_path: Any, point: Point) -> None:
    said = fire(a_scene(tmp_path), script("./none.sh", point=point))
    assert (said.decision, "./none.sh" in said.reason) == (Decision.DENY, True)
