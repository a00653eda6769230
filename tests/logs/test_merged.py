"""All ranks as one: in the order of time, no line lost, and goes on from history to what comes."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.logs.contents import untimed
from tests.logs.supervised import Supervised

from astrago_trainer.logs import merged as sync
from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.follow_merged import follow_merged
from astrago_trainer.logs.merged import Source, merged


def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, data)
    os.close(fd)


def sources(folder, ranks):
    return [Source(f"pod-{rank}", "node", folder / f"{rank}.log") for rank in range(ranks)]


@untimed
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2500)), max_size=60))
def test_history_is_in_the_order_of_time_to_a_second(tmp_path_factory, writes):
    """Which rank writes a line, and milliseconds before the next."""
    ranks = sources(tmp_path_factory.mktemp("merged"), 3)
    supervised = Supervised([source.path for source in ranks])
    written: list[list[bytes]] = [[], [], []]
    for rank, pause in writes:
        line = b"%.3f" % supervised.now
        supervised.write(ranks[rank].path, line + b"\n")
        written[rank].append(line)
        supervised.wait(pause / 1000)
    supervised.finish()

    lines = list(merged(ranks))

    for rank, expected in enumerate(written):
        assert [one.line.data for one in lines if one.pod == f"pod-{rank}"] == expected
    assert sorted(one.time for one in lines) == [one.time for one in lines]
    for one in lines:
        assert abs(float(one.line.data) - one.time) <= 1.25


def test_lines_of_steady_ranks_alternate(tmp_path):
    """Five lines a second from each of two ranks, with one record a second."""
    ranks = sources(tmp_path, 2)
    supervised = Supervised([source.path for source in ranks])
    for step in range(50):
        for rank in range(2):
            supervised.write(ranks[rank].path, b"step %03d rank %d\n" % (step, rank))
            supervised.wait(0.1)
    supervised.finish()

    shown = [int(one.line.data[5:8]) for one in merged(ranks)]

    assert sorted(shown) == sorted([*range(50), *range(50)])
    out_of_place = max(abs(step - place // 2) for place, step in enumerate(shown))
    assert out_of_place <= 2


def test_logs_without_an_index_and_missing_logs_are_merged_too(tmp_path):
    ranks = sources(tmp_path, 3)
    append(ranks[0].path, b"a\nb\nhalf")
    append(ranks[1].path, b"c\n")
    os.utime(ranks[0].path, (100.0, 100.0))
    os.utime(ranks[1].path, (99.0, 99.0))

    assert [(one.pod, one.line.data, one.line.ended) for one in merged(ranks)] == [
        ("pod-1", b"c", True), ("pod-0", b"a", True), ("pod-0", b"b", True), ("pod-0", b"half", False),
    ]  # fmt: skip


def test_history_begins_at_the_offsets(tmp_path):
    (rank,) = sources(tmp_path, 1)
    append(rank.path, b"one\ntwo\n")

    assert [one.line.data for one in merged([rank._replace(offset=4)])] == [b"two"]


@pytest.mark.parametrize("ranks", [1, 3, 40])
def test_following_goes_on_from_history_without_loss_or_repetition(tmp_path, ranks):
    logs = sources(tmp_path, ranks)
    for source in logs[1:]:
        append(source.path, b"history\nhal")

    async def main():
        hub, done, shown = LogHub(), asyncio.Event(), {}
        lines = 0

        async def read():
            nonlocal lines
            async for batch in follow_merged(hub, logs, done=done):
                for one in batch:
                    lines += one.line.ended
                    shown.setdefault(one.pod, {})[one.line.offset] = one.line.data

        reading = asyncio.create_task(read())
        while lines < ranks - 1:
            await asyncio.sleep(0)
        for number in range(10):
            for source in logs:
                append(source.path, b"f\nnew %d\nhal" % number)
            while lines < (ranks - 1) + (number + 1) * 2 * ranks:
                await asyncio.sleep(0)
        done.set()
        await reading
        hub.close()
        return shown

    shown = asyncio.run(asyncio.wait_for(main(), 30))

    for number, source in enumerate(logs):
        first = [b"history", b"half"] if number else [b"f"]
        rest = [line for n in range(1, 10) for line in (b"half", b"new %d" % n)]
        got = [shown[source.pod][place] for place in sorted(shown[source.pod])]
        assert got == [*first, b"new 0", *rest, b"hal"]


def test_the_command_line_follows_all_ranks(tmp_path):
    ranks = sources(tmp_path, 2)
    append(ranks[0].path, b"a\nhalf a")
    append(ranks[1].path, b"b\n")
    os.utime(ranks[0].path, (100.0, 100.0))
    os.utime(ranks[1].path, (101.0, 101.0))

    batches = list(sync.follow_merged(ranks, done=lambda: True))

    assert [(one.pod, one.line.data) for batch in batches for one in batch] == [
        ("pod-0", b"a"), ("pod-1", b"b"), ("pod-0", b"half a"),
    ]  # fmt: skip
