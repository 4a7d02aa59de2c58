"""The rules about the calls that a role may make."""
