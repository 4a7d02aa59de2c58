"""Programming languages as tree-sitter reads them: one record and one record each, a query file or two."""
