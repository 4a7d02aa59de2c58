"""Runs that have to fail: which a change needs, and the code and the tests that are changed for them."""
