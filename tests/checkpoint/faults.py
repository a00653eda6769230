"""Steps in where a save changes the disk: every call of the system that does so is seen before and after it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CHANGES = ("open", "write", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir")


@contextmanager
def watching(
    before: Callable[..., Any] = lambda *_, **__: None,
    after: Callable[..., Any] = lambda *_, **__: None,
) -> Iterator[None]:
    """Call `before(name, *arguments)` and `after(name, result, *arguments)` around each call of CHANGES."""
    originals = {name: getattr(os, name) for name in CHANGES}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before(name, *arguments, **options)
            result = originals[name](*arguments, **options)
            after(name, result, *arguments, **options)
            return result

        return call

    for name in CHANGES:
        setattr(os, name, wrapped(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def changes_disk(name: str, *arguments: Any, **_: Any) -> bool:
    return name != "open" or bool(arguments[1] & os.O_CREAT)


def dying_at(number: int, moment: str) -> Any:
    """Kill this process at its change of the disk with this number: before it, after it, or halfway in a write."""
    left = number

    def die(now: str, name: str, *arguments: Any, **options: Any) -> None:
        nonlocal left
        if not changes_disk(name, *arguments, **options):
            return
        left -= now == "before"
        if left < 0 and now == "before" and moment == "halfway" and name == "write":
            write_half(*arguments)
        if left < 0 and moment in (now, "halfway"):
            os.kill(os.getpid(), signal.SIGKILL)

    real_write = os.write

    def write_half(descriptor: int, data: Any) -> None:
        real_write(descriptor, memoryview(data)[: len(data) // 2])

    return watching(
        lambda name, *arguments, **options: die("before", name, *arguments, **options),
        lambda name, _, *arguments, **options: die("after", name, *arguments, **options),
    )
