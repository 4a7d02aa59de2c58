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
    'date > "$A"; date >> b.sh; sh b.sh; date >> c.log': "c.log",
}


@pytest.mark.parametrize("command", WRITTEN)
def test_where_output_goes_is_only_written(command: str) -> None:
    assert find_outputs(command) == {WRITTEN[command]}


@pytest.mark.parametrize(
    "command",
    [
        "echo y > x.log; sh x.log",
        "echo y > sub/x.log; cd sub; sh ./x.log",
        "F=x.log; echo y > x.log; sh $F",
        "echo y > x.log; cat x.log | sh",
        "echo y > x.log; sh < x.log",
        "echo y > x.log; sh -c 'sh x.log'",
        "echo y > x.log; . ./x.log",
        'echo "$(sh ./x.log)" > x.log',
        "echo y | tee x.log; ./x.log",
        "touch x.log; x.log",
        "./x.log > ./x.log",
        "echo y > Makefile; make",
        "echo y > guard.sh",
        'echo y > "$WHERE"',
        "echo y > x.log; ((",
    ],
)
def test_what_may_be_run_or_read_too_is_not_only_written(command: str) -> None:
    assert find_outputs(command) == frozenset()
