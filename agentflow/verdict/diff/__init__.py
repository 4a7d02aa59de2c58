"""What the diff of a change shows, before anything runs."""
