"""Swift: XCTest by `swift test`."""

from agentflow.runners.runner import TestRunner

RUNNERS = (
    TestRunner(
        name="XCTest",
        total=r"\t? *Executed (?P<total>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?"
        r"(?P<failed>\d+) failures? .*",
        one={"swift test": "{} --filter NAME"},
    ),
)
