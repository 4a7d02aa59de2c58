"""Changes that leave the program the same; `program` asks all the others."""
