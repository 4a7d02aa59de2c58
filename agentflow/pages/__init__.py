"""A task folder as HTML, Markdown and SVG, for the local page and for files."""
