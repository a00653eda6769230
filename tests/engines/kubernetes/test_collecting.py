"""Logs of containers that have ended: thousands of them wait when a server starts, and each is asked for once.

The server is a script: so many pods, and nodes that do not answer, cannot be had on demand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from astrago_trainer.engines.base import EngineUnavailable
from astrago_trainer.engines.kubernetes.collecting import LogCollector
from astrago_trainer.engines.kubernetes.objects import (
    ContainerStatus,
    MemberLabels,
    MemberMeta,
    Pod,
    PodSpec,
    PodStatus,
    State,
    Terminated,
)

STAMP = b"2026-01-01T00:00:00.000000001Z "
ENDED = ContainerStatus("node", state=State(terminated=Terminated()))


class _Stream:
    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        yield STAMP + b"hello\n"


class Server:
    """Gives out logs, after it has refused to so many times; counts how many are asked for at once."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.asked: list[str] = []
        self.now = self.most = 0

    @asynccontextmanager
    async def stream(self, path: str, query: object, *, silence: None) -> AsyncIterator[_Stream]:
        self.asked.append(path)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(10):  # the others come to their turn
                await asyncio.sleep(0)
            if self.refusals:
                self.refusals -= 1
                raise EngineUnavailable("the node does not answer")
            yield _Stream()
        finally:
            self.now -= 1


def an_ended_pod(number: int = 0) -> Pod:
    labels = MemberLabels(job_set=f"job{number}", group="node")
    name = f"job{number}-node-0-0-abcde"
    meta = MemberMeta(name, uid=f"uid{number}", namespace="team", labels=labels)
    status = PodStatus(phase="Succeeded", container_statuses=[ENDED])
    return Pod(meta, PodSpec(node_name="n", restart_policy="Never"), status)


def collect(server: Server, folder: Path, count: int = 1) -> list[str]:
    """The texts of the logs when all are at their ends."""

    async def scenario() -> None:
        ended = asyncio.Semaphore(0)
        collector = LogCollector(server, lambda _: ended.release())  # type: ignore[arg-type]
        for number in range(count):
            collector.look(folder / str(number), [an_ended_pod(number)])
        async with asyncio.timeout(30):
            for _ in range(count):
                await ended.acquire()
        await collector.close()

    asyncio.run(scenario())
    return [path.read_text() for path in sorted(folder.glob("*/logs/*/*/node.log"))]


def test_thousands_are_read_a_few_at_a_time(tmp_path):
    server = Server()
    assert collect(server, tmp_path, 300) == ["hello\n"] * 300
    assert len(server.asked) == 300
    assert 1 < server.most <= 32


def test_what_is_whole_is_not_asked_for_again(tmp_path):
    collect(Server(), tmp_path)
    later = Server()
    assert collect(later, tmp_path) == ["hello\n"]
    assert later.asked == []


def test_one_whose_node_does_not_answer_lets_the_others_pass_and_is_tried_again(tmp_path):
    server = Server(refusals=40)
    assert collect(server, tmp_path, 100) == ["hello\n"] * 100
    assert len(server.asked) == 140
