"""When a file is looked at: at once after a change, then by the clock, and never while nothing happens.

Time is passed in, and the kernel queues its events before a write returns: nothing here waits.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from astrago_trainer.logs import inotify
from astrago_trainer.logs.inotify import Event, Inotify
from astrago_trainer.logs.watch import TICK, UNWATCHED, Watcher


class Sizes:
    """A probe that remembers what it saw."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = -1
        self.looks = 0

    def __call__(self) -> float | None:
        self.looks += 1
        size = self.path.stat().st_size if self.path.exists() else -1
        if size == self.seen:
            return None
        self.seen = size
        return TICK


@pytest.fixture
def source():
    source = Inotify()
    yield source
    source.close()


def append(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, data)
    os.close(fd)


def watches(source: Inotify) -> int:
    return Path(f"/proc/self/fdinfo/{source.fileno()}").read_text().count("inotify wd:")


def test_events_of_a_folder_carry_names(tmp_path, source):
    watch = source.add_watch(tmp_path, inotify.CREATE)
    (tmp_path / "né").touch()

    assert source.read() == [Event(watch, inotify.CREATE, "né")]
    assert source.read() == []
    source.remove_watch(watch)
    source.remove_watch(watch)
    assert [event.mask for event in source.read()] == [inotify.IGNORED]


def test_a_missing_path_cannot_be_watched(tmp_path, source):
    with pytest.raises(FileNotFoundError, match="absent"):
        source.add_watch(tmp_path / "absent", inotify.MODIFY)


def test_a_quiet_file_is_never_looked_at(log, source):
    log.write_bytes(b"x")
    probe = Sizes(log)
    watcher = Watcher(source)
    watcher.add(log, probe, now=0.0)

    assert watcher.step(TICK) is None  # one look more, found nothing, set the watch
    looks = probe.looks
    assert [watcher.step(now) for now in (1.0, 100.0, 1e6)] == [None] * 3
    assert probe.looks == looks
    assert watches(source) == 1


def test_a_change_is_seen_at_once_and_the_next_one_a_tick_later(log, source):
    log.touch()
    probe = Sizes(log)
    watcher = Watcher(source)
    watcher.add(log, probe, now=0.0)
    watcher.step(1.0)

    append(log, b"1")
    assert watcher.step(10.0) == pytest.approx(TICK)
    assert probe.seen == 1
    append(log, b"2")
    assert watcher.step(10.0 + TICK / 2) == pytest.approx(TICK / 2)
    assert probe.seen == 1
    watcher.step(10.0 + TICK)
    assert probe.seen == 2


def test_a_flood_of_writes_costs_one_look_a_tick_and_no_events(log, source):
    log.touch()
    probe = Sizes(log)
    watcher = Watcher(source)
    watcher.add(log, probe, now=0.0)
    watcher.step(1.0)
    probe.looks = 0
    events = 0
    fd = os.open(log, os.O_WRONLY | os.O_APPEND)

    for number in range(10_000):  # one second of it
        os.write(fd, b"a line of the training\n")
        arrived = source.read()
        events += len(arrived)
        watcher.step(2.0 + number / 10_000, arrived)
    os.close(fd)
    watcher.step(4.0)

    assert probe.seen == log.stat().st_size
    assert 40 <= probe.looks <= 55
    assert events <= 4  # two for each watch that fires


def test_a_file_is_found_though_its_folders_come_one_by_one(tmp_path, source):
    path = tmp_path / "logs" / "0" / "pod" / "node.log"
    probe = Sizes(path)
    watcher = Watcher(source)
    watcher.add(path, probe, now=0.0)

    for number, folder in enumerate((path.parents[2], path.parents[1], path.parents[0]), 1):
        folder.mkdir()
        watcher.step(float(number))
        assert probe.seen == -1
    append(path, b"hello")
    watcher.step(9.0)

    assert probe.seen == 5


