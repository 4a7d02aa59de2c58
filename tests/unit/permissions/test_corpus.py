"""Commands of two kinds: those that would get a reader past its list, and everyday ones it must not lose."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.core.hook import Decision
from agentflow.core.role import Role
from agentflow.library.roles import read_role
from agentflow.permissions.role_rules import explain_role_refusal
from agentflow.permissions.rules import Rules, parse_rules
from agentflow.permissions.user_rules import apply_rules
from agentflow.tools.shell import BASH

CORPUS = Path(__file__).parent / "corpus"
READERS = ("explorer", "reviewer", "verifier")
MAX_REFUSED = 0.01


def lines(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command with the roles of the heading that it stands under."""
    roles: tuple[str, ...] = READERS
    for line in (CORPUS / name).read_text("utf-8").splitlines():
        if line.startswith("# "):
            roles = tuple(role for role in READERS if role in line.split()) or READERS
        elif line:
            yield line.replace("¶", "\n"), roles


REFUSED = list(lines("refused.txt"))
ALLOWED = [(role, command) for command, roles in lines("allowed.txt") for role in roles]


@pytest.fixture(scope="module")
def roles() -> dict[str, Role]:
    agents = Path(__file__).parents[3] / "agents"
    return {name: read_role(agents / f"{name}.md", "bundled")[0] for name in READERS}


def test_the_corpus_is_large() -> None:
    assert len(REFUSED) + len({command for _, command in ALLOWED}) >= 500


@pytest.mark.parametrize(("command", "names"), REFUSED)
def test_no_reader_gets_past_its_list(roles: dict[str, Role], command: str, names: tuple[str, ...]) -> None:
    assert [name for name in names if explain_role_refusal(roles[name], BASH, command) is None] == []


def test_everyday_commands_are_not_lost(roles: dict[str, Role]) -> None:
    lost = [
        (name, command)
        for name, command in ALLOWED
        if explain_role_refusal(roles[name], BASH, command) is not None
    ]
    assert len(lost) <= MAX_REFUSED * len(ALLOWED), lost


def test_a_refusal_is_one_line(roles: dict[str, Role]) -> None:
    told = [
        explain_role_refusal(roles[name], BASH, command) or "" for command, names in REFUSED for name in names
    ]
    assert [why for why in told if "\n" in why or len(why) > 400] == []


def test_what_a_sandbox_holds_is_not_judged_by_words(roles: dict[str, Role]) -> None:
    commands = [command for command, _ in REFUSED if "claude" not in command and ".git/" not in command]
    held = [
        explain_role_refusal(role, BASH, text, is_held=True) for role in roles.values() for text in commands
    ]
    assert set(held) == {None}


def test_reading_never_asks(tmp_path: Path) -> None:
    rules = Rules(ask=parse_rules(["Bash(git push *)", "Bash(rm *)"], ""))
    asked = [
        command
        for _, command in ALLOWED
        if apply_rules(rules, BASH, {"command": command}, tmp_path).decision > Decision.ALLOW
    ]
    assert asked == []
