"""Events keep their numbers, whoever reads them."""

from __future__ import annotations

from astrago_trainer.engines.kubernetes.failures import Failure
from astrago_trainer.engines.kubernetes.journal import Journal

FAILURE = Failure("k", 0, 5.0, 1, "Error", "rank 1 ended with exit code 1")


def test_events_and_failures_survive_us(tmp_path):
    first = Journal(tmp_path)
    assert first.note("a", 1.0, "Scheduled", "on node n1")
    assert first.note_failure(FAILURE)

    again = Journal(tmp_path)

    assert again.events == first.events
    assert [event.number for event in again.events] == [0, 1]
    assert again.failures == [FAILURE]


def test_what_is_told_again_is_noted_once(tmp_path):
    journal = Journal(tmp_path)
    journal.note("a", 1.0, "Scheduled", "on node n1")

    assert not Journal(tmp_path).note("a", 2.0, "Scheduled", "on node n1")
    assert len(Journal(tmp_path).events) == 1


def test_a_torn_last_line_is_left_out_and_written_over(tmp_path):
    journal = Journal(tmp_path)
    journal.note("a", 1.0, "Scheduled", "on node n1")
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"key": "b", "ti')

    after = Journal(tmp_path)
    after.note("c", 2.0, "Started", "")

    assert [event.reason for event in Journal(tmp_path).events] == ["Scheduled", "Started"]
