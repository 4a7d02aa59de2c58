"""Which files are not like others: those that rule us, those that other programs obey, those with secrets.

Pure functions of a name relative to the root. Names that any file system takes for one are one.
"""

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agentflow.sandbox.profile import CONFIGURATION, POLICY, fold_name, fold_path

_OBEYED = (".env*", *(name.casefold() for name in CONFIGURATION))
_SECRET_FILES = (
    *(".env*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(".netrc", ".pypirc", ".pgpass"),
)
_SECRET_WORDS = frozenset(
    {"credential", "credentials", "secret", "secrets", "password", "passwords", "token", "tokens"}
)
_SECRET_FOLDERS = _SECRET_WORDS - {"token", "tokens"}
"""Folders of tokens hold parts of a language or of a design more often than keys."""
_SAMPLES = frozenset({".example", ".sample", ".template", ".dist"})
_CODE = frozenset(
    {
        *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"),
        *(".go", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".rb", ".php", ".c", ".h", ".cc"),
        *(".cpp", ".cxx", ".hpp", ".m", ".mm", ".cs", ".fs", ".swift", ".dart", ".ex", ".exs", ".erl"),
        *(".hs", ".lua", ".ml", ".mli", ".clj", ".pl", ".pm", ".r", ".jl", ".sql", ".proto", ".graphql"),
        *(".md", ".rst", ".adoc", ".html", ".css", ".scss", ".less", ".svg"),
    }
)
"""Code and prose about secrets, which is what most files of such a name are."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def policy_part(name: str) -> str | None:
    """Return the part of a name that makes it policy, which no role writes."""
    return next((part for part in PurePosixPath(name).parts if _is_policy(part)), None)


def obeyed_part(name: str) -> str | None:
    """Return the part of a name that makes it configuration which other programs execute or obey."""
    return next((part for part in PurePosixPath(name).parts if _matches(part, _OBEYED)), None)


def is_secret(name: str) -> bool:
    """Tell whether a file holds secrets, by its name."""
    path = PurePosixPath(name)
    if _matches(path.name, _SECRET_FILES):
        return path.suffix.casefold() not in _SAMPLES
    if path.suffix.casefold() in _CODE:
        return False
    folders = {part.lstrip(".").casefold() for part in path.parts[:-1]}
    return bool(_words(path.name) & _SECRET_WORDS or folders & _SECRET_FOLDERS)


def _is_policy(part: str) -> bool:
    return not set(POLICY).isdisjoint(fold_path(part).split("/"))


def _matches(part: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(fold_name(part), pattern) for pattern in patterns)


def _words(name: str) -> set[str]:
    """Return the words of a name: `apiToken_v2` has three."""
    return {word.casefold() for word in _WORD.findall(name)}
