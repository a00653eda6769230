"""The long version of the crash tests: `python -m tests.service.campaign --rounds 25`.

A server is killed at every named point of a submit and of a deletion, so many rounds each, half of them with a client
that repeats its request, on an engine of files and on the real local one. Then a thousand keys are sent eight times at
once. One JSON line each; the exit status is 1 when something was lost, doubled or left over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from astrago_trainer.engines.fake import FakeEngine
from tests.service.jobs import ANN, a_service, a_spec, until

ROOT = Path(__file__).parents[2]
TIMES = 8


def run_sweep(
    engine: str, action: str, rounds: int, *, only: str = ""
) -> subprocess.CompletedProcess[str]:
    """What it printed is one JSON line, or on stderr the point after which something was wrong."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.service.crashes",
            engine,
            action,
            str(rounds),
            "--only",
            only,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


async def send_keys(data: Path, keys: int, seed: int) -> dict[str, object]:
    """Every key eight times, all at once in the order that the seed gives."""
    engine = FakeEngine()
    async with a_service(data, engine) as service:
        sent = [f"key {number}" for number in range(keys)] * TIMES
        random.Random(seed).shuffle(sent)
        spec = a_spec(nodes=1)
        records = await asyncio.gather(*(service.submit(ANN, "team", spec, key) for key in sent))
        await until(service, lambda: service.board.counts() == {"Running": len(service.board)})
        return {
            "keys": keys,
            "requests": len(sent),
            "jobs": len(service.board),
            "answers": len({record.body for record in records}),
            "engine_jobs": len({handle for what, handle in engine.calls if what == "apply"}),
            "seed": seed,
        }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25, help="at every point (25)")
    parser.add_argument("--keys", type=int, default=1000, help="Idempotency-Keys (1000)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="of the keys")
    parser.add_argument("--engines", nargs="+", default=["files", "local"])
    options = parser.parse_args()
    has_failed = False
    for engine in options.engines:
        for action in ("submit", "delete"):
            done = run_sweep(engine, action, options.rounds)
            print(done.stdout, end="", flush=True)
            print(done.stderr, end="", file=sys.stderr, flush=True)
            has_failed |= done.returncode != 0
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(send_keys(Path(folder), options.keys, options.seed))
    print(json.dumps(found))
    is_right = found["jobs"] == found["answers"] == found["engine_jobs"] == options.keys
    return 1 if has_failed or not is_right else 0


if __name__ == "__main__":
    sys.exit(main())
