"""PHP: PHPUnit and Pest."""

from agentflow.runners.runner import TestRunner

RUNNERS = (
    TestRunner(
        name="PHPUnit",
        program=r"(?:\./)?(?:vendor/bin/)?(?:phpunit|pest)",
        report="--log-junit {place}.xml",
        total=r"OK \((?P<passed>\d+) tests?, \d+ assertions?\)"
        r"|Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?"
        r"(?:, Failures: (?P<failed>\d+))?(?:, [A-Z][\w ]+: \d+)*?(?:, Skipped: (?P<skipped>\d+))?"
        r"(?:, [A-Z][\w ]+: \d+)*\.",
        one={"phpunit": "{} --filter NAME", "composer test": "{} -- --filter NAME"},
    ),
)
