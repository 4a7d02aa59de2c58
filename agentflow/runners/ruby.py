"""Ruby: RSpec, and minitest by Rake or Rails."""

from agentflow.runners.runner import TestRunner

RUNNERS = (
    TestRunner(
        name="RSpec",
        variables={"SPEC_OPTS": "--format progress --format json --out {place}/rspec.json"},
        total=r"(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?"
        r"(?:, (?P<errors>\d+) errors? occurred outside of examples)?",
        one={"rspec": "{} FILE:LINE"},
    ),
    TestRunner(
        name="minitest",
        variables={"RUBYLIB": "{place}"},
        total=r"(?P<total>\d+) (?:runs|tests), \d+ assertions, "
        r"(?P<failed>\d+) failures, (?P<errors>\d+) errors, "
        r"(?:(?P<skipped>\d+) skips|\d+ pendings, (?P<omitted>\d+) omissions.*)",
        one={"rake test": "{} TEST=FILE", "rails test": "{} FILE:LINE"},
    ),
)
