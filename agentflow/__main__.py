"""`python -m agentflow`."""

from agentflow.cli.app import command

command()
