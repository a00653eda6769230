"""A server, as commands see it. Standard library only, so that a command ends before it would be noticed."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from astrago_trainer.client import calls
from astrago_trainer.client.answers import line_of
from astrago_trainer.client.errors import NotFound
from astrago_trainer.client.models import ENDED, LogLine, LogQuery
from astrago_trainer.client.places import Place, namespace_of, user_name
from astrago_trainer.client.searching import search, searches
from astrago_trainer.client.session import Session

if TYPE_CHECKING:
    from astrago_trainer.cli.doors import News

Json = dict[str, Any]

_TICK_SECONDS = 1.0
_WAITING = 1000
_END = object()


class Remote:
    """See `doors.Door`."""

    def __init__(self, place: Place, *, flags: str) -> None:
        self._session = Session(place.url, place.token)
        self._namespace = place.namespace
        self.flags = flags
        self.where = self._session.url

    @property
    def namespace(self) -> str:
        if self._namespace is None:
            self._namespace = namespace_of(self.whoami())
        return self._namespace

    def whoami(self) -> Json:
        return self._call(calls.whoami())

    def submit(self, spec: Mapping[str, Any]) -> Json:
        return self._call(calls.submit(self.namespace, self._with_user(spec)))

    def get(self, name: str) -> Json:
        return self._call(calls.job(self.namespace, name))

    def jobs(
        self, *, limit: int, token: str | None, phases: Sequence[str], text: str, everywhere: bool
    ) -> Json:
        place = "-" if everywhere else self.namespace
        return self._call(
            calls.jobs(place, phases=tuple(phases), text=text, limit=limit, token=token)
        )

    def pods(self, name: str) -> list[Json]:
        return self._items(calls.part(self.namespace, name, "pods"))

    def events(self, name: str) -> list[Json]:
        found: list[Json] = []
        after: int | None = None
        while True:
            page = self._call(calls.part(self.namespace, name, "events", after=after))
            found += page["items"]
            after = page.get("next_after")
            if after is None:
                return found

    def metrics(self, name: str, rank: str) -> Json:
        return self._call(calls.part(self.namespace, name, "metrics", rank=rank))

    def explain(self, name: str) -> Json:
        return self._call(calls.part(self.namespace, name, "explain"))

    def suspend(self, name: str) -> Json:
        return self._call(calls.act(self.namespace, name, "suspend"))

    def resume(self, name: str) -> Json:
        return self._call(calls.act(self.namespace, name, "resume"))

    def restart(self, name: str) -> Json:
        return self._call(calls.act(self.namespace, name, "restart"))

    def clone(self, name: str, changes: Mapping[str, Any]) -> Json:
        return self._call(calls.clone(self.namespace, name, changes))

    def delete(self, name: str, *, keep_code: bool) -> Json:
        return self._call(calls.delete(self.namespace, name, keep_code=keep_code))

    def logs(self, name: str, query: LogQuery) -> Iterator[Sequence[LogLine]]:
        if query.grep:
            job = self.get(name)
            places = {"nodes": job["nodes"], "framework": job["framework"]}
            every = searches(self.namespace, name, query, **places)
            return query.batches(search(every, self._session.lines))
        texts = self._session.lines(calls.logs(self.namespace, name, query))
        return query.batches(line_of(json.loads(text)) for text in texts)

    def watch(self, name: str) -> Iterator[Json | None]:
        for item in _together([lambda: self._changes(name)]):
            assert item is None or isinstance(item, dict)
            yield item

    def follow(self, name: str, query: LogQuery) -> Iterator[News]:
        """Two streams at once; the lines end when the job does, so their end is the end of all."""
        yield self.get(name)
        yield from _together([lambda: self._lines(name, query), lambda: self._changes(name)])

    def nodes(self) -> list[Json]:
        return self._items(calls.nodes())

    def tokens(self) -> list[Json]:
        return self._items(calls.tokens())

    def create_token(self, user: str | None, label: str, days: float | None) -> Json:
        return self._call(
            calls.create_token(user, label, None if days is None else round(days * 86400))
        )

    def revoke_token(self, token: str) -> None:
        self._session.call(calls.revoke_token(token))

    def tenants(self) -> list[Json]:
        return self._items(calls.tenants())

    def create_tenant(self, namespace: str, title: str) -> Json:
        return self._call(calls.create_tenant(namespace, title))

    def create_user(self, name: str) -> Json:
        return self._call(calls.create_user(name))

    def users(self) -> list[Json]:
        return self._items(calls.users())

    def change_user(self, name: str, action: str) -> None:
        self._session.call(calls.change_user(name, action))

    def set_backend(self, name: str, namespaces: Sequence[str]) -> Json:
        return self._call(calls.set_backend(name, namespaces))

    def remove_backend(self, name: str) -> None:
        self._session.call(calls.remove_backend(name))

    def members(self, namespace: str) -> list[Json]:
        return self._items(calls.members(namespace))

    def set_member(self, namespace: str, user: str, role: str) -> Json:
        return self._call(calls.set_member(namespace, user, role))

    def remove_member(self, namespace: str, user: str) -> None:
        self._session.call(calls.remove_member(namespace, user))

    def leave(self, namespace: str) -> None:
        self._session.call(calls.leave(namespace))

    def invitations(self, namespace: str | None) -> list[Json]:
        return self._items(calls.invitations(namespace))

    def invite(self, namespace: str, user: str, role: str) -> Json:
        return self._call(calls.invite(namespace, user, role))

    def withdraw(self, namespace: str, user: str) -> None:
        self._session.call(calls.withdraw(namespace, user))

    def accept(self, namespace: str) -> Json:
        return self._call(calls.answer_invitation(namespace, "accept"))

    def decline(self, namespace: str) -> None:
        self._session.call(calls.answer_invitation(namespace, "decline"))

    def close(self) -> None:
        """Nothing is held."""

    def _changes(self, name: str) -> Iterator[Json]:
        for event in self._session.events(calls.stream(self.namespace)):
            if event.name in ("ready", "resync"):
                job = self.get(name)
            elif event.name not in ("changed", "removed"):
                continue
            else:
                job = json.loads(event.data)
                if job["name"] != name:
                    continue
                if event.name == "removed":
                    raise NotFound(f"the job {name!r} was deleted.")
            yield job
            if job["phase"] in ENDED:
                return

    def _lines(self, name: str, query: LogQuery) -> Iterator[list[LogLine]]:
        matches = query.matcher()
        for event in self._session.events(calls.logs(self.namespace, name, query, follow=True)):
            if event.name == "end":
                return
            line = line_of(json.loads(event.data))
            if matches(line.text):
                yield [line]

    def _with_user(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Who submits is known to a server that asks for tokens; to one that does not, it is told."""
        if "user" in spec or self.whoami()["authentication"] != "off":
            return spec
        return {"user": user_name(), **spec}

    def _call(self, call: calls.Call) -> Json:
        found: Json = self._session.call(call)
        return found

    def _items(self, call: calls.Call) -> list[Json]:
        found: list[Json] = self._call(call)["items"]
        return found


def _together(streams: Sequence[Callable[[], Iterator[Any]]]) -> Iterator[Any]:
    """Several streams as one, with None for each second without news; ends when all have ended.

    Each is read by a thread of its own, which waits for the network alone and dies with the command.
    """
    news: queue.Queue[Any] = queue.Queue(_WAITING)

    def read(stream: Callable[[], Iterator[Any]]) -> None:
        try:
            for item in stream():
                news.put(item)
            news.put(_END)
        except BaseException as error:
            news.put(error)

    for stream in streams:
        threading.Thread(target=read, args=(stream,), daemon=True).start()
    left = len(streams)
    while left:
        try:
            item = news.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            yield None
            continue
        if isinstance(item, BaseException):
            raise item
        if item is _END:
            left -= 1
        else:
            yield item
