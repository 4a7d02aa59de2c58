import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentflow.compose import capability as channels
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import CHANNELS, list_channels
from agentflow.core.errors import ConfigError
from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import LOOK, PEEK, EndsWith, Everything, Gives, Says, a_hook, built
from tests.unit.compose.wiring import wiring
from tests.unit.loop.stage import SUBMIT, a_role, script

ROOT = Path(__file__).parents[3]
NARROW: Mapping[str, type] = {
    "tools": channels.ToolChannel,
    "hooks": channels.HookChannel,
    "model": channels.ModelChannel,
    "context": channels.ContextChannel,
    "tool_factories": channels.ToolFactoryChannel,
    "observer": channels.ObserverChannel,
}


def test_a_capability_of_all_six_is_asked_once_for_each_in_the_fixed_order(place: Surroundings) -> None:
    everything = Everything()
    agent = built(place, everything)
    assert tuple(name for name, _ in everything.handed) == CHANNELS
    assert list_channels(everything) == CHANNELS
    shown = wiring(agent)
    assert (shown["tools"], shown["hooks"], shown["model_id"]) == (["Look", "Peek"], ["all"], "m-2")
    assert (agent.system, len(shown["observers"])) == ("Look twice.", 1)


def test_each_channel_shows_its_own_methods_only(place: Surroundings) -> None:
    everything = Everything()
    built(place, everything)
    for name, channel in everything.handed:
        public = {each for each in dir(channel) if not each.startswith("_")}
        assert public == {each for each in vars(NARROW[name]) if not each.startswith("_")}, name
        held = vars(channel).values()
        assert not [value for value in held if isinstance(value, AgentBuilder | Everything)], name


def test_a_channel_that_was_kept_leads_nowhere_afterwards(place: Surroundings) -> None:
    everything = Everything()
    agent = built(place, everything)
    before, kept = wiring(agent), dict(everything.handed)
    kept["tools"].add(PEEK)
    kept["tools"].end_with(SUBMIT)
    kept["hooks"].add(a_hook("late"))
    kept["model"].use(script(), "late")
    kept["context"].add("late")
    kept["tool_factories"].add(lambda _: SUBMIT)
    kept["observer"].add(print)
    kept["observer"].keep(print)
    assert wiring(agent) == before


class InstallsNothing:
    """Looks like a capability to nobody."""


class Misspelled:
    def install_tool(self, tools: channels.ToolChannel) -> None:
        tools.add(LOOK)


class HalfMisspelled(Misspelled):
    def install_tools(self, tools: channels.ToolChannel) -> None:
        tools.add(LOOK)


class NotAMethod:
    install_hooks = 3


@pytest.mark.parametrize(
    ("stranger", "problem"),
    [
        (InstallsNothing(), "InstallsNothing is no capability: it installs nothing"),
        (Misspelled(), "Misspelled is no capability: install_tool leads to no channel"),
        (HalfMisspelled(), "HalfMisspelled is no capability: install_tool leads to no channel"),
        (NotAMethod(), "NotAMethod is no capability: install_hooks leads to no channel"),
        (None, "NoneType is no capability: it installs nothing"),
    ],
)
def test_what_is_no_capability_is_refused_at_once(place: Surroundings, stranger: Any, problem: str) -> None:
    builder = AgentBuilder.base(a_role(), place)
    with pytest.raises(ConfigError) as caught:
        builder.with_capability(stranger)
    assert str(caught.value) == problem
    assert all(f"install_{name}" in caught.value.hint for name in CHANNELS)
    assert builder == AgentBuilder.base(a_role(), place)


def test_a_capability_may_use_two_channels(place: Surroundings) -> None:
    agent = built(place, Everything(), Says("Third."), EndsWith(SUBMIT))
    assert agent.submit is SUBMIT
    assert wiring(agent)["tools"] == ["Look", "Peek", "SubmitChange"]


def test_two_tools_of_one_name_are_refused(place: Surroundings) -> None:
    with pytest.raises(ConfigError, match="two tools are named Look"):
        built(place, Gives(), Gives((LOOK.replace(input=SUBMIT.input),)))


FITTING = """
from agentflow.compose.capability import Capability, ToolChannel
class Fits:
    def install_tools(self, tools: ToolChannel) -> None:
        {body}
found: Capability = Fits()
"""
STRANGE = """
from agentflow.compose.capability import Capability
class Strange:
    def install_nothing(self) -> None: ...
found: Capability = Strange()
"""
BROAD = """
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import Capability
class Broad:
    def install_tools(self, builder: AgentBuilder) -> None: ...
found: Capability = Broad()
"""


def test_strict_types_hold_a_capability_to_its_channel(tmp_path: Path) -> None:
    sources = {
        "fine.py": FITTING.format(body="tools.add()"),
        "hooks.py": FITTING.format(body="tools.hooks()"),
        "build.py": FITTING.format(body="tools.build()"),
        "strange.py": STRANGE,
        "broad.py": BROAD,
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    options = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache/planted'}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *sources],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = {line.partition(":")[0] for line in checked.stdout.splitlines() if " error: " in line}
    assert wrong & sources.keys() == sources.keys() - {"fine.py"}, checked.stdout + checked.stderr
