import msgspec
import pytest

from agentflow.core.errors import (
    AgentflowError,
    CorruptState,
    Exit,
    InvalidFile,
    InvalidInput,
    ModelRejected,
    ModelUnavailable,
    NotAllowed,
    OutsideWorkspace,
    TaskLocked,
    TaskNotFound,
    ToolError,
    UnknownRole,
    UnknownTool,
    UsageError,
)
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, TestCounts, TestOutcome
from agentflow.core.messages import Message, Speaker, Text, ToolCall, ToolResult, Usage, sum_usage
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.role import Role, ToolRule
from agentflow.core.task import FRONTMATTER_KEYS, Gate, GateStatus, Phase, TaskState
from tests.unit.tools.bench import a_record

CHECK = Check(name=CheckName.TESTS, command="pytest", timeout=600, reason="tests exist")
PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome


class Pair(Record):
    left: int
    right: tuple[str, ...] = ()


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Pair(left=1).left = 2


def test_a_record_takes_names_only() -> None:
    with pytest.raises(TypeError):
        Pair(1)


def test_a_record_is_closed_to_unknown_fields() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"left": 1, "middle": 2}, Pair)


def test_replace_gives_another_value() -> None:
    pair = Pair(left=1)
    assert (pair.replace(left=2), pair) == (Pair(left=2), Pair(left=1))


def test_a_record_stands_on_one_line_in_the_order_of_its_fields() -> None:
    assert encode(Pair(left=1, right=("a\nb",))) == b'{"left":1,"right":["a\\nb"]}'


def test_plain_is_what_a_file_gives_back() -> None:
    pair = Pair(left=1, right=("a", "b"))
    assert to_builtins(pair) == msgspec.json.decode(encode(pair))


@pytest.mark.parametrize(
    ("usages", "cost"),
    [
        ((), None),
        ((Usage(cost_usd=0.5),), 0.5),
        ((Usage(cost_usd=0.5), Usage(cost_usd=0.25)), 0.75),
        ((Usage(cost_usd=0.5), Usage()), None),
        ((Usage(cost_usd=0.0),), 0.0),
    ],
)
def test_a_cost_is_known_only_if_each_one_is(usages: tuple[Usage, ...], cost: float | None) -> None:
    assert sum_usage(usages).cost_usd == cost


def test_tokens_add_up_each_kind_apart() -> None:
    one = Usage(input=1, output=2, cache_read=3, cache_write=4)
    assert sum_usage((one, one)) == Usage(input=2, output=4, cache_read=6, cache_write=8)


def test_a_message_tells_its_text_and_its_calls() -> None:
    call = ToolCall(id="c", name="Look", input={})
    parts = (Text(text="a"), call, Text(text="b"), ToolResult(call_id="c", content="no"))
    message = Message(speaker=Speaker.ASSISTANT, parts=parts)
    assert (message.text, message.calls) == ("a\nb", (call,))


@pytest.mark.parametrize(
    ("outcomes", "exit_code", "green"),
    [
        ({}, 0, True),
        ({"a": PASSED}, 0, True),
        ({"a": SKIPPED}, 0, True),
        ({"a": FAILED}, 0, False),
        ({"a": ERROR}, 0, False),
        ({"a": PASSED}, 1, False),
        ({"a": PASSED}, None, False),
    ],
)
def test_green_is_exit_zero_without_a_red_test(
    outcomes: dict[str, TestOutcome], exit_code: int | None, green: bool
) -> None:
    run = CheckRun(check=CHECK, evidence=a_record("ev-1", exit_code=exit_code), outcomes=outcomes)
    assert run.green is green


def test_a_check_that_was_not_run_is_not_green() -> None:
    assert not CheckRun(check=CHECK).green


def test_ids_are_those_of_the_outcomes_asked_for() -> None:
    run = CheckRun(check=CHECK, outcomes={"a": PASSED, "b": FAILED, "c": ERROR, "d": SKIPPED})
    assert [set(run.list_ids(*asked)) for asked in (RED, (SKIPPED,), ())] == [{"b", "c"}, {"d"}, set()]


def test_a_skipped_test_did_not_run() -> None:
    assert TestCounts(passed=1, failed=2, skipped=4, errors=8).ran == 11


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (UsageError, Exit.CONFIG),
        (UnknownRole, Exit.CONFIG),
        (UnknownTool, Exit.CONFIG),
        (ModelUnavailable, Exit.NO_MODEL),
        (ModelRejected, Exit.NO_MODEL),
        (CorruptState, Exit.CONFIG),
        (TaskNotFound, Exit.CONFIG),
        (TaskLocked, Exit.CONFIG),
    ],
)
def test_each_error_knows_its_exit_code_and_hint(kind: type[AgentflowError], code: Exit) -> None:
    error = kind("it broke", hint="mend it")
    assert (str(error), error.hint, error.exit_code) == ("it broke", "mend it", code)


@pytest.mark.parametrize("kind", [InvalidInput, NotAllowed, OutsideWorkspace])
def test_what_a_tool_refuses_is_a_tool_error(kind: type[AgentflowError]) -> None:
    assert issubclass(kind, ToolError)


@pytest.mark.parametrize(("line", "place"), [(None, "a.md: no"), (7, "a.md:7: no")])
def test_a_wrong_file_is_named_with_its_line(line: int | None, place: str) -> None:
    error = InvalidFile("a.md", "no", line=line)
    assert (str(error), error.source, error.line, error.problem) == (place, "a.md", line, "no")


@pytest.mark.parametrize("rule", ["Read", "Bash(git diff *)"])
def test_a_rule_is_spelled_as_it_was(rule: str) -> None:
    tool, _, pattern = rule.removesuffix(")").partition("(")
    assert str(ToolRule(tool=tool, pattern=pattern or None)) == rule


def test_a_role_knows_its_rules_for_a_tool() -> None:
    rules = (ToolRule(tool="Read"), ToolRule(tool="Bash", pattern="ls"), ToolRule(tool="Bash", pattern="wc"))
    role = Role(name="a", description="d", model="m", tools=rules, prompt="", source="s", origin="bundled")
    assert role.list_rules("Bash") == rules[1:]
    assert role.list_rules("Edit") == ()


def test_a_gate_is_pending_until_it_is_set() -> None:
    task = TaskState(task_id="t", task="x", started_at="now", max_iterations=1, model="m")
    assert task.get_gate(Phase.REVIEW).status is GateStatus.PENDING
    task = task.with_gate(Phase.REVIEW, Gate(status=GateStatus.PASSED))
    assert task.get_gate(Phase.REVIEW).status is GateStatus.PASSED


def test_the_frontmatter_keys_are_those_of_the_contract() -> None:
    assert set(FRONTMATTER_KEYS) <= {field.name for field in msgspec.structs.fields(TaskState)}
    assert " ".join(FRONTMATTER_KEYS) == (
        "version task_id active status current_phase iteration max_iterations started_at task "
        "task_complexity report_requested intent gates todos pending usage sandbox model base_tree tree "
        "undone"
    )


def test_a_new_task_is_unclassified_and_running() -> None:
    task = TaskState(task_id="t", task="x", started_at="now", max_iterations=1, model="m")
    assert (task.task_complexity, task.status, task.current_phase, task.iteration, task.active) == (
        "unclassified", "running", "refinement", 1, True,
    )  # fmt: skip
