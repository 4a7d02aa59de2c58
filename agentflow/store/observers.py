"""Whoever looks on is told what happens, and cannot break it."""

from collections.abc import Callable
from typing import Any

from agentflow.redact import one_line


def tell(observers: list[Callable[[Any], None]], event: object) -> list[str]:
    """Tell each observer in turn; one that raises leaves the list. Return what is to be said of those."""
    failures = []
    for observer in tuple(observers):
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001  # whoever looks on cannot break the task
            observers[:] = [each for each in observers if each is not observer]
            name = getattr(observer, "__qualname__", type(observer).__name__)
            failures.append(f"{name} is no longer called: {one_line(f'{type(error).__name__}: {error}')}")
    return failures
