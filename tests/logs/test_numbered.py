"""Lines by number over several logs: the same as reading all of them in the order of time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from astrago_trainer.logs.merged import Source, merged
from astrago_trainer.logs.numbered import MAX_SHOWN, LineIndexes, NumberedLog, NumberedLogs
from astrago_trainer.logs.writer import LogWriter

BEGAN = 1_763_208_000.0


def _write(path: Path, seed: int, lines: int) -> Path:
    """Bursts, silences, long lines and a progress bar, as a training writes them."""
    chance = random.Random(seed)
    writer = LogWriter(path, sync_every=None)
    when = BEGAN + seed / 10
    for number in range(lines):
        when += chance.choice((0.0, 0.0001, 0.001, 0.2, 3.0))
        filler = "x" * chance.choice((0, 10, 200, 3000))
        writer.append(f"{seed}:{number} {filler}\n".encode(), when)
    writer.append(b"1%\r2%\r3%", when + 1)
    writer.close()
    return path


@pytest.fixture(scope="module")
def paths(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("logs")
    return [_write(folder / f"pod-{seed}" / "node.log", seed, 900) for seed in (1, 2, 3)]


def _all(paths: list[Path]) -> list[tuple[int, bytes]]:
    sources = [Source(str(number), "node", path) for number, path in enumerate(paths)]
    return [(int(each.pod), each.line.data) for each in merged(sources)]


def _opened(paths: list[Path], indexes: LineIndexes | None = None) -> NumberedLogs:
    return NumberedLogs(paths, indexes or LineIndexes(), [None] * len(paths), is_over=True)


def test_windows_in_a_row_are_the_merged_log(paths):
    with _opened(paths) as logs:
        found = [
            (each.log, each.line.data)
            for first in range(0, logs.total, 97)
            for each in logs.lines(first, 97)
        ]
        assert logs.total == 3 * 901
        assert found == _all(paths)


def test_a_line_is_found_by_its_place(paths):
    with _opened(paths) as logs:
        for number in (0, 1, 500, 1351, logs.total - 2, logs.total - 1):
            (line,) = logs.lines(number, 1)
            assert logs.number_of(line.log, line.line.offset) == number
            assert logs.number_of(line.log, line.line.end - 1) == number


def test_logs_without_an_index_come_one_after_the_other(tmp_path):
    paths = [tmp_path / name for name in ("a.log", "b.log", "c.log")]
    paths[0].write_bytes(b"1\n2\n")
    paths[1].write_bytes(b"3\n4")
    for path in paths[:2]:
        path.touch()
    with _opened(paths) as logs:
        assert logs.total == 4
        assert [each.line.data for each in logs.lines(0, 9)] == [b"1", b"2", b"3", b"4"]
        assert [each.line.data for each in logs.lines(3, 9)] == [b"4"]
        assert logs.lines(4, 9) == []


def test_what_is_still_written_counts_as_far_as_its_times_are_known(tmp_path):
    path = tmp_path / "node.log"
    writer = LogWriter(path)
    writer.append(b"one\ntwo\nthr", BEGAN)
    log = NumberedLog(path, LineIndexes(), None, is_over=False)
    assert (log.total, log.stop) == (2, 8)
    log.close()
    writer.append(b"ee\nfour\n", BEGAN + 5)
    writer.close()
    before = NumberedLog(path, LineIndexes(), 8, is_over=False)
    assert before.total == 2
    before.close()
    after = NumberedLog(path, LineIndexes(), None, is_over=True)
    assert after.total == 4
    after.close()


def test_a_line_index_is_gone_on_with_when_the_log_grows(tmp_path):
    path, indexes = tmp_path / "node.log", LineIndexes()
    for number in range(3):
        with path.open("ab") as file:
            file.write(b"a line\n" * 20_000)
        with _opened([path], indexes) as logs:
            assert logs.total == 20_000 * (number + 1)
            assert len(logs.lines(logs.total - 5, 50)) == 5


def test_a_log_that_was_cut_off_and_grew_again_is_counted_anew(tmp_path):
    path, indexes = tmp_path / "node.log", LineIndexes()
    path.write_bytes(b"short\n" * 10)
    with _opened([path], indexes) as logs:
        assert logs.total == 10
    with path.open("r+b") as file:  # the same file, as `echo > /dev/stderr` does it
        file.truncate()
        file.write(b"a longer line than before\n" * 10)
    with _opened([path], indexes) as logs:
        assert logs.total == 10
        assert len(logs.lines(0, 20)) == 10


def test_a_very_long_line_is_cut(tmp_path):
    path = tmp_path / "node.log"
    path.write_bytes(b"a" * 100_000 + b"\nb\n")
    with _opened([path]) as logs:
        first, second = logs.lines(0, 2)
    assert (len(first.line.data), first.line.cut) == (MAX_SHOWN, True)
    assert (second.line.data, second.line.cut) == (b"b", False)
