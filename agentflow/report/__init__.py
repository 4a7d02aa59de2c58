"""How a task ended, as a report, as the result object and as the answer document."""
