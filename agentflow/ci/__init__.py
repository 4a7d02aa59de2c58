"""A pull request whose commits name tasks: their records are found, verified again and told to reviewers."""
