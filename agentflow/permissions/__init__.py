"""Which calls a role may make."""
