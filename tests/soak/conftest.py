"""The fixtures of the short tests, for the long ones."""

from tests.e2e.conftest import done, finished, new_repo

__all__ = ["done", "finished", "new_repo"]
