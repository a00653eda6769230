"""The same commands through a server and without one: the same words, the same exit codes."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.servers import a_server

from .conftest import Astrago, Result
from .jobs import FAILS, HELLO, PATIENCE, SMALL, WAITS, script, start, until_line
from .test_main import cpu_seconds

CHANGES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+Z|\d+(\.\d+)? s\b|\b\d+s\b"
    r"|\b[0-9a-f]{20}\b|\"version\": \d+|MASTER_PORT: \d+|/\S+/(data|server)\S*|http://[\d.:]+"
)
"""Times, uids, ports, and where it is."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_server(tmp_path_factory.mktemp("server"), LOGNAME="kim", USER="kim") as address:
        yield address


@pytest.mark.usefixtures("data")
def test_both_doors_say_the_same(
    url: str, tmp_path: Path, astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = told(astrago, tmp_path)
    monkeypatch.setenv("ASTRAGO_SERVER", url)
    there = told(astrago, tmp_path)
    assert here.keys() == there.keys()
    for command, result in here.items():
        ours, theirs = plain(result), plain(there[command])
        only_here = [line for place in (1, 2) for line in set(ours[place]) - set(theirs[place])]
        only_there = [line for place in (1, 2) for line in set(theirs[place]) - set(ours[place])]
        assert ours == theirs, f"{command}: only here {only_here}, only there {only_there}"


def told(astrago: Astrago, folder: Path) -> dict[str, Result]:
    train = script(folder, HELLO)
    bad = script(folder, FAILS, "bad.py")
    shown = {
        "run": astrago("run", train, "--name", "two", "--nodes", "2", *SMALL),
        "run bad": astrago("run", bad, "--name", "bad", "--max-restarts", "1", *SMALL),
        "refused": astrago("run", train, "--nodes", "0", "--memory", "much"),
        "taken": astrago("run", train, "--name", "two", *SMALL),
    }
    for argv in LOOKS:
        shown[" ".join(argv)] = astrago(*argv)
    return shown


LOOKS = (
    ("list",),
    ("list", "-o", "wide"),
    ("list", "tw"),
    ("list", "--phase", "Failed"),
    ("list", "-A"),
    ("status", "two"),
    ("status", "bad", "-o", "json"),
    ("status", "none"),
    ("logs", "two"),
    ("logs", "two", "--rank", "1", "--tail", "2"),
    ("logs", "bad", "--attempt", "0", "--grep", "Error"),
    ("logs", "two", "--grep", "loss=0.5"),
    ("logs", "two", "--grep", "nothing has this"),
    ("logs", "two", "--rank", "7"),
    ("logs", "-f", "bad"),
    ("events", "two"),
    ("explain", "bad"),
    ("whoami",),
    ("nodes",),
    ("nodes", "-o", "json"),
    ("suspend", "two"),
    ("clone", "two", "--as", "three", "--nodes", "1"),
    ("delete", "two", "bad", "three"),
    ("delete", "two"),
)


def plain(result: Result) -> tuple[int, list[str], list[str]]:
    """Without what depends on who was quicker: the order of two ranks, and which phases were seen on the way."""
    code, out, err = result
    streams = [CHANGES.sub("…", re.sub(r" +", " ", each)) for each in (out, err)]
    out_lines, err_lines = (
        sorted(line.rstrip() for line in each.splitlines() if not SEEN.search(line))
        for each in streams
    )
    return code, out_lines, err_lines


SEEN = re.compile(r"^── |\bwas [A-Z]| by astrago$")


@pytest.mark.usefixtures("data")
def test_ctrl_c_leaves_a_job_on_a_server(url: str, tmp_path: Path, astrago: Astrago) -> None:
    file = script(tmp_path, WAITS)
    with start("run", file, "--name", "long", "--server", url, *SMALL) as process:
        until_line(process, "begun")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 101
    assert f"astrago logs -f long --server {url}" in err
    assert astrago("status", "long", "--server", url).code == 101
    with start("logs", "-f", "long", "--server", url) as process:
        until_line(process, "begun")
        assert astrago("delete", "long", "--server", url).out == "long is deleted.\n"
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 103


@pytest.mark.usefixtures("data")
def test_a_list_from_a_server_costs_at_most_150_ms_of_cpu(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRAGO_SERVER", url)
    assert cpu_seconds(tmp_path, "list") <= 0.15


@pytest.mark.usefixtures("data")
def test_a_login_is_remembered_and_forgotten(tmp_path: Path, astrago_program: Astrago) -> None:
    with a_server(tmp_path / "server", ASTRAGO_AUTH="tokens") as url:
        refused = astrago_program("list", "--server", url)
        assert refused.code == 1
        assert "astrago login" in refused.err
        assert astrago_program("login", url, stdin=b"astrago_wrong\n").code == 1
        assert not (tmp_path / "config" / "astrago").exists(), "only what works is written"
        token = (tmp_path / "server" / "admin-token").read_bytes().strip()
        done = astrago_program("login", url, "--namespace", "team", stdin=token + b"\n")
        assert done.code == 0, done.err
        assert "Jobs go to the namespace team." in done.out
        assert token.decode() not in done.all
        who = json.loads(astrago_program("whoami", "-o", "json").out)
        assert who["is_administrator"]
        made = astrago_program("tokens", "create", "--label", "ci", "--days", "1")
        assert made.out.startswith("astrago_")
        assert made.out.count("\n") == 1
        listed = json.loads(astrago_program("tokens", "-o", "json").out)["items"]
        known = next(each["id"] for each in listed if each["label"] == "ci")
        assert astrago_program("whoami", ASTRAGO_TOKEN=made.out.strip()).code == 0
        assert astrago_program("tokens", "revoke", known).code == 0
        assert astrago_program("whoami", ASTRAGO_TOKEN=made.out.strip()).code == 1
        assert known in astrago_program("tokens").out
        made = astrago_program("users", "create", "kim")
        assert made.out == "kim can be given roles and tokens, or sign in through the issuer.\n"
        kims = astrago_program("tokens", "create", "--user", "kim").out.strip()
        assert astrago_program("whoami", ASTRAGO_TOKEN=kims).code == 0
        for action, code in (("disable", 1), ("enable", 0), ("revoke", 1)):
            done = astrago_program("users", action, "kim")
            assert (done.code, "kim" in done.out) == (0, True), done.err
            assert astrago_program("whoami", ASTRAGO_TOKEN=kims).code == code, action
        assert re.search(r"^kim +tokens", astrago_program("users").out, re.M)
        assert astrago_program("users", "delete", "kim").code == 0
        assert "there is no user 'kim'" in astrago_program("users", "enable", "kim").err
        assert "the only administrator" in astrago_program("users", "disable", "admin").err
        assert astrago_program("users", "disable").code == 2
    gone = astrago_program("list")
    assert gone.code == 1
    assert "no server answers at" in gone.err
    assert astrago_program("login", "--forget").out == "Forgotten.\n"
    assert astrago_program("list").code == 0


@pytest.mark.usefixtures("data")
def test_the_first_run_after_a_login_has_a_namespace_or_says_how_to_get_one(
    tmp_path: Path, astrago_program: Astrago
) -> None:
    with a_server(tmp_path / "server", ASTRAGO_AUTH="tokens") as url:
        token = (tmp_path / "server" / "admin-token").read_bytes().strip()
        done = astrago_program("login", url, stdin=token + b"\n")
        assert "astrago tenants create NAME" in done.out
        file = script(tmp_path, "print('hello')")
        refused = astrago_program("run", file, "--detach", *SMALL)
        assert refused.code == 1
        assert "astrago tenants create NAME" in refused.err
        assert "admin has none yet" in refused.err
        assert "tenants create NAME" in astrago_program("whoami").out
        missing = astrago_program("run", file, "--detach", "--namespace", "team-b", *SMALL)
        assert "astrago tenants create team-b" in missing.err
        assert astrago_program("tenants", "create", "team-a").code == 0
        ran = astrago_program("run", file, "--detach", *SMALL)
        assert ran.code == 0, ran.err
        assert astrago_program("tenants", "create", "team-b").code == 0
        several = astrago_program("run", file, "--detach", *SMALL)
        assert "admin can use team-a, team-b" in several.err
        assert "--namespace" in several.err
        portal = astrago_program(
            *("tokens", "create", "--backend", "portal", "--namespaces", "team-*,user-1")
        )
        assert portal.out.startswith("astrago_"), portal.all
        who = astrago_program("whoami", ASTRAGO_TOKEN=portal.out.strip())
        assert "backend for team-*, user-1" in who.out
        for wrong in (
            ["create", "--backend", "portal"],
            ["create", "--namespaces", "x"],
            ["list", "--backend", "portal"],
            ["revoke"],
        ):
            assert astrago_program("tokens", *wrong).code == 2
        assert astrago_program("tokens", "revoke", "--backend", "portal").code == 0
        assert astrago_program("whoami", ASTRAGO_TOKEN=portal.out.strip()).code == 1
