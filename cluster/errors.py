"""One kind of error: what is wrong with this machine, and what to do."""

from __future__ import annotations


class ClusterError(Exception):
    """Shown to the user as two lines, never as a traceback."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy
