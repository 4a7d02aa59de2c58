"""The end of a task as a report, as the result object and as the answer document."""
