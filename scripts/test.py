"""Everything that `make test` runs: all parts, also after one has failed, and one summary at the end.

    python -m scripts.test

The tests are shown as they run. The other parts run beside them, because tests wait much of their time, and are shown
when they have ended. The browser's driver keeps an event loop running, so its tests have processes of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COUNT = re.compile(r"(\d+) (failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?)\b")
_TIME = re.compile(r" in [0-9.]+s\b")
_ORDER = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "xpassed", "warning")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Part:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    name: str
    code: int
    seconds: float
    closing: str
    """The last line of the output, where pytest counts."""

    @property
    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        if _TIME.search(self.closing) is None:
            return found
        for number, kind in _COUNT.findall(self.closing):
            found[kind.removesuffix("s") if kind in ("errors", "warnings") else kind] += int(number)
        return found


def parts() -> tuple[Part, list[Part]]:
    """The part that is shown as it runs, and those beside it, one after the other."""
    python = sys.executable
    pytest = (python, "-m", "pytest", "-q")
    workers = str((os.cpu_count() or 1) + 1)
    tests = (
        *pytest,
        "-n",
        workers,
        "--dist",
        "worksteal",
        "--ignore=tests/cluster",
        "--ignore=tests/web",
    )
    return Part("tests", tests), [
        Part("check", ("make", "--no-print-directory", "check")),
        Part("page", (python, "-m", "scripts.page", "check")),
        Part("web", (*pytest, "-n", "2", "tests/web")),
    ]


def main() -> int:
    shown, others = parts()
    return run_all(shown, others)


def run_all(
    shown: Part, others: Sequence[Part], write: Callable[[str], object] | None = None
) -> int:
    """1 if any part failed."""
    say = write or _say
    begin = time.monotonic()
    beside: list[Result] = []
    stopping = threading.Event()

    def run_others() -> None:
        for part in others:
            if stopping.is_set():
                return
            lines: list[str] = []
            result = _run(part, lines.append)
            beside.append(result)
            say(f"\n{_verdict(result)}\n" + ("".join(lines) if result.code else ""))

    thread = threading.Thread(target=run_others)
    thread.start()
    try:
        result = _run(shown, say)
    except KeyboardInterrupt:
        stopping.set()  # the part that runs beside got the same signal
        return 130
    finally:
        thread.join()
    say("".join(f"{line}\n" for line in summary([*beside, result], time.monotonic() - begin)))
    return 1 if any(each.code for each in (*beside, result)) else 0


def summary(results: Sequence[Result], seconds: float) -> list[str]:
    """What failed, then pytest's closing line, of all tests together."""
    failed = [each.name for each in results if each.code]
    counts: Counter[str] = sum((each.counts for each in results), Counter())
    counted = ", ".join(f"{counts[kind]} {kind}" for kind in _ORDER if counts[kind])
    return [
        "",
        *map(_verdict, results),
        f"make test: failed: {', '.join(failed)}" if failed else "make test: all parts passed",
        f"{counted or 'no tests ran'} in {seconds:.2f}s",
    ]


def _verdict(result: Result) -> str:
    verdict = f"FAILED ({result.code})" if result.code else "passed"
    closing = f"  {result.closing}" if result.counts else ""
    return f"{result.name:8}{verdict:12}{result.seconds:6.0f} s{closing}"


def _run(part: Part, write: Callable[[str], object]) -> Result:
    begin, last = time.monotonic(), ""
    with subprocess.Popen(
        part.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for text in process.stdout:
            write(text)
            last = _COLOUR.sub("", text).strip() or last
    return Result(part.name, process.returncode, time.monotonic() - begin, last)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
