"""Roles from bundled and user folders."""
