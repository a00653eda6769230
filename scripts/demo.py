"""`make demo`: a two-node PyTorch training through the real server, from nothing to nothing.

Starts a server on a free port with a data folder that goes away and runs the sample as a user would. The job installs
torch once, outside the checkout. Shows the numbers and ends everything it began; also after Ctrl-C.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
ASTRAGO = str(Path(sys.executable).with_name("astrago"))
SAMPLE = "runtimes/pytorch-simple/train.py"
JOB = "demo"
RUN = ("run", SAMPLE, "--name", JOB, "--nodes", "2")
STOP_SECONDS = 30.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="astrago-demo-") as folder, server(folder) as url:
        os.environ |= {"ASTRAGO_SERVER": url, "ASTRAGO_NAMESPACE": "demo"}
        say(f"A server answers at {url}.", "Two nodes train a small classifier on it:")
        try:
            code = astrago(*RUN, *(("--env", "EPOCHS") if "EPOCHS" in os.environ else ()))
            if code == 0:
                astrago("metrics", JOB)
        except KeyboardInterrupt:
            code = 130
        finally:
            # Quietly, and whatever happened: nothing is left running.
            subprocess.run([ASTRAGO, "delete", JOB], capture_output=True, timeout=STOP_SECONDS)
    if code == 130:
        say("The demo is over: the job was deleted, nothing is left running.")
    if code == 0:
        say(
            "That was everything; nothing is left running. To go on:",
            "  make serve                                  server on http://127.0.0.1:8000",
            "  .venv/bin/astrago run FILE.py --nodes 2     your own script, without a server",
            "  .venv/bin/astrago --help                    all commands",
        )
    return code


def astrago(*argv: str) -> int:
    say(f"$ astrago {' '.join(argv)}")
    process = subprocess.Popen([ASTRAGO, *argv], cwd=ROOT)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # it has heard of it, too
        raise


@contextmanager
def server(folder: str) -> Iterator[str]:
    """A process of its own in a session of its own: Ctrl-C is ours to handle."""
    env = {
        **os.environ,
        "ASTRAGO_LOG": "json",
    }
    for name in (
        "ASTRAGO_SERVER",
        "ASTRAGO_TOKEN",
        "ASTRAGO_DATABASE",
        "ASTRAGO_AUTH",
        "ASTRAGO_ENVIRONMENTS",
        "ASTRAGO_LOCAL_OVERSIZE",
    ):
        env.pop(name, None)
    log = Path(folder) / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [ASTRAGO, "up", "--port", "0", "--data", folder],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            sys.exit(f"demo: the server did not start:\n{log.read_text()[-3000:]}")
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def say(*lines: str) -> None:
    print("", *lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
