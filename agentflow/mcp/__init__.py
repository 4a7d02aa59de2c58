"""MCP servers: configured, started in a sandbox of their own, their tools as ours; and our own."""
