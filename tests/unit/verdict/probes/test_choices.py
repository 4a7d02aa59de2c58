import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.verdict.probes.branches import watch_change
from agentflow.workspace.mixed_tree import ChangedTexts

BEFORE = "import os, contextlib\n\ndef f(x, y=9):\n    return x\n"
AFTER = "import os, contextlib\n\ndef f(x, y=9):\n    {}\n"


def untried(folder: Path, body: str, *calls: str, before: str = BEFORE) -> list[str]:
    """Return what calls of a changed function leave untried; each does what it did."""
    after = AFTER.format(body.replace("\n", "\n    "))
    modes = ("100644", "100644")
    watched = watch_change(ChangedTexts(path="core.py", before=before, after=after, modes=modes), "kwq", 1)
    if watched is None:
        return []
    folder.mkdir(exist_ok=True)
    folder.joinpath("plain.py").write_text(after)
    folder.joinpath("core.py").write_text(watched.text)
    code = "import core, plain\n" + "\n".join(f"assert core.{each} == plain.{each}" for each in calls)
    subprocess.run([sys.executable, "-B", "-c", code], cwd=folder, check=True)
    left = [path.name for path in folder.iterdir()]
    return [hunk.wanted.removeprefix("in which ") for hunk in watched.list_untried(left)]


CHOICES = {
    "a default of a table": (
        "return {1: 2}.get(x, 0)",
        ["f(1)"],
        ["f(3)"],
        ["`{1: 2}.get(x, 0)` takes its default"],
    ),
    "a default that is never left": (
        "return {1: 2}.get(x, 2)",
        ["f(3)"],
        ["f(1)"],
        ["`{1: 2}.get(x, 2)` does not take its default"],
    ),
    "what is taken out": (
        "return dict(x).pop('a', 0)",
        ["f({'a': 1})"],
        ["f({})"],
        ["`dict(x).pop('a', 0)` takes its default"],
    ),
    "a variable": (
        "return os.environ.get(x, 'no')",
        ["f('PATH')"],
        ["f('NO_SUCH')"],
        ["`os.environ.get(x, 'no')` takes its default"],
    ),
    "a variable by a function": (
        "return os.getenv(x, 'no')",
        ["f('PATH')"],
        ["f('NO_SUCH')"],
        ["`os.getenv(x, 'no')` takes its default"],
    ),
    "an attribute": (
        "return getattr(x, 'real', y)",
        ["f(1)"],
        ["f('')"],
        ["`getattr(x, 'real', y)` takes its default"],
    ),
    "the next one": (
        "return next(iter(x), 7)",
        ["f([1])"],
        ["f([])"],
        ["`next(iter(x), 7)` takes its default"],
    ),
    "an upper bound": ("return min(x, y)", ["f(1)", "f(9)"], ["f(10)"], ["`min(x, y)` is `y`"]),
    "a lower bound": ("return max(0, x - 1)", ["f(0)"], ["f(4)"], ["`max(0, x - 1)` is `x - 1`"]),
    "a cut": ("return x[:y]", ["f('abc')"], ["f('a' * 10)"], ["`x[:y]` cuts something off"]),
    "an ignored error": (
        "with contextlib.suppress(KeyError):\n    return x['a']",
        ["f({'a': 1})"],
        ["f({})"],
        ["`contextlib.suppress(KeyError)` stops an error"],
    ),
}


@pytest.mark.parametrize(("body", "calls", "more", "told"), CHOICES.values(), ids=CHOICES)
def test_what_no_test_chooses_is_told(
    tmp_path: Path, body: str, calls: list[str], more: list[str], told: list[str]
) -> None:
    assert untried(tmp_path / "one", body, *calls) == told
    assert untried(tmp_path / "both", body, *calls, *more) == []


@pytest.mark.parametrize("body", [body for body, *_ in CHOICES.values()], ids=CHOICES)
def test_what_stood_there_before_is_not_asked_for(tmp_path: Path, body: str) -> None:
    before = AFTER.format(body.replace("\n", "\n    "))
    assert untried(tmp_path, body + "  # why", before=before) == []


@pytest.mark.parametrize(
    "body",
    [
        "return x[:-1]",
        "return x[1:]",
        "return x[-y:]",
        "return max(x)",
        "return max(x, key=len)",
        "return {}.get(x)",
        "return {}.get(x, None)",
        "return next(iter('a'), None)",
    ],
)
def test_no_choice(tmp_path: Path, body: str) -> None:
    assert untried(tmp_path, body, "f(['a'])" if "[" in body or "max" in body else "f('a')") == []


def test_other_methods_of_that_name_are_left_alone(tmp_path: Path) -> None:
    client = "class Client:\n    def get(self, address, timeout):\n        return address, timeout\n"
    body = f"{client}return Client().get(x, 5)"
    assert untried(tmp_path, body, "f('a')") == []
