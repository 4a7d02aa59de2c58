"""Hooks: who is asked at a point of a task's life, in which order, and what they decide together."""
