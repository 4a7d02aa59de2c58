"""Models behind the one port."""
