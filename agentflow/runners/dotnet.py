"""C#, F# and Visual Basic: `dotnet test`."""

from agentflow.runners.runner import TestRunner

RUNNERS = (
    TestRunner(
        name=".NET",
        total=r"(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), "
        r"Skipped: +(?P<skipped>\d+), Total: +\d+.*",
        adds_up=True,
        one={"dotnet test": "{} --filter FullyQualifiedName~NAME"},
    ),
)
