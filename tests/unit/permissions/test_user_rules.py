import time
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.hook import Decision
from agentflow.permissions.rules import Rules, find_denied_tools, load_rules, parse_rules
from agentflow.permissions.user_rules import apply_rules
from tests.support.tools import tool_named


def rules(**lists: list[str]) -> Rules:
    return Rules(**{key: parse_rules(value, "") for key, value in lists.items()})


def decided(given: Rules, tool: str, root: Path, **values: Any) -> Decision:
    return apply_rules(given, tool_named(tool), values, root).decision


@pytest.mark.parametrize(
    "command",
    [
        *("rm x", "/bin/rm x", "./rm x", "\\rm x", "r'm' x", 'r"m" -f x', "A=1 rm x", "rm  x", "rm"),
        *("ls; rm x", "ls | rm x", "ls && (rm x)", "echo $(rm x)", 'echo "`rm x`"', "! rm x"),
        *("env rm x", "env -u A B=1 rm x", "timeout 5 rm x", "timeout -k 1 5 rm x", "nice -n 5 nohup rm x"),
        *(
            "bash -c 'rm x'",
            'bash -c "ls; rm x"',
            "sh -ec 'env rm x'",
            "sudo -u me rm x",
            "sudo sh -c 'rm x'",
        ),
        *(
            "ls | xargs rm",
            "xargs -I{} rm {}",
            "find . -exec rm {} +",
            "find . -exec sh -c 'rm x' \\;",
            "exec rm x",
        ),
        *("watch 'rm x'", "su -c 'rm x'", "flock f rm x", "busybox rm x", "setsid rm x", "uv run rm x"),
        *(
            "f() { rm x; }; f",
            "for f in a; do rm $f; done",
            "if rm x; then ls; fi",
            "cat <(rm x)",
            "rm x > y",
        ),
        *("timeout 5 env sh -c 'nice rm x'", "command rm x", "docker run -v a:b c rm x", "npx rm x", "rm $X"),
    ],
)
def test_a_denied_program_is_found_wherever_it_stands(tmp_path: Path, command: str) -> None:
    assert (
        decided(rules(deny=["Bash(rm *)"], allow=["Bash"]), "Bash", tmp_path, command=command)
        is Decision.DENY
    )


@pytest.mark.parametrize("path", ["~no-such-user/x", "~$letter.docx", "a\0b", "loop"])
def test_a_path_that_no_home_or_file_can_have_is_judged_by_its_name(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    wanted = Decision.DENY if "$" in path else Decision.NONE
    assert decided(rules(deny=["Edit(~$*)"]), "Write", tmp_path, file_path=path) is wanted


@pytest.mark.parametrize(
    "command", ["ls rm", "echo 'rm x'", "git rm x", "grep rm a", "rmdir x", "cat rm", "ls # rm x"]
)
def test_a_word_is_not_a_program(tmp_path: Path, command: str) -> None:
    assert decided(rules(deny=["Bash(rm *)"]), "Bash", tmp_path, command=command) < Decision.ASK


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git -C sub push",
        "git --no-pager push origin",
        "git  'push' x",
        "git $X",
        "/usr/bin/git push",
    ],
)
def test_options_before_a_subcommand_hide_nothing(tmp_path: Path, command: str) -> None:
    assert decided(rules(ask=["Bash(git push:*)"]), "Bash", tmp_path, command=command) is Decision.ASK


@pytest.mark.parametrize(
    ("lists", "decision"),
    [
        ({"deny": ["Bash(make *)"], "ask": ["Bash(make *)"], "allow": ["Bash(make *)"]}, Decision.DENY),
        ({"ask": ["Bash(make *)"], "allow": ["Bash(make test)"]}, Decision.ASK),
        ({"allow": ["Bash(make *)"]}, Decision.ALLOW),
        ({"allow": ["Bash(make)"]}, Decision.NONE),
        ({"deny": ["*"]}, Decision.DENY),
        ({"allow": ["*"]}, Decision.NONE),
        ({"deny": ["Ba*"]}, Decision.DENY),
        ({"deny": ["Bash(description:deploy*)"]}, Decision.NONE),
    ],
)
def test_deny_beats_ask_beats_allow(tmp_path: Path, lists: dict[str, list[str]], decision: Decision) -> None:
    assert decided(rules(**lists), "Bash", tmp_path, command="make test") is decision


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("make test", Decision.ALLOW),
        ("make test && ls | head", Decision.ALLOW),
        ("make test; touch x", Decision.NONE),
        ("make test $(touch x)", Decision.NONE),
        ("make test > x", Decision.NONE),
        ("make test > out/x", Decision.ALLOW),
        ("make test > out/../x", Decision.NONE),
        ("make test > /dev/null", Decision.ALLOW),
        ("NO_COLOR=1 make test", Decision.ALLOW),
        ("PATH=. make test", Decision.NONE),
        ("timeout 9 make test", Decision.ALLOW),
        ("./make test", Decision.NONE),
        ("git diff", Decision.ALLOW),
        ("eval make test", Decision.NONE),
    ],
)
def test_to_allow_every_part_has_to_be_allowed(tmp_path: Path, command: str, decision: Decision) -> None:
    given = rules(allow=["Bash(make test:*)", "Edit(out/**)"])
    assert decided(given, "Bash", tmp_path, command=command) is decision


