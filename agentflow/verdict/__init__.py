"""What a change proves, and how it is judged."""
