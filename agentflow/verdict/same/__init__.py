"""Whether two versions of a program are the same program, by their texts alone."""
