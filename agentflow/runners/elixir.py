"""Elixir: ExUnit by `mix test`."""

from agentflow.runners.runner import TestRunner

RUNNERS = (
    TestRunner(
        name="ExUnit",
        total=r"(?:(?P<doctests>\d+) doctests?, )?(?:(?P<properties>\d+) propert\w+, )?"
        r"(?P<total>\d+) tests?, (?P<failed>\d+) failures?"
        r"(?:, (?P<invalid>\d+) invalid)?(?:, \d+ excluded)?(?:, (?P<skipped>\d+) skipped)?(?: \(.*\))?",
        adds_up=True,
        one={"mix test": "{} FILE:LINE"},
    ),
)
