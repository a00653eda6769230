"""Where logs lie, and that no name leads out of there."""

from __future__ import annotations

import os

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.logs.layout import LogName, create_log, find_logs, log_path, open_log


def test_a_log_has_a_file_per_attempt_pod_and_container(tmp_path):
    path = log_path(tmp_path, 2, "job-node-0-1", "node")

    assert path == tmp_path / "logs/2/job-node-0-1/node.log"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/etc/passwd", "../x", "nul\0", "x" * 256, "한" * 90]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(InvalidRequest) as refused:
        log_path(tmp_path, -1, name, name)

    assert [problem.path for problem in refused.value.problems] == ["pod", "container", "attempt"]


def test_the_logs_of_a_job_are_found_in_order(tmp_path):
    names = [
        (0, "a", "init"),
        (0, "a", "node"),
        (0, "b", "node"),
        (2, "a", "node"),
        (10, "a", "node"),
    ]
    for name in reversed(names):
        os.close(create_log(log_path(tmp_path, *name)))
    (tmp_path / "logs/0/a/node.log.idx").touch()
    (tmp_path / "logs/notes").mkdir()

    found = find_logs(tmp_path)

    assert found == [LogName(*name, log_path(tmp_path, *name)) for name in names]
    assert find_logs(tmp_path, 2) == found[3:4]
    assert find_logs(tmp_path / "no-such-job") == []


def test_a_created_log_keeps_what_is_in_it_and_is_for_its_owner_alone(log):
    log.write_bytes(b"first\n")
    log.chmod(0o600)
    fd = create_log(log)
    os.write(fd, b"second\n")
    os.close(fd)

    assert log.read_bytes() == b"first\nsecond\n"
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "missing"])
def test_what_is_no_plain_file_is_not_opened(log, kind):
    if kind == "link":
        log.symlink_to("/etc/passwd")
    elif kind == "folder":
        log.mkdir()
    elif kind == "pipe":
        os.mkfifo(log)

    assert open_log(log) is None
