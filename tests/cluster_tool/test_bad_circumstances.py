"""What is wrong with a machine is told in one message that says what to do, before anything on it was changed."""

from __future__ import annotations

import os

import pytest

from .machine import PASSED, Machine, Outcome

NOT_ROOT = (
    "setpriv --reuid=65534 --regid=65534 --clear-groups"
    " --inh-caps=+dac_read_search --ambient-caps=+dac_read_search"  # Python may lie in root's home
)
ROUTE_REMEDY = (
    "Leave that network (a VPN, another cluster) or remove the route while the cluster runs; "
    "`ip route show table all` lists it."
)
VPN = (
    "ip link add vpn type veth peer name far; ip addr add 192.0.2.1/24 dev vpn; ip link set vpn up"
)


def assert_refused(found: Outcome, message: str, remedy: str) -> None:
    assert found.error == f"cluster: {message}\n       → {remedy}\n"
    assert (found.status, found.output, found.files) == (1, "", [])


def assert_passed(found: Outcome) -> None:
    """It went on to build, and our stand-in for Go stopped it there."""
    assert found.error.splitlines()[1] == PASSED


def test_on_a_good_machine_all_checks_pass(machine: Machine) -> None:
    assert_passed(machine.up())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_root(machine: Machine) -> None:
    assert_refused(
        machine.up(how=NOT_ROOT),
        "a cluster needs root: it makes namespaces and runs containers.",
        "Run it with sudo.",
    )


def test_another_kind_of_machine(machine: Machine) -> None:
    assert_refused(
        machine.up(how="linux32"),
        "a cluster needs Linux on x86_64, and this is Linux on i686.",
        "Use another machine.",
    )


INSTALL_GO = "Install Go 1.26.0 or newer (https://go.dev/dl) and put it first on PATH."


def test_without_go(machine: Machine) -> None:
    (machine.programs / "go").unlink()

    assert_refused(
        machine.up(), "there is no `go` on PATH, and the cluster is built from Go.", INSTALL_GO
    )


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo go version go1.22.5 linux/amd64", "go version go1.22.5 linux/amd64"),
        ("echo go version go1.9 linux/amd64", "go version go1.9 linux/amd64"),
        (
            "echo go: download go1.26.0: toolchain not available >&2; exit 1",
            "go: download go1.26.0: toolchain not available",
        ),
        ("exit 0", ""),
    ],
    ids=["too old", "far too old", "too old and cannot fetch a newer one", "not Go"],
)
def test_a_go_that_will_not_do(machine: Machine, script: str, told: str) -> None:
    go = machine.install("go", script)

    assert_refused(machine.up(), f"{go} cannot build for Go 1.26.0; it says: {told}", INSTALL_GO)


def test_too_small_a_disk(machine: Machine) -> None:
    machine.disk = "19g"  # 20.4 GB

    assert_passed(machine.up())

    machine.disk = "18g"
    assert_refused(
        machine.up(),
        f"19.3 GB are free at {machine.room}, and 20 are needed.",
        "Free some room, or name a folder on another disk: ASTRAGO_CLUSTER=/path.",
    )


@pytest.mark.parametrize("name", ["cache", "go-build", "go-mod"])
def test_too_small_a_disk_for_what_is_built(machine: Machine, name: str) -> None:
    variable = {"cache": "ASTRAGO_CACHE", "go-build": "GOCACHE", "go-mod": "GOMODCACHE"}[name]
    folder = machine.room / name

    found = machine.up(before=f"mkdir {folder}; mount -t tmpfs -o size=1g tmpfs {folder}")

    assert found.error == (
        f"cluster: 1.1 GB are free at {folder}, and 20 are needed.\n"
        f"       → Free some room, or name a folder on another disk: {variable}=/path.\n"
    )
    assert (found.status, found.files) == (1, [str(folder)])


def test_a_cache_that_cannot_be_written(machine: Machine) -> None:
    folder = machine.room / "cache"

    found = machine.up(before=f"mkdir {folder}; mount -t tmpfs -o ro,size=100g tmpfs {folder}")

    assert found.error == (
        f"cluster: {folder} cannot be written.\n"
        f"       → Make it writable, or name another folder: ASTRAGO_CACHE=/path.\n"
    )
    assert (found.status, found.files) == (1, [str(folder)])


