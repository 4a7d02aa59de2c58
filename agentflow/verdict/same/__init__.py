"""Whether a change leaves the program the same; `program` asks all the others."""
