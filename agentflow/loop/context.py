"""The texts that the program adds to a run."""

from importlib.resources import files


def prompt_text(name: str) -> str:
    """Return one of the texts that the program adds, from `prompts/`."""
    return files("agentflow.loop").joinpath("prompts", name).read_text("utf-8").strip()
