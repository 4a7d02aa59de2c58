"""The embedded model: it plays every role by searching for a small edit that turns failing checks green."""
