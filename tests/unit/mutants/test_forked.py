"""Mutants in forks: the outcome of each, whatever tests and code do."""

import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.core.verdict import MutantEnd
from agentflow.mutants.forked import try_forked
from agentflow.mutants.operators import Mutant, Operator, list_mutants
from agentflow.mutants.trial import MutantOrder, TriedMutant
from tests.support.boxes import boxed

KILLED, SURVIVED, NO_COVERAGE, INVALID = (
    *(MutantEnd.KILLED, MutantEnd.SURVIVED, MutantEnd.NO_COVERAGE, MutantEnd.INVALID),
)
RATES = """\
def rate(total, member=False):
    if member:
        total = total - 10
    return total


def never(total):
    return total + 1
"""
TEST = """\
from rates import rate


def test_rate():
    assert rate(10) == 10


def test_member():
    assert rate(10, True) == 0
"""
BOTH = frozenset({"test_rates.py::test_rate", "test_rates.py::test_member"})


def edit(path: str, text: str, before: str, after: str) -> Mutant:
    """Return the mutant in which one text stands for another."""
    start = text.encode().index(before.encode())
    return Mutant(
        path=path,
        line=text[: text.index(before)].count("\n") + 1,
        block=1,
        start=start,
        end=start + len(before.encode()),
        before=before,
        after=after,
        operator=Operator.TEXT,
    )


class Repo:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.command = f"{sys.executable} -m pytest -q"
        self.seconds = 60.0

    def write(self, files: dict[str, str]) -> "Repo":
        for path, text in files.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(dedent(text), "utf-8")
        return self

    def attempt(
        self,
        passing: set[str] | frozenset[str],
        *mutants: Mutant,
        first: frozenset[str] = frozenset(),
        is_strong: bool = True,
    ) -> tuple[TriedMutant, ...] | None:
        order = MutantOrder(
            check=Check(name=CheckName.TESTS, command=self.command, timeout=60, reason=""),
            passing=frozenset(passing),
            first=first,
            mutants=mutants,
            seconds=self.seconds,
            strong=frozenset(mutants if is_strong else ()),
        )
        return try_forked(order, boxed(self.root), lambda _: {"PYTHONDONTWRITEBYTECODE": "1"})

    def outcomes(self, passing: set[str] | frozenset[str], *edits: tuple[str, str, str]) -> list[MutantEnd]:
        texts = {path: (self.root / path).read_text() for path, _, _ in edits}
        found = self.attempt(passing, *(edit(path, texts[path], *each) for path, *each in edits))
        assert found is not None
        assert {path: (self.root / path).read_text() for path in texts} == texts
        return [each.outcome for each in found]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def test_each_mutant_gets_its_outcome_and_its_killers(repo: Repo) -> None:
    repo.write({"rates.py": RATES, "test_rates.py": TEST})
    texts = [
        ("total - 10", "total + 10"),
        ("member=False", "member=0"),
        ("total + 1", "total"),
        ("if member:", "if member"),
    ]
    mutants = [edit("rates.py", RATES, *each) for each in texts]
    found = repo.attempt(BOTH, *mutants)
    assert found is not None
    assert [each.outcome for each in found] == [KILLED, SURVIVED, NO_COVERAGE, INVALID]
    assert found[0].killers == ("test_rates.py::test_member",)


def test_the_tests_that_prove_come_first(repo: Repo) -> None:
    second = TEST.replace("def test_rate", "def test_again").replace("def test_member", "def test_later")
    repo.write({"rates.py": RATES, "test_rates.py": TEST, "test_second.py": second})
    passing = BOTH | {"test_second.py::test_again", "test_second.py::test_later"}
    mutant = edit("rates.py", RATES, "return total", "return 7")
    found = repo.attempt(passing, mutant, first=frozenset(passing - BOTH))
    assert found is not None
    assert found[0].killers == ("test_second.py::test_again", "test_second.py::test_later")


