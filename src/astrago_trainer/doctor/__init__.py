"""Looks whether everything is there that jobs need: facts are read first, and pure functions judge them."""
