"""Sub-agents: what they see, what they may do, what comes back, and their bounds."""

from pathlib import Path

import anyio
import pytest

from agentflow.core import points
from agentflow.core.errors import ModelRejected, ModelUnavailable
from agentflow.core.events import RunEnded
from agentflow.core.hook import Decision, Hook, HookResult
from agentflow.core.messages import Reply, Request, Speaker, Text, Usage
from agentflow.core.points import HookEvent, Point
from agentflow.core.role import Role
from agentflow.core.run import RunOutcome
from agentflow.loop.lifecycle import MAX_HELD
from agentflow.model.scripted import Entry, ScriptedCall, ScriptedModel, Turn
from tests.unit.compose.crew import Household, delegate, named, plays
from tests.unit.compose.parts import around, parts_of
from tests.unit.loop.stage import call, turn

BOSS = named("boss", "Look", "Change", "Agent", model="m-9")
READER = named("boss", "Look", "Agent")
SCOUT = named("scout", "Look", "Fetch")
HEIR = named("heir").replace(inherits=True, denied=("Change",))
CODER = named("coder", "Change")
DEEP = named("deep", "Look", "Agent")
HANDING = named("boss", "Look", "Agent", "handoff_to_scout")
DONE = Turn(text="done")


@pytest.fixture
def crew(tmp_path: Path) -> Household:
    return Household(tmp_path, SCOUT, HEIR, CODER, DEEP)


def said(text: str, **usage: int) -> Turn:
    return Turn(text=text, usage=Usage(**usage))


def answers(prompt: str, entry: Entry) -> Entry:
    """Let an entry be played to this prompt alone."""
    return entry.replace(match=entry.match.replace(contains=prompt))


def test_a_child_sees_its_prompt_and_nothing_of_its_parent(crew: Household) -> None:
    crew.play(
        BOSS, plays("boss", turn(delegate("scout", "where is add?"), text="let me ask"), DONE), plays("scout")
    )
    (asked,) = crew.asked("scout")
    assert [message.text for message in asked.messages] == ["where is add?"]
    assert (asked.system, asked.model) == ("You are scout.", "m-9")


def test_the_parent_gets_the_last_text_alone(crew: Household) -> None:
    scout = plays("scout", turn(call("Look", "deep inside"), text="looking"), said("it is in a.py"))
    run = crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), scout)
    assert crew.results() == ["it is in a.py"]
    assert "deep inside" not in repr(run.messages)
    assert "looking" not in repr(crew.asked("boss")[-1])


def test_the_parent_is_told_of_those_it_may_use(crew: Household) -> None:
    crew.play(named("boss", "Look", "Agent(scout, heir)"), plays("boss", turn(delegate("coder")), DONE))
    (first, _) = crew.asked("boss")
    assert "- scout: Use as scout." in first.system
    assert "coder" not in first.system
    assert crew.results() == ["boss may use Agent only on scout, heir"]


def test_a_role_that_does_not_list_it_has_no_sub_agents(crew: Household) -> None:
    crew.play(named("boss", "Look"), plays("boss", turn(delegate("scout")), DONE))
    assert crew.results() == ["There is no tool Agent. Your tools: Look"]
    assert "scout" not in crew.asked("boss")[0].system


@pytest.mark.parametrize(
    ("parent", "child", "tools"),
    [
        (BOSS, SCOUT, ["Look"]),
        (BOSS, HEIR, ["Agent", "Look"]),
        (READER, HEIR, ["Agent", "Look"]),
        (BOSS, CODER, ["Change"]),
    ],
)
def test_a_child_has_no_tool_that_its_parent_lacks(
    crew: Household, parent: Role, child: Role, tools: list[str]
) -> None:
    crew.play(parent, plays("boss", turn(delegate(child.name)), DONE), plays(child.name))
    assert sorted(tool.name for tool in crew.asked(child.name)[0].tools) == tools


def test_a_child_without_a_tool_of_its_parent_is_not_begun(crew: Household) -> None:
    run = crew.play(READER, plays("boss", turn(delegate("coder")), DONE), plays("coder"))
    assert crew.results() == ["coder has none of your tools: it lists Change"]
    assert (run.outcome, len(crew.journals)) == (RunOutcome.ANSWERED, 1)