@pytest.mark.parametrize(("is_strong", "outcome"), [(True, KILLED), (False, MutantEnd.NOT_TRIED)])
def test_the_rest_of_the_tests_runs_for_what_decides_alone(
    repo: Repo, is_strong: bool, outcome: MutantEnd
) -> None:
    repo.write({"rates.py": RATES, "test_rates.py": TEST})
    mutant = edit("rates.py", RATES, "total - 10", "total + 10")
    found = repo.attempt(BOTH, mutant, first=frozenset({"test_rates.py::test_rate"}), is_strong=is_strong)
    assert found is not None
    assert [each.outcome for each in found] == [outcome]


HOSTILE = """
    import os, signal, sys, threading, time

    def value(kind):
        return 1
"""


@pytest.mark.parametrize(
    "after",
    [
        "while True: pass",
        "time.sleep(1000)",
        "os._exit(0)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.kill(0, signal.SIGKILL)",
        "sys.exit(0)",
        "return 'x' * (1 << 40)",
        "sys.setrecursionlimit(10**9); return value(kind)",
        "print('x' * 50_000_000); return 2",
        "threading.Thread(target=time.sleep, args=(1000,)).start(); return 2",
        "os.fork() or os.setsid() or time.sleep(1000); return 2",
    ],
)
def test_what_a_mutant_does_is_noticed_and_ends_there(repo: Repo, after: str) -> None:
    test = "from code_ import value\n\n\ndef test_value():\n    assert value(1) == 1\n"
    repo.write({"code_.py": HOSTILE, "test_code.py": test})
    began = time.monotonic()
    edits = [("code_.py", "return 1", after), ("code_.py", "return 1", "return 3"), ("code_.py", "1", "True")]
    assert repo.outcomes({"test_code.py::test_value"}, *edits) == [KILLED, KILLED, SURVIVED]
    assert time.monotonic() - began < 20


def test_a_line_is_reached_from_wherever_it_runs(repo: Repo) -> None:
    """By an import, a fixture of many tests, another process, a thread, or another line of its statement."""
    code = """\
        import functools

        LIMIT = 3 + 1


        def setting():
            return 5 + 1


        def fixed():
            return 6 + 1


        @functools.lru_cache
        def table():
            return 7 + 1


        def threaded(found):
            found.append(8 + 1)


        def wide(first, second):
            return max(
                first,
                second + 1,
            )


        if __name__ == "__main__":
            print(9 + 1)
    """
    test = """\
        import pathlib, subprocess, sys, threading
        import pytest, code_


        @pytest.fixture(scope="module")
        def shared():
            return code_.fixed()


        class TestClass:
            @classmethod
            def setup_class(cls):
                cls.setting = code_.setting()

            def test_first(self, shared):
                code_.table()

            def test_second(self):
                assert self.setting == 6


        def test_import():
            assert code_.LIMIT == 4


        def test_shared(shared):
            assert shared == 7


        def test_table():
            assert code_.table() == 8


        def test_thread():
            thread = threading.Thread(target=code_.threaded, args=(found := [],))
            thread.start()
            thread.join()
            assert found == [9]


        def test_wide():
            assert code_.wide(1, 2) == 3


        def test_process():
            said = subprocess.run([sys.executable, "code_.py"], stdout=subprocess.PIPE, check=True)
            assert said.stdout.strip() == b"10"
    """
    repo.write({"code_.py": code, "tests/test_code.py": test})
    names = ("import", "shared", "table", "thread", "wide", "process")
    inside = {f"tests/test_code.py::TestClass::test_{name}" for name in ("first", "second")}
    edits = [("code_.py", f"{number} + 1", f"{number} - 1") for number in (3, 5, 6, 7, 8, 9)]
    edits.append(("code_.py", "second + 1", "second"))
    found = repo.outcomes({f"tests/test_code.py::test_{name}" for name in names} | inside, *edits)
    assert found == [KILLED] * 7


