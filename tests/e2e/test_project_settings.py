"""What a repository says of itself in .claude/agentflow.yaml, and what it may never say."""

import pytest

from agentflow.trust import fingerprint_file, record_trust
from tests.support import play
from tests.support.repo import NewRepo, Repo

FILE = ".claude/agentflow.yaml"
SAYS = """\
checks:
  tests: python3 -m unittest discover -v -s tests
  lint: {skip: no linter yet}
limits: {iterations: 2, tokens: 123456}
surface: {add: [fixtures/**], remove: [tests/data/**]}
routing:
  complex_when: [{words: [ledger], reason: payment}]
  requires: {implementation: [review]}
"""


def trust_as_it_is(repo: Repo) -> None:
    """Have the settings trusted although they may be wrong, as an older version did."""
    digest = fingerprint_file(repo.root, FILE)
    assert digest is not None
    record_trust(repo.home / ".config/agentflow/config.yaml", repo.root, {FILE: digest})


def sources(repo: Repo) -> dict[str, tuple[object, str]]:
    rows = repo.run("config", "--json").json["settings"]
    return {row["key"]: (row["value"], row["source"]) for row in rows}


def test_once_it_is_trusted_all_of_it_counts_and_config_says_from_where(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, FILE: SAYS})
    assert "sets checks, routing, limits, surface" in repo.run("trust", "--yes").out
    found = sources(repo)
    assert found["max_iterations"] == (2, FILE)
    assert found["surface"] == ({"add": ["fixtures/**"], "remove": ["tests/data/**"]}, FILE)
    assert found["limits"] == ({"iterations": 2, "tokens": 123456}, FILE)
    assert found["model"][1] == "default"
    assert FILE in repo.run("verify", "--dry-run").out
    assert "payment" in repo.run("route", "post the ledger in calc.py").out

    done = repo.task("--no-review", play.TEXT, script=play.mending())
    assert done.code == 4, done.err
    assert repo.state()["max_iterations"] == 2
    (skipped,) = repo.state()["overrides"]
    assert (skipped["check"], skipped["reason"], skipped["by"]) == ("lint", "no linter yet", FILE)
    assert {record["command"] for record in repo.evidence()} >= {"python3 -m unittest discover -v -s tests"}


def test_the_command_line_has_the_last_word(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, FILE: "limits: {iterations: 2}\n"})
    repo.run("trust", "--yes")
    repo.task("--max-iterations", "5", play.TEXT, script=play.mending())
    assert repo.state()["max_iterations"] == 5


def test_untrusted_only_what_is_stricter_counts(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, FILE: SAYS + "  routes: {full: [verification]}\n"})
    found = sources(repo)
    assert found["max_iterations"] == (2, FILE)
    assert found["surface"] == ({"add": ["fixtures/**"], "remove": []}, FILE)
    assert found["routing"][0] == {
        "complex_when": [],
        "keywords": {},
        "requires": {"implementation": ["review"]},
        "routes": {},
    }
    assert found["checks"] == ({}, "default")
    checked = repo.run("verify", "--dry-run").out
    assert f"ignored until you trust it: {FILE}" in checked
    assert checked.count(FILE) == 1
    repo.write({FILE: "limits: {iterations: 500}\nchecks: {tests: 'true'}\n"})
    assert sources(repo)["max_iterations"] == (10, "default")
    assert repo.run("verify").code == 1


def test_one_changed_byte_takes_the_trust_away(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, FILE: "checks: {tests: 'true'}\n"})
    repo.run("trust", "--yes")
    assert sources(repo)["checks"][1] == FILE
    repo.write({FILE: "checks: {tests: 'true '}\n"})
    assert sources(repo)["checks"][1] == "default"


NEVER = (
    "endpoint: http://127.0.0.1:9",
    "api_key_env: HOME",
    "api_key_command: [touch, /tmp/x]",
    "model: opus",
    "models: {opus: x}",
    "sandbox: off",
    "network: [checks]",
    "readable: [~/.ssh]",
    "environment: [ANTHROPIC_API_KEY]",
    "unprotected: [.git]",
    "approvals: {tools: {Bash: never}}",
    "approval_timeout: 100d",
    "approvals_needed: 1",
    "webhook: http://127.0.0.1:9/",
)


