"""Findings in the diff of a change, before anything runs."""