@pytest.mark.parametrize(
    ("files", "passing"),
    [
        ({"test_rates.py": TEST + "    import os; os._exit(0)\n"}, BOTH),
        ({}, BOTH | {"test_rates.py::test_gone"}),
        ({"conftest.py": "raise SystemExit(3)\n"}, BOTH),
        ({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"}, BOTH),
        ({"test_rates.py": TEST + "    import os; os.mkdir('/tmp/was')\n"}, BOTH),
        (
            {
                "test_rates.py": TEST.replace("\n\n\ndef", "\nseen = []\n\n\ndef", 1) + "    seen.append(1)\n"
                "\n\ndef test_more():\n    assert seen\n    assert rate(1) == 1\n"
            },
            BOTH | {"test_rates.py::test_more"},
        ),
    ],
    ids=("ends", "not there", "conftest", "settings", "left a file", "left a value"),
)
def test_where_tests_do_not_pass_as_they_should_forks_tell_nothing(
    repo: Repo, files: dict[str, str], passing: frozenset[str]
) -> None:
    repo.write({"rates.py": RATES, "test_rates.py": TEST, **files})
    mutants = list_mutants("rates.py", RATES, range(1, 5))
    assert mutants
    assert repo.attempt(passing, *mutants) is None


@pytest.mark.parametrize(
    "command",
    [
        "{} -m unittest",
        "make test",
        "{} -m pytest -q && true",
        "{}-none -m pytest -q",
        "r=0; (cd a && {0} -m pytest -q) || r=1; (cd b && {0} -m pytest -q) || r=1; exit $r",
    ],
)
def test_another_command_is_not_for_forks(repo: Repo, command: str) -> None:
    repo.write({"rates.py": RATES, "test_rates.py": TEST})
    repo.command = command.format(sys.executable)
    assert repo.attempt(BOTH, *list_mutants("rates.py", RATES, range(1, 5)) or ()) is None


@pytest.mark.parametrize(
    "files",
    [
        {"conftest.py": "import rates\n"},
        {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-x -n 2 --strict-markers -v'\n"},
        {"conftest.py": "import os\nos.chdir('/')\n"},
        {"conftest.py": "def pytest_itemcollected(item):\n    print('x' * 1_000_000)\n"},
    ],
    ids=("loaded by conftest", "options", "elsewhere", "loud"),
)
def test_surroundings_change_no_outcome(repo: Repo, files: dict[str, str]) -> None:
    repo.write({"rates.py": RATES, "test_rates.py": TEST, **files})
    edits = [("rates.py", "total - 10", "total + 10"), ("rates.py", "member=False", "member=0")]
    assert repo.outcomes(BOTH, *edits) == [KILLED, SURVIVED]


def test_a_project_below_the_root_is_tried_in_its_folder(repo: Repo) -> None:
    settings = "[tool.pytest.ini_options]\npythonpath = ['src']\n"
    repo.write({"sub/src/rates.py": RATES, "sub/tests/test_rates.py": TEST, "sub/pyproject.toml": settings})
    repo.command = f"cd sub && {repo.command}"
    passing = {f"sub/tests/{test}" for test in BOTH}
    assert repo.outcomes(passing, ("sub/src/rates.py", "total - 10", "total")) == [KILLED]


def test_what_is_known_stays_when_the_time_is_over(repo: Repo) -> None:
    slow = "import time\n" + TEST + "    time.sleep(1.5)\n"
    repo.write({"rates.py": RATES, "test_rates.py": slow})
    repo.seconds = 9.0
    mutant = edit("rates.py", RATES, "member=False", "member=0")
    found = repo.attempt(BOTH, *[mutant] * 20)
    assert found is not None
    assert found[0].outcome is SURVIVED
    assert found[-1].outcome is MutantEnd.NOT_TRIED
