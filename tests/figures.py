"""Figures of a campaign: percentiles, memory and CPU time of processes, slopes; and the table at its end."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank; nan without values."""
    if not values:
        return math.nan
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * percent / 100) - 1)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line through the points with the least squares; 0 for fewer than two moments."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if count else 0.0
    mean_y = sum(y for _, y in points) / count if count else 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def memory_of(pid: int) -> float:
    """Resident megabytes; 0 for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    lines = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def cpu_seconds_of(pid: int) -> float:
    """User and system time; 0 for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Table:
    """Checked figures, one a line."""

    lines: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0

    def at_most(self, what: str, value: float, limit: float, unit: str = "") -> None:
        self.check(what, f"{value:.4g}{unit}", value <= limit, f"at most {limit:.4g}{unit}")

    def equal(self, what: str, value: object, expected: object) -> None:
        self.check(what, str(value), value == expected, f"must be {expected}")

    def check(self, what: str, value: str, is_right: bool, limit: str) -> None:
        self.passed += is_right
        self.failed += not is_right
        self.lines.append(f"{'passed' if is_right else 'FAILED'}  {what:44} {value:>14}  {limit}")

    def note(self, what: str, value: object) -> None:
        """A figure without a limit."""
        self.lines.append(f"        {what:44} {value!s:>14}")

    def print(self) -> int:
        """The exit status of the campaign."""
        print("\n".join(self.lines))
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed else 0
