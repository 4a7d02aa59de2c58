"""A multi-agent developer assistant whose verdicts come from checks it runs itself."""

__version__ = "0.1.0"

__all__ = ["__version__"]
