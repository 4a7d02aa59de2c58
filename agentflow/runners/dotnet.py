"""C#, F# and Visual Basic: `dotnet test`."""

from agentflow.core.languages import CheckRule
from agentflow.runners.runner import TestRunner

DOTNET = TestRunner(
    name=".NET",
    language="C#",
    rules=(
        CheckRule(
            command="dotnet test",
            manifest=("*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj"),
            files="**/*{Test,Tests}.{cs,fs,vb}proj",
            programs=(("dotnet", "install the .NET SDK"),),
        ),
    ),
    total=r"(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), "
    r"Skipped: +(?P<skipped>\d+), Total: +\d+.*",
    adds_up=True,
    one={"dotnet test": "{} --filter FullyQualifiedName~NAME"},
)
