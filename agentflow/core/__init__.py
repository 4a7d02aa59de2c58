"""Frozen records, enums and protocols; imports nothing but the standard library and msgspec."""