@pytest.mark.parametrize("at", [".", "a"])
def test_folders_that_appear_while_the_watch_is_set_are_not_missed(tmp_path, at):
    path = tmp_path / "a" / "b" / "node.log"

    class Racing(Inotify):
        """The folder `a` was missing a moment ago, and is there when the watch is set on it, or above it."""

        def add_watch(self, target: str | Path, mask: int) -> int:
            if Path(target) == tmp_path / at:
                (tmp_path / "a").mkdir(exist_ok=True)
            return super().add_watch(target, mask)

    probe = Sizes(path)
    watcher = Watcher(Racing())
    watcher.add(path, probe, now=0.0)
    watcher.step(1.0)
    path.parent.mkdir()
    watcher.step(2.0)
    append(path, b"x")
    watcher.step(3.0)
    watcher.close()

    assert probe.seen == 1


def test_a_busy_folder_is_looked_at_once_a_tick(tmp_path, source):
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    watcher = Watcher(source)
    watcher.add(tmp_path, look, now=0.0)
    for number in range(500):
        (tmp_path / str(number)).touch()
        watcher.step(1.0 + number / 1000)

    assert 25 <= looks / 2 <= 27  # in half a second; each time before and after the watch is set


def test_what_is_written_while_the_watch_is_set_is_not_missed(log):
    log.touch()

    class Late(Inotify):
        """The writer is quicker than the watch, once."""

        def add_watch(self, target: Path, mask: int) -> int:
            if not log.stat().st_size:
                append(log, b"unseen")
            return super().add_watch(target, mask)

    probe = Sizes(log)
    watcher = Watcher(Late())
    watcher.add(log, probe, now=0.0)
    watcher.step(1.0)
    watcher.close()

    assert probe.seen == 6


def test_two_who_wait_in_one_folder_are_both_told(tmp_path, source):
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    probes = [Sizes(path) for path in paths]
    watcher = Watcher(source)
    first, _ = [
        watcher.add(path, probe, now=0.0) for path, probe in zip(paths, probes, strict=True)
    ]
    assert watches(source) == 1

    append(paths[1], b"b")
    watcher.step(1.0)
    assert [probe.seen for probe in probes] == [-1, 1]
    watcher.remove(first)
    append(paths[0], b"a")
    append(paths[1], b"b")
    watcher.step(2.0)
    assert [probe.seen for probe in probes] == [-1, 2]


def test_a_deleted_file_is_reported(log, source):
    log.write_bytes(b"x")
    probe = Sizes(log)
    watcher = Watcher(source)
    watcher.add(log, probe, now=0.0)
    watcher.step(1.0)
    log.unlink()
    watcher.step(2.0)

    assert probe.seen == -1


def test_after_lost_events_everything_is_looked_at(log, source):
    log.touch()
    probe = Sizes(log)
    watcher = Watcher(source)
    watcher.add(log, probe, now=0.0)
    watcher.step(1.0)
    append(log, b"x")
    source.read()
    watcher.step(2.0, [Event(-1, inotify.Q_OVERFLOW, "")])

    assert probe.seen == 1
    watcher.step(3.0)
    append(log, b"y")
    watcher.step(4.0)
    assert probe.seen == 2


@pytest.mark.parametrize("error", [None, errno.ENOSPC])
def test_without_watches_it_looks_four_times_a_second(log, error):
    class Exhausted(Inotify):
        def add_watch(self, target: Path, mask: int) -> int:
            raise OSError(errno.ENOSPC, "no watches left")

    log.touch()
    probe = Sizes(log)
    watcher = Watcher(Exhausted() if error else None)
    watcher.add(log, probe, now=0.0)

    assert watcher.step(1.0) == pytest.approx(UNWATCHED)
    append(log, b"x")
    assert watcher.step(1.0 + UNWATCHED) == pytest.approx(TICK)
    assert probe.seen == 1
    watcher.close()


def test_a_removed_path_is_not_looked_at_again(log, source):
    log.touch()
    probe = Sizes(log)
    watcher = Watcher(source)
    watched = watcher.add(log, probe, now=0.0)
    watcher.remove(watched)
    looks = probe.looks
    append(log, b"x")

    assert watcher.step(5.0) is None
    assert probe.looks == looks
    assert watches(source) == 0
