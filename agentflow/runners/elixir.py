"""Elixir: ExUnit by `mix test`."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

EXUNIT = TestRunner(
    name="ExUnit",
    language="Elixir",
    rules=(
        CheckRule(
            command="mix test",
            manifest=("mix.exs",),
            files="**/test/**/*_test.exs",
            programs=(("mix", "install Elixir"),),
        ),
    ),
    total=r"(?:(?P<doctests>\d+) doctests?, )?(?:(?P<properties>\d+) propert\w+, )?"
    r"(?P<total>\d+) tests?, (?P<failed>\d+) failures?"
    r"(?:, (?P<invalid>\d+) invalid)?(?:, \d+ excluded)?(?:, (?P<skipped>\d+) skipped)?(?: \(.*\))?",
    adds_up=True,
    one={"mix test": "{} FILE:LINE"},
)
