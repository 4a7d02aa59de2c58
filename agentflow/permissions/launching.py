"""The same tool in each of its spellings: by its path in an environment, as a module, by what launches it."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from agentflow.permissions.opaque import program_of
from agentflow.permissions.words import Word

_INSTALLED = re.compile(r"(?:.*/)?(?:(?:\.venv|venv|env)/bin|node_modules/\.bin|vendor/bin)/([\w.-]+)")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_MODULES = frozenset(
    {
        *("ruff", "mypy", "pyright", "flake8", "pylint", "pyflakes", "pycodestyle", "pydocstyle", "bandit"),
        *("vulture", "black", "isort", "radon", "codespell", "pip"),
    }
)
"""Of Python; they analyse code and do not run it."""
_OTHERS = frozenset(
    {
        *(
            "eslint",
            "tsc",
            "prettier",
            "stylelint",
            "biome",
            "oxlint",
            "standard",
            "xo",
            "vue-tsc",
            "rubocop",
        ),
        *("phpstan", "psalm", "phpcs", "markdownlint", "yamllint", "sqlfluff", "vitest", "jest", "pytest"),
    }
)
"""What launchers start beside them, under a name that is no script's by custom."""
_LAUNCHES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pipx"), "run"),
        **dict.fromkeys(("npm", "pnpm", "yarn", "bundle", "composer", "mise"), "exec"),
        **dict.fromkeys(("npx", "bunx", "uvx"), ""),
    }
)
"""What starts a tool of an environment, and the word before the tool."""
_ALONE = re.compile(r"--(?:no-install|no|yes|offline|no-sync|frozen|locked|quiet|silent|)|-[yq]")
_DEPTH = 3


def launched(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return a command as the words of the tool that it starts; the same words where it starts none."""
    for _ in range(_DEPTH):
        shorter = _shorter(words)
        if shorter == words:
            break
        words = shorter
    return words


def _shorter(words: tuple[Word, ...]) -> tuple[Word, ...]:
    if not words or not words[0].is_known:
        return words
    if found := _INSTALLED.fullmatch(words[0].text):
        return (Word(text=found[1]), *words[1:])
    name, texts = program_of(words), [word.text for word in words]
    if _PYTHON.fullmatch(name):
        return words[2:] if texts[1:2] == ["-m"] and texts[2:3] and texts[2] in _MODULES else words
    if texts[:2] == ["uv", "pip"]:
        return words[1:]
    wanted = _LAUNCHES.get(name)
    if wanted is None or (wanted and texts[1:2] != [wanted]):
        return words
    at = 2 if wanted else 1
    while at < len(words) and _ALONE.fullmatch(texts[at]):
        at += 1
    return words[at:] if at < len(words) and _is_tool(texts[at]) else words


def _is_tool(name: str) -> bool:
    """Tell whether a name is a tool's; any other may be a script of the repository."""
    return name in _MODULES | _OTHERS or _PYTHON.fullmatch(name) is not None
