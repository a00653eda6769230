"""A copy of the objects of one kind, kept true by watching: listed once, then only changes come.

Goes on after every cut from where it was (bookmarks keep that place fresh on quiet days); when the server no longer has
that place (410) it lists anew and tells of what has come, changed and gone meanwhile. Never gives up: while the server
is away the copy stays as it was.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Generic, Protocol, TypeVar

import msgspec

from astrago_trainer.engines.base import EngineError
from astrago_trainer.engines.kubernetes.client import (
    Busy,
    Client,
    Expired,
    Forbidden,
    Status,
    problem,
)
from astrago_trainer.engines.kubernetes.objects import Meta
from astrago_trainer.engines.kubernetes.resources import Resource

PAGE = 200
"""Objects of one answer while listing: bounds memory, costs a call per page."""
WATCH_SECONDS = 300, 600
"""The server ends a watch after such a time, so that a moved endpoint is noticed; not all of them at once."""
SILENCE_SECONDS = 90.0
"""A bookmark comes every minute; a longer silence is a dead line, which TCP alone would not notice for hours."""
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0
_FORBIDDEN_SECONDS = 60.0
"""A role that is bound later is noticed after this time."""
_POLL_SECONDS = 2.0
"""Between two lists, where the role of M33 alone lets us list pods and not watch them."""

_log = logging.getLogger(__name__)


class _HasMeta(Protocol):
    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=_HasMeta)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    items: list[T]
    metadata: _ListMeta


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _ListMeta


class Watched(Generic[T]):
    """The objects of one kind, in one namespace or all."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        tell: Callable[[T, bool], None],
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        is_kept: bool = True,
        is_needed: bool = True,
    ) -> None:
        """`tell` is called with each object that came or changed, and with True when it is gone.

        Without `is_kept` no copy is held: after a gap everything is told again, and what went is not (for events,
        which only ever come). Nobody waits for what is not `is_needed` where the server's role does not allow it.
        """
        self._client = client
        self._path = resource.path(namespace)
        given = {"labelSelector": selector, "fieldSelector": fields}
        self._query = {name: value for name, value in given.items() if value}
        self._is_needed = is_needed
        self._tell = tell
        self.kind = kind
        self._is_kept = is_kept
        self._objects: dict[tuple[str, str], T] = {}
        self._version = ""
        self._pages = msgspec.json.Decoder(_Page[kind])  # type: ignore[valid-type]
        self._decoder = msgspec.json.Decoder(kind)
        self.is_listed = asyncio.Event()
        self.trouble = ""
        """Why it is not up to date; empty while it is."""
        self._told = ""
        """The last trouble, which is told once."""

    @property
    def objects(self) -> Collection[T]:
        """As they are now."""
        return self._objects.values()

    def find(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get((namespace, name))

    async def run(self) -> None:
        """For ever."""
        delay = _FIRST_DELAY
        while True:
            began = time.monotonic()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                # Somebody in between may cut every watch at once: that must not become a storm of requests.
                delay = _FIRST_DELAY if time.monotonic() - began > 1.0 else delay
                pause = 0.0 if time.monotonic() - began > 1.0 else delay
            except Expired:
                self._version = ""
                pause = _FIRST_DELAY
            except EngineError as error:
                if str(error) != self._told:
                    _log.warning("%s is not up to date: %s", self._path, error)
                self.trouble = self._told = str(error)
                asked = error.after if isinstance(error, Busy) else 0.0
                if isinstance(error, Forbidden) and self._version:
                    self._version = ""  # may be listed and not watched: looked at again and again
                    delay, asked = _FIRST_DELAY, _POLL_SECONDS
                elif isinstance(error, Forbidden) and not self._is_needed:
                    self.is_listed.set()  # empty, and nobody waits for it
                    asked = _FORBIDDEN_SECONDS
                delay = min(delay * 2, _LONGEST_DELAY)
                pause = max(delay, asked)
            except Exception:
                # A mistake of ours, or an object of a shape that nobody has seen: listed anew, and never silent.
                _log.exception("%s cannot be followed", self._path)
                self._version, self.trouble = "", "see the log of this server"
                delay = min(delay * 2, _LONGEST_DELAY)
                pause = delay
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 - spreads load

    async def _list(self) -> None:
        """Tells only what differs from what is known."""
        known = dict(self._objects)
        continued = ""
        while True:
            query = {**self._query, "limit": str(PAGE)}
            if continued:
                query["continue"] = continued
            page: _Page[T] = self._pages.decode(await self._client.read(self._path, **query))
            for each in page.items:
                before = known.pop(_key(each), None)
                if before is not None and before.metadata.uid != each.metadata.uid:
                    self._forget(before)
                    before = None
                if (
                    before is None
                    or before.metadata.resource_version != each.metadata.resource_version
                ):
                    self._keep(each)
            continued = page.metadata.continue_
            if not continued:
                break
        for gone in known.values():
            self._forget(gone)
        self._version = page.metadata.resource_version
        self._is_up_to_date(for_good=False)
        self.is_listed.set()

    async def _watch(self) -> None:
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 - spreads load
        }
        async with self._client.stream(self._path, query, silence=SILENCE_SECONDS) as response:
            self._is_up_to_date()
            async for line in _lines(response.aiter_bytes()):
                self._take(line)

    def _take(self, line: bytes) -> None:
        change = msgspec.json.decode(line, type=_Change)
        if change.type == "ERROR":
            raise problem(msgspec.json.decode(change.object, type=Status))
        if change.type == "BOOKMARK":
            self._version = msgspec.json.decode(
                change.object, type=_Bookmark
            ).metadata.resource_version
            return
        item = self._decoder.decode(change.object)
        if change.type == "DELETED":
            self._forget(item)
        else:
            self._keep(item)
        self._version = item.metadata.resource_version

    def _keep(self, item: T) -> None:
        if self._is_kept:
            self._objects[_key(item)] = item
        self._tell(item, False)

    def _forget(self, item: T) -> None:
        self._objects.pop(_key(item), None)
        self._tell(item, True)

    def _is_up_to_date(self, *, for_good: bool = True) -> None:
        """Not for good after a list: only a watch that follows it shows that this lasts."""
        if for_good and self._told:
            _log.info("%s is up to date again", self._path)
            self._told = ""
        self.trouble = ""


def _key(item: _HasMeta) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines; a last one without end was cut off, and comes again with the next watch."""
    rest: list[bytes] = []
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        rest.append(first)
        for each in more:
            if line := b"".join(rest):
                yield line
            rest = [each]
