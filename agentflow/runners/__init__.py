"""Test runners, one module each or one for those of a language, and what is asked of all of them."""
