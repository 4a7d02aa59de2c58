"""What does no work loads nothing heavy."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import agentflow

PROBE = """
import sys
from agentflow.cli.app import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
NEVER = {
    "anthropic",
    "git",
    "pydantic",
    "yaml",
    "anyio",
    "httpx",
    "httpx2",
    "asyncio",
    "hypothesis",
    "mcp",
    "acp",
    "opentelemetry",
    "ray",
    "jinja2",
    "starlette",
    "uvicorn",
}
ONLY_WITH_WORK = NEVER | {"rich", "typer", "click", "msgspec", "subprocess"}
ROUNDS = 9


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def loaded_by(option: str) -> set[str]:
    """Return the top names of all modules that are loaded when the command has ended."""
    probed = python("-c", PROBE, option)
    assert probed.returncode == 0, probed.stderr
    return {name.partition(".")[0] for name in probed.stderr.splitlines()[-1].split()}


def cpu_seconds(*argv: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_version_loads_only_the_standard_library() -> None:
    assert loaded_by("--version") & ONLY_WITH_WORK == set()


def test_help_loads_the_command_line_and_no_more() -> None:
    assert loaded_by("--help") & NEVER == set()


def test_importing_the_package_loads_only_the_standard_library() -> None:
    probed = python("-c", "import sys, agentflow; dir(agentflow); print(*sorted(sys.modules))")
    assert {name.partition(".")[0] for name in probed.stdout.split()} & ONLY_WITH_WORK == set()


def test_every_public_name_is_there_and_no_other() -> None:
    assert dir(agentflow) == agentflow.__all__
    assert all(getattr(agentflow, name).__doc__ for name in agentflow.__all__ if name != "Capability")
    assert not hasattr(agentflow, "run_tasks")


def test_the_probe_sees_what_is_loaded() -> None:
    assert {"sys", "agentflow"} <= loaded_by("--version")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_answer_goes_to_stdout(option: str) -> None:
    said = subprocess.run([command(), option], capture_output=True, text=True, check=True)
    assert ("agentflow" if option == "--help" else agentflow.__version__) in said.stdout
    assert said.stderr == ""


@pytest.mark.parametrize(("option", "ratio"), [("--version", 2.5), ("--help", 10)])
def test_start_up_costs_little_more_than_python_itself(option: str, ratio: float) -> None:
    ours, bare = zip(*(_one_round(option) for _ in range(ROUNDS)), strict=True)
    assert min(ours) <= ratio * min(bare)


def _one_round(option: str) -> tuple[float, float]:
    return cpu_seconds(command(), option), cpu_seconds(sys.executable, "-c", "pass")


def command() -> str:
    return str(Path(sys.executable).with_name("agentflow"))
