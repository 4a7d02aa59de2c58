"""What holds for all tests."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders where nothing of them stays after the run, and a program before its stand-in."""
    if config.option.basetemp is None:
        folder = tempfile.mkdtemp(prefix="agentflow-tests-")
        config.option.basetemp = f"{folder}/run"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    if _is_script(shutil.which("python3")):
        os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"


def _is_script(program: str | None) -> bool:
    """Tell whether a program is a version manager's stand-in, which starts forty others each time."""
    return program is not None and Path(program).read_bytes().startswith(b"#!")