def test_what_only_a_person_says_counts_for_nothing(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, FILE: "\n".join(NEVER)})
    found = sources(repo)
    assert {found[line.partition(":")[0]][1] for line in NEVER} == {"default"}


@pytest.mark.parametrize("line", [NEVER[0], NEVER[-4], NEVER[-1]])
def test_what_only_a_person_says_is_an_error_once_trusted(new_repo: NewRepo, line: str) -> None:
    repo = new_repo({**play.QUICK, FILE: f"surface: {{}}\n{line}\n"})
    key = line.partition(":")[0]
    found = repo.run("check")
    assert found.code == 2
    assert f"{FILE}:2: error: object contains unknown field `{key}`" in found.out
    assert "your own config.yaml" in found.out
    trust_as_it_is(repo)
    refused = repo.run("verify")
    assert refused.code == 2
    assert f"{FILE}:2: object contains unknown field `{key}`" in refused.err
    assert "your own config.yaml" in refused.err


def test_a_file_that_is_not_valid_is_not_trusted(new_repo: NewRepo) -> None:
    role = ".claude/agents/odd.md"
    repo = new_repo({**play.QUICK, FILE: f"{NEVER[0]}\n", role: "---\nname: [a]\n---\n"})
    repo.write({".claude/test-command": "true\n"})
    refused = repo.run("trust", "--yes")
    assert refused.code == 2
    assert f"{FILE}  settings, invalid" in refused.out
    assert f"not valid, so not trusted: {FILE}, {role}" in refused.err
    assert "agentflow check" in refused.err
    assert "Trusted 1 entry." in refused.out
    told = {item["file"]: item["trusted"] for item in repo.run("trust", "--json").json["items"]}
    assert told == {FILE: False, role: False, ".claude/test-command": True}
    assert repo.run("verify").code != 2

    repo.write(
        {FILE: "limits: {iterations: 2}\n", role: "---\nname: odd\ndescription: it is odd\n---\nBe odd.\n"}
    )
    assert repo.run("trust", "--yes").code == 0
    assert sources(repo)["max_iterations"] == (2, FILE)


def test_a_task_does_not_begin_under_wrong_settings(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, FILE: f"{NEVER[0]}\n"})
    trust_as_it_is(repo)
    refused = repo.run("task", play.TEXT)
    assert refused.code == 2
    assert "your own config.yaml" in refused.err
    assert repo.tasks == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limits:\n  iterations: 0\n", ":2: limits.iterations: expected a whole number >= 1"),
        ("limits:\n  iterations: many\n", ":2: limits.iterations: expected a whole number"),
        ("checks:\n  vibes: x\n", ":2: checks: invalid enum value 'vibes'"),
        ("checks:\n  lint: {skip: ''}\n", ":2: checks"),
        ("checks: [\n", ":2: "),
        ("limits: {}\nchecks:\n  - pytest\n", ":2: checks: expected keys and values, got a list"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(new_repo: NewRepo, text: str, said: str) -> None:
    repo = new_repo({**play.QUICK, FILE: text})
    trust_as_it_is(repo)
    refused = repo.run("verify")
    assert refused.code == 2
    assert f"{FILE}{said}" in refused.err
    if "checks: " in said:
        assert "write it as in `checks: {tests: python -m pytest -q}`" in refused.err


def test_a_link_out_of_the_repository_says_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    (repo.home / "mine.yaml").write_text("limits: {iterations: 1}\n")
    (repo.root / ".claude").mkdir(exist_ok=True)
    (repo.root / FILE).symlink_to(repo.home / "mine.yaml")
    assert sources(repo)["max_iterations"] == (10, "default")
    assert "Nothing in this repository needs your trust." in repo.run("trust", "--yes").out
