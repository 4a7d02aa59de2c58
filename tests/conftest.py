"""What holds for all tests."""

import shutil
import tempfile

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders where nothing of them stays after the run."""
    if config.option.basetemp is None:
        folder = tempfile.mkdtemp(prefix="agentflow-tests-")
        config.option.basetemp = f"{folder}/run"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
