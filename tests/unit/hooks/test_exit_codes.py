"""FEATURES A69 as one table: exit code, kind of output and point, each asked as a real process."""

import json
from itertools import product

import anyio
import pytest

from agentflow.core.hook import POINTS, Decision, Hook, HookDecision, OnError
from agentflow.core.points import Actor, Point, Scene
from agentflow.hooks.chain import Chain
from tests.unit.hooks.stage import FUNCTIONS_ONLY, GUARDED, PAYLOADS, denied, fire, script

OUTPUTS = {
    "empty": "",
    "text": "all is well",
    "array": '["deny"]',
    "allows": '{"decision": "allow"}',
    "nothing": '{"suppressOutput": true}',
    "cut": '{"decision": "allow"',
    "trailing": '{"decision": "allow"} and more',
    "typo": '{"decision": "alow"}',
    "wrong type": '{"reason": 7, "decision": "allow"}',
    "noise": 'starting\n{"decision": "deny"}',
}
UNUSABLE = ("cut", "trailing", "typo", "wrong type")
CODES = (0, 1, 2, 126, 127)
TRIED = (*sorted(GUARDED), Point.USER_PROMPT_SUBMIT, Point.POST_TOOL_USE, Point.SESSION_START)
BLOCKING = (*GUARDED, Point.USER_PROMPT_SUBMIT)
POLICIES = (None, OnError.OPEN, OnError.CLOSED)


def expected(point: Point, code: int, output: str, policy: OnError | None) -> bool:
    """Return whether a hook that never says no blocks all the same."""
    if point not in BLOCKING:
        return False
    if code == 2 and point is not Point.PERMISSION_REQUEST:
        return True
    broken = code in (126, 127) or output in UNUSABLE
    match policy:
        case OnError.OPEN:
            return False
        case OnError.CLOSED:
            return broken or code != 0
        case None:
            return broken and point in GUARDED


async def asked(scene: Scene, hooks: list[Hook]) -> list[HookDecision]:
    """Ask each hook for itself, some at a time."""
    answers: dict[int, HookDecision] = {}
    limiter = anyio.CapacityLimiter(4)

    async def one(place: int, hook: Hook) -> None:
        async with limiter:
            answers[place] = await Chain((hook,)).fire(hook.point, scene, lambda: PAYLOADS[hook.point])

    async with anyio.create_task_group() as group:
        for place, hook in enumerate(hooks):
            group.start_soon(one, place, hook)
    return [answers[place] for place in range(len(hooks))]


@pytest.mark.parametrize(("policy", "depth"), [*((policy, 0) for policy in POLICIES), (None, 2)])
def test_exit_code_and_output_decide(scene: Scene, policy: OnError | None, depth: int) -> None:
    scene = scene.replace(actor=Actor(name="scout", depth=depth))
    chosen = TRIED if policy is None and depth == 0 else (Point.PRE_TOOL_USE, Point.USER_PROMPT_SUBMIT)
    cases = list(product(chosen, CODES, OUTPUTS))
    for name, said in OUTPUTS.items():
        (scene.cwd / name).write_text(said)
    hooks = [
        script(f"cat '{output}'; exit {code}", point=point, on_error=policy) for point, code, output in cases
    ]
    decisions = anyio.run(asked, scene, hooks)
    wrong = [
        (str(point), code, output, decision)
        for (point, code, output), decision in zip(cases, decisions, strict=True)
        if denied(decision) is not expected(point, code, output, policy)
    ]
    assert wrong == []


@pytest.mark.parametrize("code", [0, 1, 2, 3, 127])
def test_a_denial_in_json_is_honoured_at_every_exit_code(scene: Scene, code: int) -> None:
    said = json.dumps({"decision": "deny", "reason": "not there"})
    decision = fire(scene, script(f"echo '{said}'; exit {code}"))
    assert denied(decision)
    assert decision.reason == "not there"


