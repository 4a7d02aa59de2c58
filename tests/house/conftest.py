"""What the house rules are checked on."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sources() -> dict[str, str]:
    """The package's files by their path in the repository."""
    found = {
        path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "agentflow").rglob("*.py")
    }
    return {path: text for path, text in found.items() if "/_bundled/" not in path}


@pytest.fixture(scope="session")
def kept_files() -> tuple[str, ...]:
    """Every file that git keeps or would keep, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    names = listed.stdout.decode().split("\0")
    return tuple(sorted({name for name in names if name and (ROOT / name).is_file()}))
