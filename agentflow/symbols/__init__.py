"""Symbols: an index of what every file of a repository defines and uses, and a map of what matters in it."""