UNCLEAR = ("eval x", 'bash -c "$X"', "$X y", "echo rm x | sh", "ls <<A <<B\nA\nB", "f() { $1; }; f rm")


@pytest.mark.parametrize("command", UNCLEAR)
@pytest.mark.parametrize(
    ("given", "decision"),
    [
        ({}, Decision.NONE),
        ({"allow": ["Bash"]}, Decision.NONE),
        ({"deny": ["WebFetch"]}, Decision.NONE),
        ({"deny": ["Bash(rm *)"]}, Decision.DENY),
        ({"ask": ["Bash(git push *)"]}, Decision.ASK),
        ({"ask": ["Bash(rm *)"], "deny": ["Edit(*.lock)"]}, Decision.DENY),
    ],
)
def test_a_rule_that_could_be_about_an_unclear_command_is(
    tmp_path: Path, command: str, given: dict[str, list[str]], decision: Decision
) -> None:
    assert decided(rules(**given), "Bash", tmp_path, command=command) is decision


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("bash <<'E'\nls; rm x\nE", True),
        ("env bash -s <<'E'\nrm x\nE", True),
        ("python3 - <<'E'\nimport os; os.system('rm x')\nE", True),
        ("echo 'import os; os.system(\"rm x\")' | python3", True),
        ("python3 -c 'import os; os.system(\"rm x\")'", True),
        ("python3 - <<'E'\nprint('form')\nE", False),
        ("cat > notes.txt <<'E'\nrm x\nE", False),
        ("python3 - <<'E'\nimport shutil\nshutil.move('a', 'b')\nE", False),
        ("for f in a b; do python3 $f; done", False),
    ],
)
def test_a_here_document_gets_no_command_past_a_rule(tmp_path: Path, command: str, denied: bool) -> None:
    expected = Decision.DENY if denied else Decision.NONE
    assert decided(rules(deny=["Bash(rm *)"]), "Bash", tmp_path, command=command) is expected


@pytest.mark.parametrize(
    "command", ["eval rm -rf x", 'X="rm -rf *"; $X', "echo .env | xargs -I{} sh -c 'cat {}'; $X"]
)
def test_what_deletes_or_names_a_secret_is_written_out_plainly(tmp_path: Path, command: str) -> None:
    assert decided(rules(), "Bash", tmp_path, command=command) is Decision.DENY


