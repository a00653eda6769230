"""The end of a failed rank's log explains it where its container left no message."""

from __future__ import annotations

from astrago_trainer.engines.kubernetes.failures import Failure
from astrago_trainer.engines.kubernetes.last_words import with_last_words
from astrago_trainer.logs.layout import log_path

KNOWN = Failure("k", 1, 5.0, 1, "Error", "rank 0 ended", pod="job-node-0-0", container="node")


def written(folder, text, attempt=1):
    path = log_path(folder, attempt, "job-node-0-0", "node")
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_the_end_of_the_log_is_told_in_whole_lines(tmp_path):
    written(tmp_path, "begun\n" * 200 + "Traceback\nValueError: no data\n")
    (found,) = with_last_words([KNOWN], tmp_path)
    assert found.said.endswith("begun\nTraceback\nValueError: no data")
    assert len(found.said) <= 400
    assert found.said.startswith("begun\n")


def test_words_of_its_own_come_first_and_an_aftermath_has_none(tmp_path):
    written(tmp_path, "Terminated\n")
    own = Failure("k", 1, 5.0, 1, "Error", "m", said="mine", pod="job-node-0-0", container="node")
    after = Failure("l", 0, 5.0, 143, "PodDeleted", "m", True, pod="job-node-0-0", container="node")
    assert [each.said for each in with_last_words([own, after], tmp_path)] == ["mine", ""]


def test_without_a_log_nothing_is_added(tmp_path):
    assert with_last_words([KNOWN], tmp_path) == [KNOWN]
    assert with_last_words([], tmp_path) == []
