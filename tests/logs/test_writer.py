"""A log from the network: whatever moment its writer dies in, it is gone on with without loss or repetition."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.logs.contents import untimed

from astrago_trainer.logs.layout import position_path
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.writer import MAX_TOKEN, LogWriter

LINES = [b"%04d a line of the pod\n" % number for number in range(200)]
WHOLE = b"".join(LINES)


class Source:
    """Says its lines from a token on, which is the number of the next line."""

    def __init__(self, token: bytes) -> None:
        self.at = int(token or b"0")

    def next(self, count: int) -> tuple[bytes, float, bytes]:
        data = b"".join(LINES[self.at : self.at + count])
        self.at = min(len(LINES), self.at + count)
        return data, 1000.0 + self.at, b"%d" % self.at


def kill(writer: LogWriter) -> None:
    """What is left of a writer when its process is killed: files, and nothing is closed in order."""
    for fd in (writer._fd, writer._reading, writer._notes, writer._indexer._fd):
        os.close(fd)


lives = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1000.0, None]),
        st.lists(st.integers(1, 9), max_size=8),
        st.integers(0, 60),
    ),
    max_size=8,
)
"""How often a writer notes its place, what it gets, and how many bytes of its last write a power loss takes."""


@settings(untimed, max_examples=30)
@given(lives, st.booleans())
def test_a_log_is_whole_however_often_its_writer_dies(tmp_path_factory, lives, with_power_loss):
    log = tmp_path_factory.mktemp("writer") / "node.log"
    for sync_every, portions, lost in lives:
        writer = LogWriter(log, sync_every=sync_every)
        source = Source(writer.token)
        for count in portions:
            writer.append(*source.next(count))
            if count == 5:
                writer.commit()
            assert WHOLE.startswith(log.read_bytes())
        kill(writer)
        if with_power_loss:
            durable = max((offset for offset in noted(log)), default=0)
            os.truncate(log, max(durable, log.stat().st_size - lost))
    writer = LogWriter(log)
    source = Source(writer.token)
    while source.at < len(LINES):
        writer.append(*source.next(7))
    writer.close()

    assert log.read_bytes() == WHOLE
    assert (writer.end, writer.token) == (len(WHOLE), b"200")


def noted(log) -> list[int]:
    """Offsets of the notes on disk: what was made durable before them."""
    data = position_path(log).read_bytes()
    return [
        int.from_bytes(data[at + 8 : at + 16], "little") for at in (0, 256) if len(data) > at + 16
    ]


def test_a_torn_note_leaves_the_one_before(log):
    writer = LogWriter(log, sync_every=None)
    source = Source(b"")
    for _ in range(2):
        writer.append(*source.next(3))
        writer.commit()
    kill(writer)
    newest = 0  # the second note is in the first slot
    with position_path(log).open("r+b") as notes:
        notes.seek(newest + 20)
        notes.write(b"\xff")

    again = LogWriter(log)

    assert again.token == b"3"
    again.append(*Source(again.token).next(10))
    again.close()
    assert log.read_bytes() == b"".join(LINES[:13])


@pytest.mark.parametrize(("left", "token"), [(4, b"3"), (2, b"")])
def test_a_note_of_bytes_that_the_log_does_not_have_is_not_believed(log, left, token):
    writer = LogWriter(log, sync_every=0.0)
    source = Source(b"")
    for _ in range(2):
        writer.append(*source.next(3))
    kill(writer)
    os.truncate(log, sum(map(len, LINES[:left])))

    again = LogWriter(log)

    assert again.token == token
    again.append(*Source(again.token).next(10))
    again.close()
    assert log.read_bytes() == b"".join(LINES[: int(token or b"0") + 10])


def test_a_source_that_lost_its_own_log_is_believed(log):
    writer = LogWriter(log, sync_every=None)
    writer.append(b"first\nsecond\n", 1000.0, b"2")
    kill(writer)
    again = LogWriter(log)
    again.append(b"third\n", 1001.0, b"3")
    again.close()

    assert log.read_bytes() == b"first\nsecond\nthird\n"


def test_the_times_of_the_source_are_indexed(log):
    writer = LogWriter(log)
    for number in range(5):
        writer.append(b"line %d\n" % number, 1000.0 + 10 * number)
    writer.close()

    assert LogFile(log).offset_at(1025.0) == 21
    assert LogFile(log).time_at(14) == pytest.approx(1010.0)


def test_the_place_is_noted_at_most_once_in_a_while_and_when_closed(log):
    writer = LogWriter(log, sync_every=1000.0)
    writer.append(b"x\n", 1000.0, b"1")
    assert noted(log) == []
    writer.close()
    assert noted(log) == [0, 2]
    assert LogWriter(log).token == b"1"


def test_a_token_that_does_not_fit_is_refused_before_anything_is_written(log):
    writer = LogWriter(log)
    with pytest.raises(ValueError, match="at most 200"):
        writer.append(b"x\n", 1000.0, b"t" * (MAX_TOKEN + 1))

    assert log.read_bytes() == b""
    writer.append(b"x\n", 1000.0, b"t" * MAX_TOKEN)
    writer.close()
    assert LogWriter(log).token == b"t" * MAX_TOKEN
