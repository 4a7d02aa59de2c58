"""The operating system's boundary around every command that a model, a check or a repository causes."""
