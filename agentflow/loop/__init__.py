"""The agent loop: ask, act, finalize."""
