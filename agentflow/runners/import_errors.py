"""Import errors that end tests, as Python, pytest and node print them."""

from agentflow.core.regex import regex

_KINDS = r"(?:ModuleNotFoundError|ImportError|(?:importlib\.metadata\.)?PackageNotFoundError): "
_OF_NODE = r"Cannot find (?:module|package) '[^'\n]+'"
_ENDS_WITH = regex(rf"(?:E\s+)?(?P<error>{_KINDS}.+|fixture '\w+' not found)")
_OF_PYTEST = regex(r"(?m)^E\s+.*$")
_PRINTED = regex(rf"(?m)^(?:.*\s)?(?P<error>{_KINDS}.+|{_OF_NODE})")
_SAID_BY_NODE = regex(rf"(?m)^\s*(?:\w*Error(?: \[\w+\])?: )?(?P<error>{_OF_NODE})")


def find_import_error(traceback: str) -> str:
    """Return the import error that a traceback ends with, as pytest or Python prints it; or empty."""
    lines = _OF_PYTEST.findall(traceback) or traceback.strip().splitlines()
    found = _ENDS_WITH.fullmatch(lines[-1].strip()) if lines else None
    return found["error"] if found else ""


def find_node_error(text: str) -> str:
    """Return the error by which node or jest says that a module is missing; or empty."""
    found = _SAID_BY_NODE.search(text)
    return found["error"] if found else ""


def list_import_errors(output: str) -> frozenset[str]:
    """Return all import errors in the output of a run whose tests have no names."""
    return frozenset(found["error"] for found in _PRINTED.finditer(output))
