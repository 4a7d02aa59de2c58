"""The texts that the program adds to a run."""

from pathlib import Path


def prompt_text(name: str) -> str:
    return (Path(__file__).parent / "prompts" / name).read_text("utf-8").strip()
