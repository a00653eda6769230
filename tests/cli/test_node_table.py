"""Nodes as people read them."""

from __future__ import annotations

import io

import pytest

from astrago_trainer.cli.node_table import node_table
from astrago_trainer.cli.terminal import Terminal

AMOUNTS = {"cpu": 192.0, "memory": 1536 * 2**30, "gpus": 8}
FREE = {"cpu": 100.0, "memory": 1000 * 2**30, "gpus": 3}
LARGE = {
    "name": "node-1",
    "ready": True,
    "instance_type": "g6e.48xlarge",
    "zone": "a",
    "capacity_type": "spot",
    "architecture": "amd64",
    "os_image": "Linux",
    "gpus": 8,
    "capacity": AMOUNTS,
    "free": FREE,
    "remarks": ["unschedulable"],
    "jobs": [
        {"namespace": "team", "name": "mine", "pods": 2},
        {"namespace": None, "name": "another tenant", "pods": 3},
    ],
}
PLAIN = {
    **LARGE,
    "name": "node-2",
    "ready": False,
    "instance_type": "",
    "capacity_type": "",
    "gpus": None,
    "remarks": [],
    "jobs": [],
}


def table(*nodes, is_wide=False):
    terminal = Terminal(io.StringIO())
    terminal.width = 200
    return [line.split("  ") for line in node_table(nodes, terminal, is_wide=is_wide)]


def cells(row):
    return [cell.strip() for cell in row if cell.strip()]


@pytest.mark.req("M113", "X15")
def test_the_columns_of_the_mission_and_what_is_free():
    heading, large, plain = map(cells, table(LARGE, PLAIN))
    assert heading == ["NAME", "INSTANCE-TYPE", "ARCH", "OS-IMAGE", "GPU", "CAPACITY", "FREE"]
    free = "100/192 CPU 1000/1536 GiB 3/8 GPU"
    assert large == ["node-1", "g6e.48xlarge", "amd64", "Linux", "8", "spot", free]
    assert plain == ["node-2", "<none>", "amd64", "Linux", "<none>", "<none>", "not ready"]


def test_wide_says_who_is_there():
    _, large = map(cells, table(LARGE, is_wide=True))
    assert large[-3:] == ["a", "ready, unschedulable", "team/mine (2), another tenant (3)"]


def test_no_nodes_is_said():
    assert table() == [["No nodes."]]
