"""`python -m agentflow`."""

from agentflow.cli.app import main

main()
