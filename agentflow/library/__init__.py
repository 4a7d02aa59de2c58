"""Role files, skills and instructions: shipped, the user's and the repository's."""
