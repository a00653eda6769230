"""The REST server: HTTP around `service.Service`. See docs/api.md and docs/server.md."""
