"""Turns a task folder into what a person sees; knows files, not the workflow."""
