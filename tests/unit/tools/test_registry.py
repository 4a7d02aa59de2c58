import inspect
from typing import Any

import pytest

from agentflow.core.errors import ConfigError, UnknownTool
from agentflow.core.record import Record
from agentflow.core.role import Role, ToolRule
from agentflow.core.routing import PIPELINE
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.parse import Mismatch, fit
from agentflow.settings import Caller
from agentflow.tools.registry import SUBMITS, Toolbox, build_toolbox, make_standard_toolbox, to_spec
from tests.unit.tools.bench import Bench

LISTS = {
    "explorer": ("Read", "Grep", "Glob", "Bash", "WebSearch", "WebFetch"),
    "planner": ("Read", "Grep", "Glob", "TodoWrite"),
    "implementer": ("Read", "Write", "Edit", "MultiEdit", "Grep", "Glob", "Bash", "RunTests", "Mutants"),
    "reviewer": ("Read", "Grep", "Glob", "Bash"),
    "verifier": ("Read", "Grep", "Bash", "RunTests", "Mutants", "TryTest"),
}
NINE = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", "TodoWrite", "WebSearch", "WebFetch")


def a_role(name: str, *tools: str, part: str | None = None) -> Role:
    return Role(
        name=name,
        description="d",
        model="fast",
        tools=tuple(ToolRule(tool=tool) for tool in tools),
        prompt="",
        source=f"agents/{name}.md",
        origin="bundled",
        part=part,
    )


@pytest.mark.parametrize("tool", NINE)
@pytest.mark.parametrize("part", PIPELINE)
def test_a_role_is_offered_what_its_list_names(part: str, tool: str) -> None:
    offered = {
        each.name for each in make_standard_toolbox().select_for(a_role(part, *LISTS[part], part=part))
    }
    assert (tool in offered) == (tool in LISTS[part] and not tool.startswith("Web"))


@pytest.mark.parametrize("part", PIPELINE)
def test_the_web_is_the_explorer_s_once_it_is_opened(part: str) -> None:
    role = a_role(part, *LISTS[part], "WebFetch", "net", part=part)
    for network, expected in (((), False), ((Caller.CHECKS, Caller.IMPLEMENTER), False), (Caller, True)):
        offered = {tool.name for tool in build_toolbox(network).select_for(role)}
        assert ("WebFetch" in offered) == (expected and part == "explorer")
        assert "WebSearch" not in offered


@pytest.mark.parametrize("part", PIPELINE)
def test_a_part_is_offered_its_own_submit_tool_only(part: str) -> None:
    offered = [
        each.name for each in make_standard_toolbox().select_for(a_role(part, *LISTS[part], part=part))
    ]
    assert [name for name in offered if name.startswith("Submit")] == [SUBMITS[part]]
    assert offered == sorted(offered)


def test_a_role_of_no_part_submits_nothing() -> None:
    offered = make_standard_toolbox().select_for(a_role("guide", "Read", "Read", "state"))
    assert [tool.name for tool in offered] == ["Read", "Remember", "TodoWrite"]


def test_a_category_stands_for_its_tools() -> None:
    offered = make_standard_toolbox().select_for(a_role("a", "fs", "shell", "net", "Read"))
    of_these = [
        tool.name for tool in make_standard_toolbox().tools if tool.category in ("fs", "shell", "net")
    ]
    assert [tool.name for tool in offered] == sorted(of_these)
    assert {"Bash", "Edit", "Read"} <= set(of_these)


