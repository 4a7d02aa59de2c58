"""The public functions, and the composition root below them: what the command line does, without printing."""
