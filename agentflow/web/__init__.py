"""A local page of a repository's tasks: it reads their files, and does what the commands do."""
