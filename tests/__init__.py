"""Tests: a package, so that `python -m tests.oracle.fuzz` runs from the root."""
