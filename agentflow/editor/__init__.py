"""Agentflow inside an editor, by the Agent Client Protocol, version 1 (agentclientprotocol.com)."""
