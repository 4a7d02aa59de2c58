"""Swift: XCTest by `swift test`."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

XCTEST = TestRunner(
    name="XCTest",
    language="Swift",
    rules=(
        CheckRule(
            command="swift test",
            manifest=("Package.swift",),
            files="Tests/**/*.swift",
            programs=(("swift", "install the Swift toolchain"),),
        ),
    ),
    total=r"\t? *Executed (?P<total>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?"
    r"(?P<failed>\d+) failures? .*",
    one={"swift test": "{} --filter NAME"},
)
