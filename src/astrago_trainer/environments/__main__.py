"""`python -m astrago_trainer.environments NAME [REQUIREMENT …]`: installs one environment for a job that waits for it.

Standard output is the job's own log of the install. Each line on descriptor 3, where it is open, is one report as JSON:
`{"text": …}` while it goes on, `{"error": …}` when it failed.
"""

from __future__ import annotations

import json
import os
import sys

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.environments.folders import environment_of
from astrago_trainer.environments.installing import Progress, install

REPORTS = 3


def main(words: list[str]) -> int:
    environment = environment_of(words[0], tuple(words[1:]))
    last = ""

    def report(progress: Progress) -> None:
        nonlocal last
        text = progress.text(os.environ.get("ASTRAGO_IMAGE", ""))
        if text != last:
            last = text
            _send({"text": text})

    try:
        install(environment, report, log=lambda text: print(text, flush=True))
    except AstragoError as error:
        print(error, flush=True)
        _send({"error": str(error)})
        return 1
    return 0


def _send(message: dict[str, str]) -> None:
    try:
        os.write(REPORTS, json.dumps(message).encode() + b"\n")
    except OSError:
        return  # the job is gone, and the install goes on for the next one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