@pytest.mark.parametrize(
    ("rule", "path", "denied"),
    [
        ("Edit(src/**)", "src/a.py", True),
        ("Edit(src/**)", "lib/src/a.py", True),
        ("Edit(/src/**)", "lib/src/a.py", False),
        ("Edit(./src/**)", "lib/src/a.py", False),
        ("Edit(src)", "src/a.py", True),
        ("Edit(*.lock)", "deep/uv.lock", True),
        ("Edit(*.lock)", "deep/UV.LOCK", True),
        ("Edit(src/**)", "out/../src/a.py", True),
        ("Edit(src/**)", "link/a.py", True),
        ("Edit(//etc/**)", "/etc/x", True),
        ("Read(src/**)", "src/a.py", True),
        ("Write(src/**)", "src/a.py", False),
        ("Edit(src/**)", "srcs/a.py", False),
    ],
)
def test_a_path_is_held_against_gitignore_patterns(
    tmp_path: Path, rule: str, path: str, *, denied: bool
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    assert (decided(rules(deny=[rule]), "Edit", tmp_path, file_path=path) is Decision.DENY) == denied


@pytest.mark.parametrize(
    ("path", "decision"),
    [("src/a.py", Decision.ALLOW), ("lib/src/a.py", Decision.NONE), ("src/../b", Decision.NONE)],
)
def test_to_allow_a_path_stands_where_it_is_said(tmp_path: Path, path: str, decision: Decision) -> None:
    assert decided(rules(allow=["Edit(src/**)"]), "Write", tmp_path, file_path=path) is decision


@pytest.mark.parametrize(
    "command",
    ["cat secrets/a", "cat ./secrets/a", "head -1 x/../secrets/a", "wc < secrets/a", "echo a > secrets/a"],
)
def test_what_may_not_be_read_is_not_read_by_a_command(tmp_path: Path, command: str) -> None:
    assert decided(rules(deny=["Read(secrets/**)"]), "Bash", tmp_path, command=command) is Decision.DENY


def test_a_redirection_is_held_against_rules_on_edits(tmp_path: Path) -> None:
    given = rules(deny=["Edit(*.lock)"])
    assert decided(given, "Bash", tmp_path, command="echo a >> uv.lock") is Decision.DENY
    assert decided(given, "Bash", tmp_path, command="cat uv.lock > x") is Decision.NONE


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        "x/.env.local",
        "server.p12",
        "a.pem",
        "id_rsa",
        "tests/test_secret_manager.py",
        "Token.txt",
    ],
)
def test_a_secret_is_opened_only_where_a_rule_names_it(tmp_path: Path, path: str) -> None:
    assert decided(rules(allow=["Read"]), "Read", tmp_path, file_path=path) is Decision.DENY
    assert decided(rules(allow=[f"Read(/{path})"]), "Read", tmp_path, file_path=path) is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./.ENV",
        "cat .e*",
        "grep x .env.local",
        "cp .env x",
        "wc < .env",
        "cat id_r?a",
        "cat $(ls) k.pem",
    ],
)
def test_a_command_names_no_secret(tmp_path: Path, command: str) -> None:
    assert decided(rules(), "Bash", tmp_path, command=command) is Decision.DENY


@pytest.mark.parametrize(
    "command", ["grep -rn token src", "cat src/foo..bar.py", "ls env", "cat tokens.py", "ls *"]
)
def test_words_like_secrets_may_be_looked_for(tmp_path: Path, command: str) -> None:
    assert decided(rules(), "Bash", tmp_path, command=command) < Decision.ASK


@pytest.mark.parametrize(
    ("rule", "tool", "given", "denied"),
    [
        ("WebFetch(domain:example.org)", "WebFetch", {"url": "https://EXAMPLE.org/x"}, True),
        ("WebFetch(domain:example.org)", "WebFetch", {"url": "https://example.org.evil.net/"}, False),
        ("WebFetch(domain:*.example.org)", "WebFetch", {"url": "https://a.example.org"}, True),
        ("mcp__a", "mcp__a__b", {}, True),
        ("mcp__a__*", "mcp__a__b", {}, True),
        ("mcp__a", "mcp__ab__c", {}, False),
        ("Task(guide)", "Agent", {"subagent_type": "guide"}, True),
        ("Agent(guide)", "Agent", {"subagent_type": "other"}, False),
        ("Skill(x)", "Skill", {"skill": "x"}, True),
        ("Grep(output_mode:content)", "Grep", {"pattern": "a", "output_mode": "content"}, True),
        ("mcp__*", "Read", {"file_path": "a"}, False),
    ],
)
def test_rules_on_other_tools(
    tmp_path: Path, rule: str, tool: str, given: dict[str, Any], *, denied: bool
) -> None:
    assert (decided(rules(deny=[rule]), tool, tmp_path, **given) is Decision.DENY) == denied


def test_a_bare_deny_takes_tools_away() -> None:
    tools = [tool_named(name) for name in ("Read", "Grep", "Edit", "Write", "Bash")]
    assert find_denied_tools(rules(deny=["Edit", "Bash(rm *)", "Gr*"]), tools) == {"Edit", "Write", "Grep"}


def test_a_project_allows_only_when_trusted(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"permissions": {"allow": ["Bash(a)"], "deny": ["Bash(b)"]}}')
    assert [str(rule) for rule in load_rules(tmp_path / "none", (file,)).allow] == []
    assert [str(rule) for rule in load_rules(tmp_path / "none", (file,), frozenset({file})).allow] == [
        "Bash(a)"
    ]
    (denied,) = load_rules(tmp_path / "none", (file,)).deny
    assert (str(denied), denied.source) == ("Bash(b)", str(file))


@pytest.mark.parametrize(
    "command", ["ls " + "$x " * 3000, "timeout " + "a " * 4900, "echo " + "'a b' " * 1500]
)
def test_a_ruling_takes_no_time(tmp_path: Path, command: str) -> None:
    given = rules(deny=["Bash(a * b * c * d *)", "Bash(rm *)", "Read(secrets/**)"])
    begin = time.process_time()
    decided(given, "Bash", tmp_path, command=command)
    assert time.process_time() - begin < 3
