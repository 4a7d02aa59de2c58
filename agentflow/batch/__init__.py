"""Many tasks at once, each in a clone of its own, and their evaluation by hidden checks."""
