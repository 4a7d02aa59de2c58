"""A deny is never lost, however commands are put together."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentflow.core.hook import Decision
from agentflow.permissions.rules import Rules, parse_rules
from agentflow.permissions.user_rules import apply_rules
from agentflow.tools.shell import BASH

RULES = Rules(deny=parse_rules(["Bash(rm *)"], ""), allow=parse_rules(["Bash"], ""))
AROUND = (
    *(
        "{}",
        "ls; {}",
        "{} | wc -l",
        "ls && {}",
        "{} || true",
        "({})",
        "{{ {}; }}",
        "! {}",
        "{} &",
        "{} > out",
    ),
    *(
        "echo $({})",
        'echo "a $({}) b"',
        "if true; then {}; fi",
        "for f in a b; do {}; done",
        "f() {{ {}; }}; f",
    ),
    *(
        "while true; do {}; done",
        "case x in x) {};; esac",
        "cat <({})",
        "A=$({})",
        "ls\n{}\nls",
        "{} 2>&1",
        "ls # x\n{}",
    ),
)
WRAPPERS = (
    *(
        "{}",
        "timeout 5 {}",
        "env A=1 {}",
        "nice -n 3 {}",
        "nohup {}",
        "command {}",
        "sudo {}",
        "stdbuf -oL {}",
    ),
    *("xargs {}", "setsid {}", "find . -exec {} +", "uv run {}", "sudo -u me {}", "bash -c '{}'"),
)
PROGRAMS = ("rm x", "/bin/rm -rf .", "r\\m x", '"rm" x', "rm", "rm $X", "A=1 rm x")


@st.composite
def commands(draw: st.DrawFn) -> str:
    command = draw(st.sampled_from(PROGRAMS))
    if command.startswith(("rm", "/")):
        command = draw(st.sampled_from(WRAPPERS)).format(command)
    for around in draw(st.lists(st.sampled_from(AROUND), max_size=3)):
        command = around.format(command)
    return command


@given(commands())
def test_deny_is_never_lost_by_composition(command: str) -> None:
    assert apply_rules(RULES, BASH, {"command": command}, Path("/nowhere")).decision is Decision.DENY


@given(st.text(alphabet="ls rm$()`'\"\\;|&<>{}#~*=\n x-[]!", max_size=40))
def test_any_text_is_decided(command: str) -> None:
    assert apply_rules(RULES, BASH, {"command": command}, Path("/nowhere")).decision in set(Decision)
