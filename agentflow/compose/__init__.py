"""A role and its capabilities into an agent: the builder composes, the loop executes."""