def test_exit_2_denies_with_stderr_whatever_json_says(scene: Scene) -> None:
    specific = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "sure",
        "additionalContext": "read the guide",
    }
    said = json.dumps({"hookSpecificOutput": specific})
    decision = fire(scene, script(f"echo '{said}'; echo never >&2; exit 2"))
    assert denied(decision)
    assert (decision.reason, decision.context) == ("never", "read the guide")


def test_exit_2_at_a_point_that_cannot_block_is_told(scene: Scene) -> None:
    after = fire(scene, script("echo look at this >&2; exit 2", point=Point.POST_TOOL_USE))
    assert (after.decision, after.contexts) == (Decision.NONE, ("look at this",))
    start = fire(scene, script("echo look at this >&2; exit 2", point=Point.SESSION_START))
    assert (start.decision, start.contexts, start.notices) == (Decision.NONE, (), ("look at this",))


@pytest.mark.parametrize("code", [1, 3, 255])
def test_another_exit_code_decides_nothing_and_is_shown_with_its_first_line(scene: Scene, code: int) -> None:
    decision = fire(scene, script(f"printf 'first\\nsecond\\n' >&2; exit {code}"))
    assert decision.decision is Decision.NONE
    (notice,) = decision.notices
    assert notice.endswith(f"at PreToolUse: ended with {code}: first")


@pytest.mark.parametrize(
    ("command", "why", "timeout"),
    [
        ("kill -9 $$", "killed by a signal", 60),
        ("sleep 9", "did not end in time", 0.2),
        ("exec ./missing", "127", 60),
        ("head -c 70000 /dev/zero", "more than 64 KiB", 60),
    ],
)
@pytest.mark.parametrize("point", [*sorted(GUARDED), Point.SESSION_START])
def test_a_hook_that_cannot_do_its_work_names_itself(
    scene: Scene, command: str, why: str, timeout: float, point: Point
) -> None:
    decision = fire(scene, script(command, point=point, timeout=timeout))
    assert denied(decision) is (point in GUARDED)
    assert f"{command} at {point}" in decision.notices[0]
    assert why in decision.notices[0]
    if denied(decision):
        assert decision.reason.startswith(f"hook {command} at {point}")
    assert not denied(fire(scene, script(command, point=point, timeout=timeout, on_error=OnError.OPEN)))


def test_what_a_hook_said_before_its_time_was_over_does_not_count(scene: Scene) -> None:
    said = json.dumps({"decision": "deny", "additional_context": "x", "systemMessage": "y"})
    hook = script(f"echo '{said}'; sleep 9", timeout=0.2, on_error=OnError.OPEN)
    decision = fire(scene, hook)
    assert (decision.decision, decision.contexts, len(decision.notices)) == (Decision.NONE, (), 1)


@pytest.mark.parametrize("point", sorted(set(Point) - FUNCTIONS_ONLY))
def test_text_is_context_only_where_a_session_or_a_prompt_begins(scene: Scene, point: Point) -> None:
    decision = fire(scene, script("echo; echo '  remember the guide'", point=point))
    begins = point in (Point.SESSION_START, Point.USER_PROMPT_SUBMIT, Point.USER_PROMPT_EXPANSION)
    assert decision.contexts == (("remember the guide",) if begins else ())
    assert (decision.decision, decision.notices) == (Decision.NONE, ())


def test_json_after_noise_is_text_with_a_warning(scene: Scene) -> None:
    hook = script("""echo starting; echo '{"decision": "deny"}'""")
    decision = fire(scene, hook)
    assert decision.decision is Decision.NONE
    assert "printed text before its JSON" in decision.notices[0]


def test_every_point_has_terms_and_is_asked(scene: Scene) -> None:
    assert set(POINTS) == set(Point)
    for point in set(Point) - FUNCTIONS_ONLY:
        assert (
            fire(scene, script("""echo '{"continue": false, "stopReason": "enough"}'""", point=point)).halt
            == "enough"
        )
