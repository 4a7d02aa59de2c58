"""The texts that the program adds to a run."""

from pathlib import Path


def prompt_text(name: str) -> str:
    """Return one of the texts that the program adds, from `prompts/`."""
    return (Path(__file__).parent / "prompts" / name).read_text("utf-8").strip()
