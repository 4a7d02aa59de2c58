"""The repository: its tree, its files, copies of it."""
