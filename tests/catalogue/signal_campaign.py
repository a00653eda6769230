"""Stops a training at any instant, thousands of times: `python -m tests.catalogue.signal_campaign`.

A round starts a command string as a container does, sends SIGTERM after a random time, and checks
the exit code and the output. A training that has said `ready` must also say `stopping`, and its code
must arrive; one that was stopped before must give 143. No later command may run.
"""

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from catalogue.inline import SYSTEM
from catalogue.shells import kill_session, plain_env

OWN_CODE = 7
STOPPED = 128 + signal.SIGTERM
ROUND_SECONDS = 60.0  # far more than any round takes; a lost signal reaches it

TRAINING = """
import _signal as signal, os
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\\n")
signal.sigwait({signal.SIGTERM})
os.write(1, b"stopping\\n")
os._exit(7)
"""

# Code that a stopped training may give: its own where the shell waits for it in the foreground.
FORMS = {
    "command": ("{training}", {OWN_CODE}),
    "list": ("{training}; echo second", {OWN_CODE}),
    "after short commands": (
        "for turn in 1 2 3 4 5; do true; /bin/true; done; {training}; echo second",
        {OWN_CODE},
    ),
    "function": ("work() {{ cd /; {training}; echo second; }}; work; echo third", {OWN_CODE}),
    "if": ("if /bin/true; then {training} || exit; fi; echo second", {OWN_CODE}),
    "exec": ("/bin/true; exec {training}", {OWN_CODE}),
    "background": ("{training} & wait $!; echo second", {OWN_CODE, STOPPED}),
    "with a neighbour": ("sleep 300 & /bin/true; {training}; echo second", {OWN_CODE}),
}


def one_round(folder: Path, seed: int) -> tuple[str, str]:
    """Give how the round ended, and what was wrong with it: nothing, if all was right."""
    chance = random.Random(seed)
    name = chance.choice(list(FORMS))
    form, codes = FORMS[name]
    script = folder / "training.py"
    command = f"source {SYSTEM / 'handover.sh'}\necho go\n" + form.format(
        training=f"python -IS {script}"
    )
    process = subprocess.Popen(
        ["bash", "-c", command],
        env=plain_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = _read(process, b"go\n", chance.uniform(0, 0.3)) if chance.random() < 0.5 else b""
        output += _read(process, b"ready\n", chance.uniform(0, 0.2 if output else 0.4))
        process.send_signal(signal.SIGTERM)
        output += _read(process, None, ROUND_SECONDS)
        code = process.wait(ROUND_SECONDS)
    except subprocess.TimeoutExpired:
        return "lost", f"{name}: still running; output {output!r}"
    finally:
        kill_session(process.pid)
        process.wait()
        process.stdout.close()
    return _judged(name, codes, code, output)


def _judged(name: str, codes: set[int], code: int, output: bytes) -> tuple[str, str]:
    lines = output.split()
    if b"go" not in lines and code == -signal.SIGTERM:
        return "before the forwarder", ""
    found = f"{name}: code {code}, output {output!r}"
    if b"second" in lines or b"third" in lines:
        return "went on", found
    if b"ready" in lines:
        is_right = b"stopping" in lines and code in codes
        return "training stopped", "" if is_right else found
    return "before the training", "" if code == STOPPED else found


def _read(process: subprocess.Popen[bytes], until: bytes | None, seconds: float) -> bytes:
    """Give the output up to this text, the end, or so many seconds."""
    deadline, output = time.monotonic() + seconds, b""
    while until is None or until not in output:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            break
        chunk = os.read(process.stdout.fileno(), 4096)
        if not chunk:
            break
        output += chunk
    return output


@contextmanager
def training_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "training.py").write_text(TRAINING)
        yield Path(name)


def campaign(rounds: int, seed: int, at_once: int) -> tuple[Counter[str], list[str]]:
    """Give how often each end was seen, and what was wrong."""
    seeds = range(seed, seed + rounds)
    with training_folder() as folder, ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(lambda each: one_round(folder, each), seeds))
    wrong = [
        f"seed {each}: {problem}"
        for each, (_, problem) in zip(seeds, found, strict=True)
        if problem
    ]
    return Counter(end for end, _ in found), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--busy", type=int, default=2, help="loops that use up a core each")
    options = parser.parse_args()
    loops = [subprocess.Popen(["bash", "-c", "while :; do :; done"]) for _ in range(options.busy)]
    began = time.monotonic()
    try:
        ends, wrong = campaign(options.rounds, options.seed, options.at_once)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    seconds = time.monotonic() - began
    print(
        f"signals: {options.rounds} rounds from seed {options.seed} in {seconds:.0f} s", flush=True
    )
    for end, count in ends.most_common():
        print(f"  {end}: {count}")
    print("\n".join(wrong[:20]) if wrong else "  every exit code was right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
