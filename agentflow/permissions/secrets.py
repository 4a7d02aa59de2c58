"""Which files have the names of secrets."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agentflow.permissions.words import UNKNOWN, Script

_NAMES = re.compile(
    r"\.env.*|\.netrc|\.pgpass|.*(?:credential|secret|password|token).*|.*\.(?:pem|key|p12|pfx)|id_(?:rsa|ed25519).*",
    re.IGNORECASE,
)
_CERTAIN = re.compile(
    r"\.env.*|\.netrc|\.pgpass|(?:\.git-)?credentials?(?:\..*)?|.*\.(?:pem|key|p12|pfx)|id_(?:rsa|ed25519)(?!.*\.pub).*",
    re.IGNORECASE,
)
"""In a command, where a word such as `token` is rather something that is looked for."""
_SHARPEST = re.compile(r"\.env(?:\.\w+)?|\.netrc|\.pgpass|\w*\.(?:pem|p12|pfx)|id_(?:rsa|ed25519)")
"""In a text that cannot be judged, where a word such as `item.key` is rather code."""
_EXAMPLES = (".env", ".env.local", "id_rsa", "id_ed25519")


def secret_path(path: str) -> bool:
    """Tell whether a file tool's path has the name of a secret."""
    return any(_NAMES.fullmatch(part) for part in PurePosixPath(path).parts[-1:])


def secret_in(script: Script) -> Iterator[str]:
    """Yield the words of a command, and the files it is led from or to, that have the name of a secret."""
    words = [word for simple in script.commands for word in simple.words[1:]]
    for word in (*words, *(redirection.target for redirection in script.redirections)):
        name = re.split(r"[/=:@]", word.text)[-1]
        if _CERTAIN.fullmatch(name) if word.is_known else _may_name(name):
            yield word.text.replace(UNKNOWN, "*")


def secrets_named(text: str) -> Iterator[str]:
    """Yield the pieces of a text, whatever they mean, that have the name of a secret."""
    yield from (piece for piece in re.split(r"[^\w.*~-]+", text) if _SHARPEST.fullmatch(piece))


def _may_name(name: str) -> bool:
    """Tell whether a name with globs, its beginning known, may turn out to be a secret's."""
    glob = name.replace(UNKNOWN, "*")
    return name[:1] not in ("", UNKNOWN) and any(fnmatchcase(example, glob) for example in _EXAMPLES)
