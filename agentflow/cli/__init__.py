"""The command line: reads arguments, calls the rooms below, prints, sets the exit code."""
