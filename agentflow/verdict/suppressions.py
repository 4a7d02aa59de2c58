"""Comments by which code tells a checker to look away."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from agentflow.core.evidence import CheckName

_SILENCED: Mapping[CheckName, re.Pattern[str]] = MappingProxyType(
    {
        CheckName.LINT: re.compile(
            r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b[^#\n]*|#\s*(?:pylint\s*:\s*(?:disable|skip)|nosec\b|fmt\s*:\s*(?:off|skip)"
            r"|isort\s*:\s*(?:skip|off))[^#\n]*|/[/*]\s*(?:eslint|biome|oxlint|tslint|stylelint)[-:\w]*(?:disable|ignore)[^\n]*"
            r"|//\s*nolint\b[^\n]*|#!?\[(?:allow|expect)\([^\]]*\]|#\s*(?:rubocop|shellcheck)\s*:?\s*disable[^\n]*"
        ),
        CheckName.TYPES: re.compile(
            r"#\s*(?:type\s*:\s*ignore|(?:pyright|mypy|ty|pyre)\s*:\s*(?:ignore|basic)|pyre-(?:ignore|fixme))[^#\n]*"
            r"|/[/*]\s*@ts-(?:ignore|expect-error|nocheck)[^\n]*"
        ),
        CheckName.TESTS: re.compile(
            r"#\s*pragma\s*:\s*no\s*(?:cover|branch)[^#\n]*|/\*\s*(?:istanbul|c8|v8)\s+ignore[^\n]*"
            r"|#\[ignore\b[^\]]*\]|//\s*(?:coverage:ignore|go:build\s+ignore)[^\n]*|LCOV_EXCL_\w+"
        ),
    }
)


def find_suppressions(
    before: str, after: str, checks: Collection[CheckName]
) -> Iterator[tuple[int, str, CheckName]]:
    """Yield the line, the text and the check of each comment that keeps a required check from looking.

    What only moved is no news.
    """
    for check, silenced in _SILENCED.items():
        is_checked = check in checks or (check is CheckName.LINT and CheckName.FORMAT in checks)
        known = Counter(_bare(found[0]) for found in silenced.finditer(before))
        for number, line in enumerate(after.splitlines(), 1) if is_checked else ():
            for found in silenced.finditer(line):
                said = _bare(found[0])
                known[said] -= 1
                if known[said] < 0:
                    yield number, said, check


def describe_suppressions(
    path: str, before: str, after: str, checks: Collection[CheckName]
) -> tuple[str, ...]:
    """Return the same in words."""
    found = find_suppressions(before, after, checks)
    return tuple(f"{path}:{number}: {said} keeps {check} from looking" for number, said, check in found)


def _bare(said: str) -> str:
    return " ".join(said.split()).removesuffix("*/").strip()
