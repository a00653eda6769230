"""Real processes: one writes its log by itself, others follow it, and any of them may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.logs.contents import WRITER

from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.indexer import Indexer
from astrago_trainer.logs.inotify import Inotify
from astrago_trainer.logs.layout import create_log, index_path
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.watch import Watcher

LINES = 15_000
FOLLOWER = """
import os, sys
from pathlib import Path
from astrago_trainer.logs.follow_sync import follow
log, copy, ended = map(Path, sys.argv[1:])
out = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for chunk in follow(log, os.fstat(out).st_size, done=ended.exists, watch=[ended]):
    os.write(out, chunk.data)
"""


def write_to(log, lines: int = LINES) -> subprocess.Popen[bytes]:
    stdout = create_log(log)
    try:
        return subprocess.Popen([sys.executable, "-c", WRITER, str(lines)], stdout=stdout)
    finally:
        os.close(stdout)


def test_eight_followers_see_ten_thousand_lines_a_second_at_once(log):
    async def follow(hub, done, lags, got):
        async for chunk in hub.follow(log, done=done):
            now = time.time_ns()
            got.append(chunk.data)
            whole = chunk.data[chunk.data.find(b"\n") + 1 : chunk.data.rfind(b"\n") + 1]
            lags += [now - int(line[:19]) for line in whole.splitlines()]

    async def main():
        hub, done = LogHub(), asyncio.Event()
        lags, got = [], [[] for _ in range(8)]
        async with asyncio.TaskGroup() as group:
            for each in got:
                group.create_task(follow(hub, done, lags, each))
            writer = write_to(log)
            await asyncio.to_thread(writer.wait)
            done.set()
        hub.close()
        return lags, [b"".join(each) for each in got]

    lags, copies = asyncio.run(asyncio.wait_for(main(), 60))

    content = log.read_bytes()
    assert content.count(b"\n") == LINES
    assert [copy == content for copy in copies] == [True] * 8
    assert len(lags) > 7 * LINES
    lags.sort()
    assert lags[len(lags) * 99 // 100] <= 500e6  # the goal is 100 ms; `make bench` shows what it is


def test_a_follower_that_is_killed_is_followed_by_another_without_a_gap(log, tmp_path):
    copy, ended = tmp_path / "copy", tmp_path / "ended"
    copy.touch()
    command = [sys.executable, "-c", FOLLOWER, str(log), str(copy), str(ended)]
    writer = write_to(log)
    for _ in range(3):
        goal = copy.stat().st_size + 100_000
        with subprocess.Popen(command) as follower:
            while copy.stat().st_size < goal and follower.poll() is None:
                os.sched_yield()
            follower.send_signal(signal.SIGKILL)
    assert writer.wait() == 0
    ended.touch()
    subprocess.run(command, check=True, timeout=60)

    assert copy.read_bytes() == log.read_bytes()


def test_a_log_outlives_everybody_but_its_writer(log):
    """Nobody indexes and nobody follows: what the process wrote is there, and can be read and indexed later."""
    assert write_to(log, 1000).wait() == 0
    indexer = Indexer(log)
    indexer.finish(time.time())

    assert LogFile(log).line_count() == 1000
    assert LogFile(log).offset_at(time.time() - 3600) == 0


def test_a_supervisor_indexes_a_busy_log_at_little_cost(log):
    """Its loop as it will be: wait for the descriptor or the pause, step, and nothing else."""
    log.touch()
    watcher, indexer = Watcher(Inotify()), Indexer(log)
    notes = 0

    def note():
        nonlocal notes
        notes += 1
        return indexer.note(time.time())

    watcher.add(log, note, now=time.monotonic())
    cpu = time.process_time()
    writer = write_to(log)
    while writer.poll() is None:
        watcher.wait()
    cpu = time.process_time() - cpu
    indexer.finish(time.time())
    watcher.close()

    file = LogFile(log)
    assert cpu < 0.3  # of 1.5 s; an event per line would cost more than that
    assert notes < 200
    assert index_path(log).stat().st_size <= 16 * 50
    lines = list(file.lines(0, LINES))
    for line in lines[::500]:
        assert file.time_at(line.end) == pytest.approx(int(line.data[:19]) / 1e9, abs=1.1)
