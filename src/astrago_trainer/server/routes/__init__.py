"""Routes: each parses, calls the service once, and answers."""
