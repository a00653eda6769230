"""The page of one job, as people read it."""

from __future__ import annotations

import io

from astrago_trainer.cli.job_page import job_page
from astrago_trainer.cli.terminal import Terminal, width

JOB = {
    "name": "mpi",
    "namespace": "team",
    "owner": "ann",
    "framework": "horovod",
    "runtime": "horovod-simple",
    "nodes": 1,
    "gpus_per_node": 0,
    "engine": "kubernetes",
    "phase": "Pending",
    "meaning": "it waits for room",
    "reason": "",
    "message": "",
    "run": 1,
    "restarts": 0,
    "max_restarts": 0,
    "created_at": "2026-11-15T12:00:00.000Z",
    "started_at": None,
    "finished_at": None,
    "cloned_from": {"name": "first", "uid": "u1"},
}
PLACED = {
    "name": "mpi-node-0-0",
    "replicated_job": "node",
    "rank": 0,
    "phase": "Initializing",
    "exit_code": None,
    "reason": "the image is pulled: " + "and so on " * 20,
    "node": "ip-10-0-12-34.ap-northeast-2.compute.internal",
    "address": "fd00:10:244:1234:5678:9abc:def0:1111",
}
UNPLACED = {
    **PLACED,
    "name": "mpi-launcher-0-0",
    "replicated_job": "launcher",
    "rank": 1,
    "phase": "Pending",
    "reason": "",
    "node": None,
    "address": None,
}


def page(*, is_wide: bool) -> list[str]:
    terminal = Terminal(io.StringIO())
    terminal.width = 1000 if is_wide else 80
    return job_page(JOB, [UNPLACED, PLACED], [], terminal, flags="", is_wide=is_wide)


def pods(lines: list[str]) -> list[list[str]]:
    place = next(number for number, line in enumerate(lines) if line.startswith("RANK"))
    return [
        [cell.strip() for cell in line.split("  ") if cell] for line in lines[place : place + 3]
    ]


def test_pods_are_told_by_rank_with_their_place_in_80_columns():
    lines = page(is_wide=False)

    assert max(map(width, lines)) <= 80
    heads, first, second = pods(lines)
    assert heads == ["RANK", "NODE", "ADDRESS", "PHASE", "EXIT", "WHY"]
    assert first[:4] == ["0", "ip-10-0-12-34.…", "fd00:10:244:12…", "Initializing"]
    assert second == ["1 launcher", "-", "-", "Pending", "-"]


def test_a_wide_page_has_names_and_places_whole():
    heads, first, second = pods(page(is_wide=True))

    assert heads[1] == "POD"
    assert first[1:4] == [PLACED["name"], PLACED["node"], PLACED["address"]]
    assert second[1] == UNPLACED["name"]


def test_the_job_that_it_was_cloned_from_is_named():
    assert any(line.split() == ["cloned", "from", "first"] for line in page(is_wide=False))
