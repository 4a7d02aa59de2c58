"""Commands of two kinds: those that would get a reader past its list, and everyday ones it must not lose."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.core.hook import Decision
from agentflow.core.role import Role
from agentflow.library.roles import read_role
from agentflow.permissions.role_rules import CommandScope, explain_role_refusal
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


SEALED = {
    "explorer": CommandScope.LOOKING,
    "reviewer": CommandScope.READING,
    "verifier": CommandScope.ANYTHING,
}
READS = [(role, command) for command, roles in lines("reads.txt") for role in roles]
RUNS = [(role, command) for command, roles in lines("runs.txt") for role in roles if role != "verifier"]


def test_everyday_reading_is_not_refused_where_the_sandbox_keeps_it_in(roles: dict[str, Role]) -> None:
    assert len({command for _, command in READS}) >= 200
    lost = [
        (name, text) for name, text in READS if explain_role_refusal(roles[name], BASH, text, SEALED[name])
    ]
    assert len(lost) <= MAX_REFUSED * len(READS), lost


def test_who_looks_or_reviews_runs_no_test_in_any_spelling(roles: dict[str, Role]) -> None:
    assert len(RUNS) >= 200
    through = [
        (name, text) for name, text in RUNS if not explain_role_refusal(roles[name], BASH, text, SEALED[name])
    ]
    assert through == []


def test_a_refusal_is_one_line(roles: dict[str, Role]) -> None:
    told = [explain_role_refusal(roles[name], BASH, text, SEALED[name]) or "" for name, text in RUNS]
    assert [why for why in told if "\n" in why or "; " not in why or len(why) > 400] == []


def test_reading_never_asks(tmp_path: Path) -> None:
    rules = Rules(ask=parse_rules(["Bash(git push *)", "Bash(rm *)"], ""))
    asked = [
        command
        for _, command in ALLOWED
        if apply_rules(rules, BASH, {"command": command}, tmp_path).decision > Decision.ALLOW
    ]
    assert asked == []
