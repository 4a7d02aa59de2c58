"""The files below `.claude/agentflow/`."""
