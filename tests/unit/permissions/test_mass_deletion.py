"""Commands over the whole repository, and everyday ones beside them."""

from pathlib import Path

import pytest

from agentflow.core.hook import Decision
from agentflow.core.role import ToolRule
from agentflow.permissions.rules import Rules
from agentflow.permissions.user_rules import apply_rules
from agentflow.tools.shell import BASH

ENTRIES = ("src", "tests", "docs", "build", "dist", "node_modules", "README.md", "pyproject.toml", "a.log")
ASKED = [
    *("rm -rf /*", "rm -rf /", "rm -rf .", "rm -rf ./", "rm -rf *", "rm -rf ./*", "rm -rf -- *"),
    *("rm *", "rm -rf ..", "rm -rf ../*", "rm -rf src/..", "rm -rf .[!.]*", "rm -rf ./[!x]*"),
    *("cd / && rm -rf *", "cd /; rm -rf *", "cd build; cd ..; rm -rf *", 'cd "$X" && rm -rf *'),
    *("rm -rf src tests docs build dist README.md", "rm -rf */", "rm -rf */*", "rm -rf ROOT"),
    *("rm -rf ROOT/*", "/bin/rm -rf *", "\\rm -rf *", "command rm -rf *", "sudo rm -rf /*"),
    *("env rm -rf *", "timeout 5 rm -rf .", "sh -c 'rm -rf *'", "busybox rm -rf .", "npx rimraf ."),
    *("nohup rm -rf . &", "true && rm -fr .", "find . -delete", "find / -delete", "find -delete"),
    *("find . -type f -delete", "find . -exec rm -rf {} +", "find . -mindepth 1 -exec rm {} \\;"),
    *("find ROOT -delete", "git clean -fdx", "git clean -fdX", "git clean -xdf ."),
    *("chmod -R 777 /", "chmod -R a-w .", "chown -R nobody *", "chmod --recursive 000 ./*"),
    *("chmod -fR 0 .", "mv * /tmp/", "mv ./* ../", "shred -u *", "truncate -s 0 *"),
    *("find . -name '*' -delete", "find . -not -name x -delete", "find . ! -name x -delete"),
    "bash <<'E'\nrm -rf *\nE",
]
FREE = [
    *("rm -rf build/", "rm -rf build dist", "rm -rf ./dist/*", "rm -rf build/*", "rm -f *.pyc"),
    *("rm -f *.log", "rm -rf node_modules", "rm README.md", "rm src/a.py tests/b.py", "rm -rf src/old"),
    *("rm -rf **/x/__pycache__", "cd build && rm -rf *", "cd src && rm -rf ./*", "rm -rf /tmp/x"),
    *("rm -rf /opt/x/*", "rm -rf .pytest_cache", 'd=$(mktemp -d); cp a.log "$d"; rm -rf "$d"'),
    *("D=build; rm -rf $D", 'rm -rf "$HOME/.cache/x"', "for d in build dist; do rm -rf $d; done"),
    *("rm -rf src/*/generated", "rm -rf */__pycache__", "rmdir build", "find . -name '*.pyc' -delete"),
    *("find . -type d -name __pycache__ -exec rm -rf {} +", "find build -delete"),
    *("find . -name '*.orig' | xargs rm -f", "find . -type d -empty -delete"),
    *("find . -name a -o -name b", "find . -type f -exec grep -l x {} +"),
    *("find . \\( -name a -o -name b \\) -delete", "grep -rl old src | xargs rm"),
    *("git ls-files -z '*.orig' | xargs -0 rm -f", "git clean -n -fdx", "git clean -fd"),
    *("git clean -fdx build", "chmod +x script.sh", "chmod -R u+w build", "chmod 644 src/*"),
    *("chmod +x *.sh", "mv src/a.py src/b.py", "mv docs documentation", "mv *.log build/", "ls *"),
    *("cat *", "cp -r . /tmp/x", "echo 'rm -rf /*'", "grep -r 'rm -rf .' ."),
    "python -m pytest -q",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name in (*ENTRIES, ".git", ".claude"):
        place = root / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("x") if "." in name[1:] else place.mkdir()
    return root


def decision(root: Path, command: str, *allowed: str) -> Decision:
    rules = Rules(allow=tuple(ToolRule(tool="Bash", pattern=pattern) for pattern in allowed))
    return apply_rules(rules, BASH, {"command": command.replace("ROOT", str(root))}, root).decision


@pytest.mark.parametrize("command", ASKED)
def test_the_whole_repository_asks(root: Path, command: str) -> None:
    assert decision(root, command) in (Decision.ASK, Decision.DENY)
    assert decision(root, command, "*") in (Decision.ASK, Decision.DENY)


@pytest.mark.parametrize("command", FREE)
def test_everyday_commands_do_not(root: Path, command: str) -> None:
    assert decision(root, command) in (Decision.NONE, Decision.ALLOW)


def test_a_rule_for_its_very_words_allows_it(root: Path) -> None:
    assert decision(root, "rm -rf ./*", "rm -rf ./*") is Decision.ALLOW


def test_a_link_to_the_root_is_the_root(root: Path) -> None:
    (root / "build/here").symlink_to("../")
    (root / "build/up").symlink_to("..")
    assert decision(root, "rm -rf build/up/*") is Decision.ASK
    assert decision(root, "cd build/up && rm -rf *") is Decision.ASK


def test_a_repository_of_one_folder_is_most_of_itself_only_by_a_glob(tmp_path: Path) -> None:
    for name in ("calc.py", "tests"):
        (tmp_path / name).mkdir()
    assert decision(tmp_path, "rm -rf *") is Decision.ASK
    assert decision(tmp_path, "rm calc.py") is Decision.NONE
    assert decision(tmp_path, "rm -rf tests") is Decision.NONE
