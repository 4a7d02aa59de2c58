"""Ruby: RSpec, and minitest by Rake or Rails."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

_RUBY = ("ruby", "install Ruby")
_BUNDLE = ("Gemfile.lock", "bundle exec")
RSPEC = TestRunner(
    name="RSpec",
    language="Ruby",
    rules=(
        CheckRule(
            command="rspec",
            manifest=("Gemfile", "Rakefile", ".rspec"),
            files="spec/**/*_spec.rb",
            programs=(_RUBY, ("rspec", "gem install rspec")),
            wrapper="bin/rspec",
            runtime=_RUBY,
            launcher=_BUNDLE,
        ),
    ),
    variables={"SPEC_OPTS": "--format progress --format json --out {place}/rspec.json"},
    total=r"(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?"
    r"(?:, (?P<errors>\d+) errors? occurred outside of examples)?",
    one={"rspec": "{} FILE:LINE"},
)
MINITEST_RUNNER = TestRunner(
    name="minitest",
    language="Ruby",
    rules=(
        CheckRule(
            command="rails test",
            manifest=("Gemfile",),
            files="test/**/*_test.rb",
            settings=("bin/rails",),
            programs=(("rails", "bundle install"),),
            wrapper="bin/rails",
            runtime=_RUBY,
        ),
        CheckRule(
            command="rake test",
            manifest=("Rakefile",),
            files="{test,tests}/**/*{test,tests}*.rb",
            says=r"\bTestTask\b|\btask[ (]+:?[\"']?test\b",
            programs=(_RUBY, ("rake", "gem install rake")),
            launcher=_BUNDLE,
        ),
    ),
    variables={"RUBYLIB": "{place}"},
    total=r"(?P<total>\d+) (?:runs|tests), \d+ assertions, "
    r"(?P<failed>\d+) failures, (?P<errors>\d+) errors, "
    r"(?:(?P<skipped>\d+) skips|\d+ pendings, (?P<omitted>\d+) omissions.*)",
    one={"rake test": "{} TEST=FILE", "rails test": "{} FILE:LINE"},
)