def test_a_file_where_the_state_folder_should_be(machine: Machine) -> None:
    found = machine.up(before=f"touch {machine.state}")

    assert found.error == (
        f"cluster: {machine.state} cannot be written.\n"
        f"       → Make it writable, or name another folder: ASTRAGO_CLUSTER=/path.\n"
    )
    assert (found.status, found.files) == (1, [str(machine.state)])


@pytest.mark.parametrize(
    ("line", "network", "target", "through"),
    [
        ("ip route add 10.144.3.0/24 dev vpn", "10.144.0.0/16", "10.144.3.0/24", "vpn"),
        ("ip route add 10.145.0.0/16 dev vpn", "10.145.0.0/16", "10.145.0.0/16", "vpn"),
        ("ip route add 10.0.0.0/8 via 192.0.2.7", "10.143.0.0/30", "10.0.0.0/8", "vpn"),
        ("ip route add 10.144.0.0/14 dev vpn table 7", "10.144.0.0/16", "10.144.0.0/14", "vpn"),
        ("ip route add blackhole 10.145.1.1", "10.145.0.0/16", "10.145.1.1/32", "blackhole"),
        ("ip addr add 10.143.0.2/32 dev vpn", "10.143.0.0/30", "10.143.0.2/32", "vpn"),
    ],
    ids=["part of ours", "ours", "wider than ours", "another table", "nowhere", "an address"],
)
def test_addresses_that_are_in_use(
    machine: Machine, line: str, network: str, target: str, through: str
) -> None:
    assert_refused(
        machine.up(before=f"{VPN}\n{line}"),
        f"the cluster's network {network} is in use: this machine has a route to {target} ({through}).",
        ROUTE_REMEDY,
    )


@pytest.mark.parametrize(
    "line",
    [
        "ip route add default via 192.0.2.7",
        "ip route add 0.0.0.0/1 dev vpn; ip route add 128.0.0.0/1 dev vpn",
        "ip route add 10.142.0.0/16 dev vpn; ip route add 10.146.0.0/16 dev vpn",
        "ip addr add 10.143.0.5/30 dev vpn",
    ],
    ids=["default", "default in halves", "neighbours", "an address beside ours"],
)
def test_other_routes_do_not_matter(machine: Machine, line: str) -> None:
    assert_passed(machine.up(before=f"{VPN}\n{line}"))


def test_a_foreign_link_of_the_same_name(machine: Machine) -> None:
    found = machine.up(before="ip link add astrago-host type veth peer name far")

    assert_refused(
        found,
        "there is a network link astrago-host, and it is not that of a cluster.",
        "Rename it, or remove it: ip link del astrago-host",
    )
    assert [link for link in found.links if link.startswith("astrago-host@far ")]


CLUSTER_LINK = "ip link add astrago-host type veth peer name far; ip link set astrago-host alias {}"


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_cluster_of_another_folder_is_left_alone(machine: Machine, command: str) -> None:
    found = machine.run(f"{CLUSTER_LINK.format('/somebody/elses')}\ncluster {command}")

    if command == "up":
        assert_refused(
            found,
            f"another cluster runs on this machine, that of /somebody/elses; this one is of {machine.state}.",
            "End it first: ASTRAGO_CLUSTER=/somebody/elses make clean-cluster",
        )
    else:
        assert (found.status, found.output, found.error, found.files) == (0, "", "", [])
    assert [link for link in found.links if link.startswith("astrago-host@far ")]


def test_a_link_that_an_earlier_run_left_is_no_obstacle_and_goes_with_down(
    machine: Machine,
) -> None:
    own = CLUSTER_LINK.format(machine.state)

    assert_passed(machine.up(before=own))

    found = machine.run(f"{own}\ncluster down")
    assert found.status == 0
    assert not [link for link in found.links if "astrago-host" in link]


LISTEN = """
import socket, sys
ports = (2379, 2380, 6443, 10248, 10249, 10250, 10256, 10257, 10259)
kept = [socket.create_server(("0.0.0.0", port)) for port in ports]
print("listening", flush=True)
sys.stdin.read()
"""


def test_ports_in_use_do_not_matter(machine: Machine) -> None:
    """The programs' ports are in the cluster's own network; here they are taken on all addresses of the machine's."""
    program = machine.folder / "listen.py"
    program.write_text(LISTEN)
    os.mkfifo(machine.folder / "in")
    os.mkfifo(machine.folder / "out")

    found = machine.run(
        f"cd {machine.folder}; machine_python {program} < in > out & exec 9> in; read line < out; cluster up"
    )

    assert_passed(found)
