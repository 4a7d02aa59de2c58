import pytest

from agentflow.permissions.reading_commands import find_outputs

WRITTEN = {
    'echo x >> "./hooks.log"': "./hooks.log",
    "cat | tee -a hooks.log": "hooks.log",
    'input=$(cat); echo "$(date) $input" >> hooks.log': "hooks.log",
    "mkdir -p logs; jq -r .tool_name >> logs/calls.json": "logs/calls.json",
    "ruff format . >> hooks.log 2>&1": "hooks.log",
    "sh hooks/guard.sh 2> hooks/guard.log": "hooks/guard.log",
    "python3 -m black src > black.log": "black.log",
    "make lint > out.txt": "out.txt",
}


@pytest.mark.parametrize("command", WRITTEN)
def test_where_output_goes_is_only_written(command: str) -> None:
    assert find_outputs(command) == {WRITTEN[command]}


@pytest.mark.parametrize(
    "command",
    [
        "echo y > x; sh x",
        "echo y > sub/x; cd sub; sh ./x",
        "echo y > x; sh $SCRIPT",
        "echo y > hooks.d/x; run-parts hooks.d",
        "echo y > x; for each in *; do sh $each; done",
        "F=x; echo y > x; sh $F",
        "echo y > x; cat x | sh",
        "echo y > x; cat * | sh",
        "echo y > x; cat * | python3",
        "echo y > x; sh < x",
        "echo y > x; sh -c 'sh x'",
        "echo y > x; sh -c 'sh *'",
        "echo y > x; eval 'sh *'",
        "echo y > x; . ./x",
        "echo y > x; find . -type f -exec sh {} +",
        "echo y > x; ls | xargs sh",
        'echo "$(sh ./x)" > x',
        "echo y | tee x; ./x",
        "touch x; x",
        "./x > ./x",
        "echo y > Makefile; make",
        "echo y > guard.sh",
        'echo y > "$WHERE"',
        "echo y > x; ((",
    ],
)
def test_what_may_be_run_or_read_too_is_not_only_written(command: str) -> None:
    assert find_outputs(command) == frozenset()
