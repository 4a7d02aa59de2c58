"""PHP: PHPUnit and Pest."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

PHPUNIT = TestRunner(
    name="PHPUnit",
    language="PHP",
    rules=(
        CheckRule(
            command="composer test",
            manifest=("composer.json",),
            says=r"""(?s)"scripts"\s*:\s*\{[^{}]*"test"\s*:""",
            programs=(("php", "install PHP"), ("composer", "install Composer")),
        ),
        CheckRule(
            command="phpunit",
            manifest=("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"),
            files="**/*Test.php",
            programs=(("phpunit", "composer install"),),
            wrapper="vendor/bin/phpunit",
            runtime=("php", "install PHP"),
        ),
    ),
    program=r"(?:\./)?(?:vendor/bin/)?(?:phpunit|pest)",
    report="--log-junit {place}.xml",
    total=r"OK \((?P<passed>\d+) tests?, \d+ assertions?\)"
    r"|Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?"
    r"(?:, Failures: (?P<failed>\d+))?(?:, [A-Z][\w ]+: \d+)*?(?:, Skipped: (?P<skipped>\d+))?"
    r"(?:, [A-Z][\w ]+: \d+)*\.",
    one={"phpunit": "{} --filter NAME", "composer test": "{} -- --filter NAME"},
)
