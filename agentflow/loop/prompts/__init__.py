"""The texts that the program adds to what a role is told, one file each."""

from pathlib import Path


def read_prompt(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8").strip()