@pytest.mark.parametrize(
    ("entry", "near"),
    [("Raed", "Read"), ("read", "Read"), ("filesystem", ""), ("SubmitPlan", ""), ("fss", "fs")],
)
def test_an_unknown_name_is_an_error_that_helps(entry: str, near: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        make_standard_toolbox().select_for(a_role("guide", "Read", entry, part="explorer"))
    message = str(caught.value)
    assert message.startswith(f"agents/guide.md: tools: role guide lists {entry}, ")
    assert message.endswith(f"did you mean {near}?") == bool(near)
    assert "TodoWrite" in caught.value.hint


class Nothing(Record):
    pass


def nothing(given: Nothing, context: ToolContext) -> Output:
    """Do nothing,
    in   detail."""
    return Output(content=f"{context.call_id}{given}")


def test_two_tools_of_one_name_are_refused() -> None:
    tool = Tool(name="Same", category=Category.FS, effect=Effect.READ, input=Nothing, call=nothing)
    with pytest.raises(ConfigError, match="two tools are named Same"):
        Toolbox.of(tool, tool.replace(effect=Effect.WRITE))
    assert Toolbox.of(tool).find("Same") is tool
    assert Toolbox.of(tool).find("same") is None


def test_all_tools_have_one_signature() -> None:
    for tool in build_toolbox(Caller).tools:
        signature = inspect.signature(tool.call)
        kinds = [parameter.annotation for parameter in signature.parameters.values()]
        assert kinds == [tool.input, ToolContext], tool.name
        assert signature.return_annotation is Output, tool.name
        assert not inspect.iscoroutinefunction(tool.call), tool.name


def test_the_context_is_small_and_complete() -> None:
    parameters = inspect.signature(ToolContext).parameters
    assert len(parameters) <= 10
    assert "cancelled" in parameters
    assert all(each.default is inspect.Parameter.empty for each in parameters.values())


def test_a_tool_runs_with_any_context(bench: Bench) -> None:
    tool = Tool(name="Nothing", category=Category.FS, effect=Effect.READ, input=Nothing, call=nothing)
    assert bench(tool).content == "call-1Nothing()"
    assert to_spec(tool).description == "Do nothing, in detail."


def test_effects_say_what_may_run_side_by_side() -> None:
    effects = {tool.name: tool.effect for tool in build_toolbox(Caller).tools}
    assert {effects[name] for name in ("Read", "Glob", "Grep", "WebFetch")} == {Effect.READ}
    assert {effects[name] for name in ("Edit", "MultiEdit", "Write", "TodoWrite", *SUBMITS.values())} == {
        Effect.WRITE
    }
    assert {name for name, effect in effects.items() if effect is Effect.EXECUTE} == {
        "Bash",
        "RunTests",
        "Mutants",
        "TryTest",
    }


PUBLIC_KEYS: dict[str, tuple[set[str], set[str]]] = {
    "AskUserQuestion": ({"questions"}, set()),
    "Escalate": ({"assumption", "contradiction", "path", "line", "options"}, {"recommended"}),
    "Read": ({"file_path"}, {"offset", "limit"}),
    "Edit": ({"file_path", "old_string", "new_string"}, {"replace_all"}),
    "MultiEdit": ({"file_path", "edits"}, set()),
    "Write": ({"file_path", "content"}, set()),
    "Glob": ({"pattern"}, {"path"}),
    "Grep": ({"pattern"}, {"path", "glob", "output_mode", "-i", "head_limit", "multiline"}),
    "Bash": ({"command"}, {"description", "timeout", "run_in_background"}),
    "TodoWrite": ({"todos"}, set()),
    "WebFetch": ({"url", "prompt"}, set()),
    "SubmitFindings": ({"summary", "findings", "open_questions"}, set()),
    "SubmitPlan": ({"summary", "steps", "acceptance", "risks"}, set()),
    "SubmitChange": ({"summary", "files"}, set()),
    "SubmitReview": ({"verdict", "issues"}, set()),
    "SubmitVerdict": ({"verdict", "evidence", "reasons"}, set()),
}


def test_schemas_have_the_public_keys_and_are_closed() -> None:
    tools = build_toolbox(Caller).tools
    assert {tool.name for tool in tools} >= PUBLIC_KEYS.keys()
    for tool in tools:
        shown = to_spec(tool)
        assert shown.input_schema["type"] == "object", tool.name
        if tool.name in PUBLIC_KEYS:
            required, optional = PUBLIC_KEYS[tool.name]
            assert set(shown.input_schema["required"]) == required, tool.name
            assert set(shown.input_schema["properties"]) == required | optional, tool.name
        with pytest.raises(Mismatch, match="surprise"):
            fit(tool.input, {"surprise": 1})
        assert 20 < len(shown.description) < 200, tool.name


def test_keys_with_a_dash_reach_the_tool() -> None:
    grep: Any = make_standard_toolbox().find("Grep")
    assert to_spec(grep).input_schema["properties"]["-i"] == {"type": "boolean"}
    assert fit(
        grep.input, {"pattern": "a", "-i": True, "-n": False}
    ).ignore_case  # -n is public, but not shown
