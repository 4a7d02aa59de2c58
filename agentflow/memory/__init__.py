"""What earlier tasks of a repository leave for later ones: one SQLite file, searched by words and meaning."""
