"""Turns a task folder into text for people; knows files, not the workflow."""
