"""Programming languages as tree-sitter reads them: a record and a query for each."""
