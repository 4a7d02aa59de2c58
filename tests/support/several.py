"""Commands in one process: `several.py '[["status"], ["check"]]'` ends with the code of each."""

import json
import sys

from agentflow.cli.commands import run_command

if __name__ == "__main__":
    codes = []
    for words in json.loads(sys.argv[1]):
        sys.argv[1:] = words
        codes.append(run_command(words))
    print(json.dumps(codes))  # noqa: T201
