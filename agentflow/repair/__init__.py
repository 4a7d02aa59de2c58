"""The built-in repair engine: it plays every role and looks for one small edit that fixes failing checks."""
