"""Reads arguments, wires, prints, sets the exit code."""
