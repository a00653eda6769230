"""The life of a job: accepted, handed to an engine, watched, explained, ended. See docs/service.md."""