def test_a_parents_pattern_holds_in_its_child_too(crew: Household) -> None:
    crew.roles = (named("scout", "Run"),)
    boss = named("boss", "Run(ls *)", "Agent")
    grabs = turn(*(ScriptedCall(name="Run", input={"command": command}) for command in ("rm x", "ls x")))
    crew.play(boss, plays("boss", turn(delegate("scout")), DONE), plays("scout", grabs, DONE))
    assert crew.results(2) == [
        "boss may not run rm x; it may run ls *, and commands that only read",
        "ran ls x",
    ]


def test_a_child_has_limits_of_its_own_and_its_cost_is_added(crew: Household) -> None:
    crew.roles = (named("scout", "Look", limits={"tool_calls": 1}),)
    looks = turn(call("Look", "a"), call("Look", "b")).replace(usage=Usage(input=7))
    boss = named("boss", "Look", "Agent", limits={"tool_calls": 2})
    run = crew.play(
        boss, plays("boss", turn(delegate("scout")), DONE), plays("scout", looks, said("a", input=5))
    )
    assert crew.results()[0] == "a"
    assert "skipped" in crew.results(2)[1]
    assert (run.tool_calls, run.usage.input, run.cost.input) == (1, 0, 12)


def test_a_child_that_fails_is_an_error_and_the_parent_goes_on(crew: Household) -> None:
    run = crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", Turn(error=400)))
    assert crew.results() == ["scout got no reply: the model answered with error 400"]
    assert run.outcome is RunOutcome.ANSWERED
    silent = Household(crew.root, SCOUT)
    silent.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout"))
    assert silent.results() == ["scout gave no answer: it said nothing"]


def test_a_provider_that_is_down_leaves_the_whole_run_to_be_resumed(crew: Household) -> None:
    both = turn(delegate("scout"), delegate("heir"))
    entries = (plays("boss", both, DONE), plays("scout", Turn(error=529)), plays("heir", said("found")))
    with pytest.raises(ModelUnavailable):
        crew.play(READER, *entries)
    assert crew.results() == ["found"]
    assert [event.outcome for event in crew.of(RunEnded)].count(RunOutcome.ERROR) == 2


def test_each_child_has_one_end_and_its_events_name_its_parent(crew: Household) -> None:
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", turn(call("Look")), DONE))
    ended = [(parent, event.run) for parent, event in crew.events if isinstance(event, RunEnded)]
    assert ended == [(1, 2), (None, 1)]
    assert {parent for parent, event in crew.events if getattr(event, "run", 0) == 2} == {1}


def test_three_levels_and_no_fourth(crew: Household) -> None:
    deeper = plays("deep", turn(delegate("deep")), DONE)
    crew.play(READER, plays("boss", turn(delegate("deep")), DONE), deeper, deeper, deeper)
    assert len(crew.journals) == 4
    assert crew.results(4) == ["sub-agents go 3 levels deep and you are the last: do it yourself"]
    assert crew.results() == ["done"]


def test_eight_of_a_run_and_no_ninth(crew: Household) -> None:
    turns = (turn(*[delegate("scout")] * 5), turn(*[delegate("scout")] * 4), DONE)
    boss = named("boss", "Look", "Agent", limits={"tool_calls": 50})
    crew.play(boss, plays("boss", *turns), *[plays("scout", said("found"))] * 8)
    assert sorted(crew.results())[:2] == [
        "a run has 8 sub-agents at most: go on with what they gave you",
        "found",
    ]
    assert len(crew.journals) == 9


class Gathering:
    """A model that answers children once so many of them have asked side by side."""

    def __init__(self, *entries: Entry, least: int = 1) -> None:
        self.name = "gathering"
        self.most = 0
        self._least = least
        self._waiting = 0
        self._enough = anyio.Event()
        self._model = ScriptedModel("script:memory", entries)

    def explain_refusal(self, task: str) -> str | None:
        return self._model.explain_refusal(task)

    async def complete(self, request: Request) -> Reply:
        if request.agent == "boss":
            return await self._model.complete(request)
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        if self.most >= self._least:
            self._enough.set()
        with anyio.move_on_after(20):
            await self._enough.wait()
        await anyio.sleep(0.1)  # one that should not be here would come meanwhile
        self._waiting -= 1
        return await self._model.complete(request)


def test_readers_run_three_at_a_time_and_others_alone(crew: Household) -> None:
    four = (plays("boss", turn(*[delegate("scout")] * 4), DONE), *[plays("scout", said("found"))] * 4)
    readers = Gathering(*four, least=3)
    crew.run(READER, readers)
    assert crew.results() == ["found"] * 4
    assert readers.most == 3
    alone = Household(crew.root, CODER)
    others = Gathering(plays("boss", turn(*[delegate("coder")] * 3), DONE), *[plays("coder", DONE)] * 3)
    alone.run(BOSS, others)
    assert alone.results() == ["done"] * 3
    assert others.most == 1


