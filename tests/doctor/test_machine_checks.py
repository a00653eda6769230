"""Each thing that can be missing on a machine is named, with its weight and what mends it."""

from __future__ import annotations

import pytest
from tests.doctor.facts import a_machine, assert_only

from astrago_trainer.doctor.findings import State
from astrago_trainer.doctor.machine_checks import check_machine

GIB = 2**30


def test_a_healthy_machine_has_nothing_to_mend():
    findings = check_machine(a_machine())
    assert {each.state for each in findings} == {State.OK}
    assert not any(each.mend for each in findings)


@pytest.mark.parametrize(
    ("changes", "subject", "state", "said", "mend"),
    [
        ({"settings_trouble": "ASTRAGO_PORT must be a number"}, "settings", "wrong", "ASTRAGO_PORT", ""),
        ({"environments_trouble": "no folder /x"}, "environments", "wrong", "no folder /x", ""),
        ({"frameworks": {"/env/bin": ()}}, "environments", "warning", "neither torch nor", "pip install torch"),
        ({"isolation_trouble": "Operation not permitted"}, "isolation", "warning", "not permitted", "sysctl"),
        ({"system": "darwin"}, "isolation", "warning", "no Linux", ""),
        ({"groups_trouble": "no group may be made"}, "control groups", "warning", "not held", "Delegate=yes"),
        ({"gpus": 0}, "GPUs", "warning", "libnvidia-ml", "nvidia-smi"),
        ({"data_trouble": "/data cannot be written to"}, "data folder", "wrong", "cannot be written", "ASTRAGO_DATA"),
        ({"disk_free": GIB // 2}, "data folder", "wrong", "0.5 GiB free", "du -xsh /data"),
        ({"disk_free": 5 * GIB}, "data folder", "warning", "5.0 GiB free", "du -xsh /data"),
        ({"disk_alarm": "LogsNotWritten"}, "data folder", "wrong", "are not written", "astrago delete"),
        ({"disk_alarm": "DiskFull"}, "data folder", "wrong", "only deletion works", "astrago delete"),
        ({"database_trouble": "it is locked"}, "database", "wrong", "it is locked", ""),
        ({"database_version": "0000"}, "database", "warning", "the next start upgrades", "db backup"),
        ({"port_trouble": "Address in use", "answering": "something else"}, "port", "wrong", "in use", "--port 0"),
        ({"open_files": 1024}, "open files", "warning", "1024", "ulimit"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(changes, subject, state, said, mend):
    assert_only(check_machine(a_machine(**changes)), subject, state, said, mend)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpus": 0, "has_driver": False}, "none; jobs that ask for one run on CPU"),
        ({"gpus": 0, "has_driver": False, "refuses_larger": True}, "ask for one are refused"),
        ({"database_version": ""}, "made at the first start"),
        ({"port_trouble": "in use", "answering": "astrago 0.1.0"}, "astrago 0.1.0 answers"),
    ],
)
def test_what_only_looks_like_trouble_is_fine(changes, said):
    findings = check_machine(a_machine(**changes))
    assert {each.state for each in findings} == {State.OK}
    assert any(said in each.text for each in findings)
