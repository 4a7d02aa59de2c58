"""A task's words to its class, its route and its steps, by fixed rules."""
