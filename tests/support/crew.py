"""An honest crew behind the Messages API: mends the bug of CALC, each role by its Submit tool."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.messages_server import Answer, Asked, Block, Plays, text, use

Turns = tuple[tuple[str, dict[str, Any]], ...]

ROLES: Mapping[str, str] = {
    "SubmitFindings": "explorer",
    "SubmitPlan": "planner",
    "SubmitChange": "implementer",
    "SubmitReview": "reviewer",
    "SubmitVerdict": "verifier",
}
_FOUND = {"summary": "add subtracts", "findings": [{"claim": "wrong sign", "path": "calc.py", "line": 2}]}
_PLAN = {"summary": "mend add", "steps": [{"title": "mend it", "files": ["calc.py"]}]}
TURNS: Mapping[str, Turns] = {
    "explorer": (("Read", {"file_path": "calc.py"}), ("SubmitFindings", {**_FOUND, "open_questions": []})),
    "planner": (("SubmitPlan", {**_PLAN, "acceptance": [], "risks": []}),),
    "implementer": (
        ("Read", {"file_path": "calc.py"}),
        ("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}),
        ("SubmitChange", {"summary": "add adds", "files": ["calc.py"]}),
    ),
    "reviewer": (("SubmitReview", {"verdict": "APPROVED", "issues": []}),),
}


def role_of(asked: Asked) -> str:
    """Return whose request it is, as its Submit tool tells."""
    (role,) = (role for tool, role in ROLES.items() if tool in asked.tools)
    return role


def honest(asked: Asked) -> Answer:
    """Return the next turn of an honest crew."""
    role = role_of(asked)
    name, given = verdict(asked) if role == "verifier" else TURNS[role][min(asked.turn, len(TURNS[role]) - 1)]
    call: Block = use(name, given, f"toolu_{role}_{asked.turn}")
    return Plays((text(f"Now {name}."), call))


def verdict(asked: Asked) -> tuple[str, dict[str, Any]]:
    evidence = re.findall(r"ev-\d{4}", json.dumps(asked.body["messages"]))
    return "SubmitVerdict", {
        "verdict": "VERIFIED",
        "evidence": [max(evidence)],
        "reasons": ["the tests pass"],
    }
