"""The checks that must hold in a repository: how they are found, run and read."""
