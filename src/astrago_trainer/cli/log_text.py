"""Lines for programs, and with their times."""

from __future__ import annotations

import json
from datetime import datetime

from astrago_trainer.cli.words import readable
from astrago_trainer.client.models import LogLine


def line_text(line: LogLine, output: str) -> str:
    """One line of output: JSON, YAML (a document each, which JSON is), or text with the time."""
    if output == "wide":
        when = (
            ""
            if line.time is None
            else datetime.fromtimestamp(line.time).isoformat(" ", "milliseconds")
        )
        return f"{when} {line.attempt}:{line.rank} │ {readable(line.text)}\n"
    value = {
        "attempt": line.attempt,
        "rank": line.rank,
        "pod": line.pod,
        "offset": line.offset,
        "time": line.time,
        "text": line.text,
        "ended": line.is_ended,
    }
    head = "--- " if output == "yaml" else ""
    # Every character beyond ASCII as its code: there are control characters among them, too.
    return f"{head}{json.dumps(value)}\n"
