"""A changed prompt, measured as a paired difference; AGENTFLOW_EVAL_TASKS is the number of tasks."""

import json
import os
from pathlib import Path

from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.live import KEY, configure
from tests.support.messages_server import Answer, Asked, Plays, serving, use
from tests.support.repo import Done, Repo

TASKS = int(os.environ.get("AGENTFLOW_EVAL_TASKS", "6"))
"""With fewer than six no difference is larger than chance allows."""
ADVICE = "Think of inputs that no test tries."
CHEAT = {"file_path": "calc.py", "old_string": "return a - b", "new_string": "return 3 if b else 1"}
PROMPT = Path(__file__).parents[2] / "agents/implementer.md"


def follow(asked: Asked) -> Answer:
    """Mend the code if the prompt says to think of other inputs, else please the tests that are there."""
    is_advised = ADVICE in json.dumps(asked.body["system"])
    if role_of(asked) == "implementer" and asked.turn == 1 and not is_advised:
        return Plays((use("Edit", CHEAT, "toolu_cheat"),))
    return honest(asked)


def test_a_better_prompt_is_shown_as_a_paired_difference(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home").write(play.CALC).commit()
    hidden = play.CALC["tests/test_calc.py"].replace("add(1, 2), 3", "add(5, 5), 10")
    check = {"command": "python3 -m unittest tests.test_hidden", "files": {"tests/test_hidden.py": hidden}}
    common = {"repository": str(repo.root), "text": play.WHOLE_CREW, "check": check}
    plan = tmp_path / "tasks.jsonl"
    plan.write_text("".join(json.dumps({**common, "id": f"t{n}"}) + "\n" for n in range(TASKS)))
    configure(repo)
    with serving(policy=follow) as server:
        env = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}

        def evaluate(name: str) -> Done:
            return repo.run("eval", str(plan), "--out", str(tmp_path / name), env=env, timeout=600)

        before = evaluate("before")
        repo.give_role("implementer", f"{PROMPT.read_text('utf-8')}\n{ADVICE}\n")
        after = evaluate("after")
    assert (before.code, after.code) == (0, 0), before.err + after.err
    found = repo.run("eval", "compare", str(tmp_path / "before"), str(tmp_path / "after"))
    assert f"only the second: {TASKS}  t0" in found.out
    assert "difference: +100% [" in found.out
    assert "the second is better by more than chance: p = 0.0" in found.out
    back = repo.run("eval", "compare", str(tmp_path / "after"), str(tmp_path / "before"))
    assert (found.code, back.code) == (0, 1)