def test_two_builds_are_equal_and_two_runs_share_nothing(crew: Household) -> None:
    factory, place = crew.factory(Talker()), around(crew.root)
    first, second = (
        parts_of(factory.build_first(BOSS.replace(tools=HANDING.tools), place)) for _ in range(2)
    )
    assert first == second
    assert first["tools"] is not second["tools"]
    crew.play(
        BOSS,
        plays("boss", turn(delegate("scout")), turn(delegate("scout")), DONE),
        *[plays("scout", DONE)] * 2,
    )
    assert [len(request.messages) for request in crew.asked("scout")] == [1, 1]


def direct(crew: Household, role: Role, *turns: Turn, children: int = 1) -> list[Request]:
    scouts = [plays("scout", said(f"  answer {number}\n")) for number in range(1, children + 1)]
    crew.play(role, plays("boss", *turns, DONE), *scouts)
    return crew.asked("boss")


def test_a_direct_answer_ends_the_run_byte_for_byte(crew: Household) -> None:
    asked = direct(
        crew, READER, turn(delegate("scout", direct=True)).replace(usage=Usage(input=90, output=9))
    )
    run = crew.folded(1)
    assert len(asked) == 1
    assert (run.outcome, run.answer) == (RunOutcome.ANSWERED, "  answer 1\n")
    assert run.saved is not None
    assert (run.saved.tokens_not_resent, run.saved.estimated) == (99, ("synthesis_avoided",))


def test_not_direct_is_one_request_more(crew: Household) -> None:
    assert len(direct(crew, READER, turn(delegate("scout")))) == 2
    assert (crew.folded(1).answer, crew.folded(1).saved) == (None, None)


def test_a_role_may_say_that_a_sub_agent_always_answers_directly(crew: Household) -> None:
    assert len(direct(crew, READER.replace(direct=("scout",)), turn(delegate("scout")))) == 1


@pytest.mark.parametrize("tools", [("Look", "Change"), ("Look", "Run")])
def test_a_role_that_can_change_something_is_not_answered_for(
    crew: Household, tools: tuple[str, ...]
) -> None:
    direct(crew, named("boss", *tools, "Agent"), turn(delegate("scout", direct=True)))
    assert crew.results() == [f"direct is for roles that only read, and boss has {tools[1]}"]
    assert len(crew.journals) == 1


def test_a_role_that_owes_a_plan_is_not_answered_for(crew: Household) -> None:
    planner = READER.replace(part="planner")
    direct(crew, planner, turn(delegate("scout", direct=True)))
    assert "direct is for an answer in words" in crew.results()[0]


def test_an_explorer_is_answered_for_with_findings(crew: Household) -> None:
    assert len(direct(crew, READER.replace(part="explorer"), turn(delegate("scout", direct=True)))) == 1
    run = crew.folded(1)
    assert run.outcome is RunOutcome.SUBMITTED
    assert run.changes["findings"]["summary"] == "  answer 1\n"


def test_two_direct_answers_are_read_by_the_parent_unless_they_may_be_put_together(crew: Household) -> None:
    both = turn(delegate("scout", "first", direct=True), delegate("scout", "second", direct=True))
    assert len(direct(crew, READER, both, children=2)) == 2
    assert crew.folded(1).answer is None
    joined = Household(crew.root, SCOUT)
    slow, quick = plays("scout", said("  one\n"), delay=0.2), plays("scout", said("  two\n"))
    scouts = (answers("first", slow), answers("second", quick))
    joined.play(READER.replace(concatenates=True), plays("boss", both, DONE), *scouts)
    assert len(joined.asked("boss")) == 1
    assert joined.folded(1).answer == "  one\n\n\n  two\n"


def test_one_direct_answer_beside_another_result_is_read_by_the_parent(crew: Household) -> None:
    mixed = turn(delegate("scout", direct=True), delegate("scout"))
    assert len(direct(crew, READER.replace(concatenates=True), mixed, children=2)) == 2
    lost = Household(crew.root, SCOUT)
    failing = turn(delegate("scout", direct=True), delegate("nobody", direct=True))
    assert len(direct(lost, READER.replace(concatenates=True), failing)) == 2


