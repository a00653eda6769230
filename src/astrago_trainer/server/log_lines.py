"""The server's own log: JSON lines for machines, short lines on a terminal.

A line has the request's id, the user, the tenant and the job where they are known. Headers, bodies and tokens are never
given to a logger; what callers chose is one field of JSON, or has its control characters replaced.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

KEYS = ("request_id", "user", "tenant", "job", "status", "milliseconds")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: getattr(record, key) for key in KEYS if getattr(record, key, None) is not None},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        keys = " ".join(
            f"{key}={getattr(record, key)}"
            for key in KEYS
            if getattr(record, key, None) is not None
        )
        text = f"{clock} {record.levelname.lower():<7} {record.getMessage()} {keys}".rstrip()
        text = "".join(each if each.isprintable() else "?" for each in text)
        return text if not record.exc_info else f"{text}\n{self.formatException(record.exc_info)}"


def set_up_logging(kind: str) -> None:
    """To stderr: what a command prints for people goes to stdout."""
    is_text = kind == "text" or (kind == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextLines() if is_text else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # One line for each of our requests says enough; these add one for each of theirs, or of their parts.
    for name in ("httpx", "uvicorn.access", "alembic.runtime.plugins"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
