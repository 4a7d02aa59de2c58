"""A pull request whose commits name a task: the record is found, verified again and told to reviewers."""
