"""The tools of the roles, one short file for each group."""
