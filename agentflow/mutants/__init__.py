"""Mutants: the code with one small edit, and whether a test notices."""
