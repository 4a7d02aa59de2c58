"""`acp`: agentflow inside an editor."""

from agentflow.cli.arguments import MODEL
from agentflow.core.errors import ConfigError


def acp(model: str | None = MODEL) -> None:
    """Serve an editor over stdin and stdout.

    The editor starts this command itself, and both speak the Agent Client Protocol.
    """
    try:
        from agentflow.editor.agent import serve_editor
    except ModuleNotFoundError as error:
        if error.name != "acp":
            raise
        hint = "pip install 'agentflow[editor]'"
        raise ConfigError("the package agent-client-protocol is not installed", hint=hint) from None
    serve_editor(model)
