"""Programming languages as tree-sitter reads them: one record and one query file each."""
