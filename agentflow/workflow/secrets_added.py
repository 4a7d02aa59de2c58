"""Secrets that a change brings in, told without saying them."""

from collections.abc import Iterator

from agentflow.redact import redacted


def added_secrets(diff: str) -> tuple[str, ...]:
    """Return `path:line` of each added line that holds what looks like a key, unless it only moved."""
    removed = {
        row[1:].strip() for row in diff.split("\n") if row.startswith("-") and not row.startswith("---")
    }
    return tuple(place for place, text in _hits(diff) if text.strip() not in removed)


def _hits(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the place and text of the added lines that redaction would change; keys may span lines."""
    path, number, is_head = "", 0, True
    added: list[tuple[str, str]] = []
    for row in diff.split("\n"):
        if row.startswith("diff --git "):
            is_head = True
        elif is_head and row.startswith("+++ "):
            path = row[4:].strip('"').removeprefix("b/")
        elif row.startswith("@@ "):
            is_head, number = False, int(row.split("+")[1].split(",")[0].split(" ")[0])
        elif not is_head and row[:1] in ("+", " "):
            if row[0] == "+":
                added.append((f"{path}:{number}", row[1:]))
            number += 1
    clean = redacted("\n".join(text for _, text in added)).split("\n")
    yield from (one for one, now in zip(added, clean, strict=False) if one[1] != now)
