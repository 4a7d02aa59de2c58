"""What must hold in a repository, and how we know."""