def hooked(crew: Household, point: Point, *answers: object) -> list[HookEvent]:
    seen: list[HookEvent] = []
    waiting = list(answers)

    def body(event: HookEvent) -> object:
        seen.append(event)
        return waiting.pop(0) if waiting else None

    crew.hooks = (Hook(name="guard", point=point, body=body),)  # type: ignore[arg-type]
    return seen


def test_a_hook_may_add_to_what_a_child_is_told(crew: Household) -> None:
    seen = hooked(crew, Point.SUBAGENT_START, HookResult(context="mind the gap"))
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", said("found")))
    assert [message.text for message in crew.asked("scout")[0].messages] == ["look", "mind the gap"]
    assert seen[0].payload == points.SubagentStarted(agent_id="2-scout", agent_type="scout")
    assert seen[0].scene.actor == points.Actor(name="scout", depth=1)
    assert len(seen) == 1


def test_a_hook_may_keep_a_child_going_three_times(crew: Household) -> None:
    more = [HookResult(block="look again")] * 9
    seen = hooked(crew, Point.SUBAGENT_STOP, *more)
    answers = [said(f"answer {number}") for number in range(1, 9)]
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", *answers))
    assert crew.results() == [f"answer {MAX_HELD + 1}"]
    told = [event.payload for event in seen if isinstance(event.payload, points.SubagentStopped)]
    assert [payload.stop_hook_active for payload in told] == [False, True, True, True]
    assert crew.asked("scout")[1].messages[-1].text == "look again"


def test_a_hook_may_answer_for_child_and_parent(crew: Household) -> None:
    hooked(crew, Point.SUBAGENT_STOP, HookResult(bail="known since long"))
    crew.play(READER, plays("boss", turn(delegate("scout")), DONE), plays("scout", said("found")))
    assert (len(crew.asked("boss")), crew.folded(1).answer) == (1, "known since long")


def test_a_hooks_answer_for_a_role_that_changes_things_is_only_a_result(crew: Household) -> None:
    hooked(crew, Point.SUBAGENT_STOP, HookResult(bail="known"))
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", said("found")))
    assert (len(crew.asked("boss")), crew.results()) == (2, ["known"])


def test_a_hook_that_stops_everything_in_a_child_stops_the_parent(crew: Household) -> None:
    hooked(crew, Point.SUBAGENT_STOP, HookResult(halt="over"))
    run = crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", said("found")))
    assert (run.outcome, run.halt) == (RunOutcome.HALTED, "over")


def test_the_hooks_of_calls_apply_in_a_child(crew: Household) -> None:
    denied = HookResult(decision=Decision.DENY, reason="not on Fridays")
    crew.hooks = (
        Hook(name="guard", point=Point.PRE_TOOL_USE, matcher="Look", body=lambda _: denied),
        Hook(name="odd", point=Point.SUBAGENT_STOP, body=lambda _: HookResult(updated_output="illegal here")),
    )
    scout = plays("scout", turn(call("Look")), said("found"), said("found"), said("x"), said("y"))
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), scout)
    assert crew.results(2) == ["not on Fridays"]


def test_a_call_of_a_sub_agent_may_itself_be_denied(crew: Household) -> None:
    crew.hooks = (
        Hook(
            name="guard",
            point=Point.PRE_TOOL_USE,
            matcher="Agent",
            body=lambda _: HookResult(decision=Decision.DENY, reason="alone"),
        ),
    )
    crew.play(BOSS, plays("boss", turn(delegate("scout")), DONE), plays("scout", said("found")))
    assert (crew.results(), len(crew.journals)) == (["alone"], 1)


def test_a_wrong_delegation_is_an_error_that_says_what_is_taken(crew: Household) -> None:
    wrong = turn(ScriptedCall(name="Agent", input={"prompt": "look"}))
    crew.play(BOSS, plays("boss", wrong, DONE))
    assert (
        "Agent takes subagent_type, prompt, description (optional), context (optional), direct (optional)"
        in crew.results()[0]
    )


class Talker:
    """A model whose child replies with text after text."""

    def __init__(self) -> None:
        self.name = "talker"

    def explain_refusal(self, task: str) -> str | None:
        return f"no {task}"

    async def complete(self, request: Request) -> Reply:
        if request.agent == "scout":
            raise ModelRejected("no such model")
        turns = sum(message.speaker is Speaker.ASSISTANT for message in request.messages)
        return Reply(parts=(Text(text=f"turn {turns}"),))


def test_a_run_without_children_is_as_before(crew: Household) -> None:
    run = crew.run(BOSS, Talker())
    assert (run.outcome, run.delegated, run.cost) == (RunOutcome.ANSWERED, (), run.usage)
