"""A copy of the cluster's objects stays true over cuts, bookmarks and forgotten places.

The server is a script of answers: what a real one says when, and in which pieces, cannot be had on demand. Against a
real one it is shown through a proxy in `tests/cluster/engine/test_faults.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from astrago_trainer.engines.kubernetes.client import Expired
from astrago_trainer.engines.kubernetes.objects import TrainJob
from astrago_trainer.engines.kubernetes.resources import TRAINJOBS
from astrago_trainer.engines.kubernetes.watching import Watched

Json = dict[str, Any]


def a_job(name: str, version: int, uid: str = "") -> Json:
    meta = {"name": name, "namespace": "team", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": {**meta, "managedFields": [{"manager": "x"}]}, "spec": {"unknown": 1}}


def a_page(*items: Json, version: int = 10, more: str = "") -> bytes:
    meta = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return msgspec.json.encode({"items": items, "metadata": meta})


def a_change(kind: str, item: Json) -> bytes:
    return msgspec.json.encode({"type": kind, "object": item}) + b"\n"


EXPIRED = b"410"
GONE = a_change("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})


class _Stream:
    def __init__(self, chunks: tuple[bytes, ...]) -> None:
        self._chunks = chunks

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class Server:
    """Answers with these pages and these watches, one after the other; then the last watch goes on in silence."""

    def __init__(self, pages: list[bytes], watches: list[tuple[bytes, ...]]) -> None:
        self.pages, self.watches = pages, watches
        self.asked: list[Json] = []
        self.is_silent = asyncio.Event()

    async def read(self, path: str, **query: str) -> bytes:
        self.asked.append(query)
        page = self.pages.pop(0)
        if page == EXPIRED:
            raise Expired("too old")
        return page

    @asynccontextmanager
    async def stream(self, path: str, query: Json, *, silence: float) -> AsyncIterator[_Stream]:
        self.asked.append(query)
        if not self.watches:
            self.is_silent.set()
            await asyncio.Event().wait()
        yield _Stream(self.watches.pop(0))


def watch(*, pages: list[bytes], watches: list[tuple[bytes, ...]]) -> tuple[list[str], list[Json]]:
    """What is told until the server has nothing more to say, and what it was asked."""
    told: list[str] = []

    def tell(item: TrainJob, is_gone: bool) -> None:
        meta = item.metadata
        told.append(f"{meta.name} gone" if is_gone else f"{meta.name} {meta.resource_version}")

    async def scenario() -> list[Json]:
        server = Server(pages, watches)
        watched = Watched(server, TRAINJOBS, TrainJob, tell, selector="ours")  # type: ignore[arg-type]
        task = asyncio.create_task(watched.run())
        async with asyncio.timeout(30):
            await server.is_silent.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return server.asked

    return told, asyncio.run(scenario())


def test_all_pages_are_listed_and_changes_follow():
    told, asked = watch(
        pages=[a_page(a_job("a", 1), more="next"), a_page(a_job("b", 2))],
        watches=[(a_change("MODIFIED", a_job("a", 11)), a_change("DELETED", a_job("b", 12)))],
    )
    assert told == ["a 1", "b 2", "a 11", "b gone"]
    assert [each.get("continue") for each in asked[:2]] == [None, "next"]
    assert all(each["labelSelector"] == "ours" for each in asked)


def test_a_watch_that_ends_goes_on_from_the_last_change_or_bookmark():
    _, asked = watch(
        pages=[a_page(version=10)],
        watches=[
            (a_change("ADDED", a_job("a", 11)),),
            (a_change("BOOKMARK", {"metadata": {"resourceVersion": "20"}}),),
        ],
    )
    assert [each.get("resourceVersion") for each in asked] == [None, "10", "11", "20"]


def test_a_change_in_pieces_is_whole_and_one_that_is_cut_off_is_left_to_the_next_watch():
    line = a_change("ADDED", a_job("a", 11))
    told, asked = watch(
        pages=[a_page(version=10)],
        watches=[(line[:7], line[7:], a_change("ADDED", a_job("b", 12))[:20])],
    )
    assert told == ["a 11"]
    assert asked[-1]["resourceVersion"] == "11"


def test_after_a_gap_only_what_differs_is_told():
    told, _ = watch(
        pages=[
            a_page(a_job("same", 1), a_job("changed", 2), a_job("gone", 3), a_job("new", 4)),
            a_page(a_job("same", 1), a_job("changed", 22), a_job("new", 24, uid="another")),
        ],
        watches=[(GONE,)],
    )
    assert told[:4] == ["same 1", "changed 2", "gone 3", "new 4"]
    assert told[4:] == ["changed 22", "new gone", "new 24", "gone gone"]


def test_a_list_whose_next_page_is_no_longer_kept_begins_anew():
    told, asked = watch(
        pages=[
            a_page(a_job("a", 1), a_job("gone", 2), more="next"),
            EXPIRED,
            a_page(a_job("a", 1), more="next"),
            a_page(a_job("b", 3)),
        ],
        watches=[],
    )
    assert told == ["a 1", "gone 2", "b 3", "gone gone"]
    assert [each.get("continue") for each in asked[:4]] == [None, "next", None, "next"]
