"""`AsyncTrainerClient`: the same as `TrainerClient`, for event loops; needs httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from json import loads
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import httpx

from astrago_trainer import __version__
from astrago_trainer.client import answers, calls
from astrago_trainer.client.calls import Call
from astrago_trainer.client.errors import Unavailable
from astrago_trainer.client.models import Event, Job, Json, LogLine, LogQuery, Point, job_from_view
from astrago_trainer.client.places import find_place, namespace_of
from astrago_trainer.client.requests import request, script_request
from astrago_trainer.client.searching import search_async, searches
from astrago_trainer.client.session import (
    ANSWER_SECONDS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE_SECONDS,
    STREAM_SECONDS,
    lost,
)
from astrago_trainer.client.sse import Parser, ServerEvent


class AsyncTrainerClient:
    """A server, seen from a namespace; see `TrainerClient`, whose methods these are.

    async with AsyncTrainerClient("http://127.0.0.1:8000") as client:
        job = await client.run("train.py", nodes=2)
        async for line in client.logs(job.name, follow=True):
            print(line.rank, line.text)
        assert (await client.wait(job.name)).has_succeeded
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        namespace: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport` is for those who have the server in the same process."""
        place = find_place(url, token, namespace)
        self._namespace = place.namespace
        self._url = place.url
        headers = {"User-Agent": f"astrago/{__version__}"}
        if place.token:
            headers["Authorization"] = f"Bearer {place.token}"
        self._http = httpx.AsyncClient(
            base_url=place.url, headers=headers, timeout=timeout_seconds, transport=transport
        )

    async def __aenter__(self) -> AsyncTrainerClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def namespace(self) -> str:
        """Where jobs are looked for; asked from the server once when it was not given."""
        if self._namespace is None:
            self._namespace = namespace_of(await self.whoami())
        return self._namespace

    async def whoami(self) -> Json:
        found: Json = await self._call(calls.whoami())
        return found

    async def submit(
        self,
        spec: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Job:
        body = request(spec, fields)
        return await self._job(calls.submit(await self.namespace(), body, idempotency_key))

    async def run(self, file: str | Path, *arguments: str, **fields: Any) -> Job:
        body = await asyncio.to_thread(script_request, file, arguments, fields)
        return await self._job(calls.submit(await self.namespace(), body))

    async def preview(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Json:
        found: Json = await self._call(calls.preview(await self.namespace(), request(spec, fields)))
        return found

    async def clone(
        self, name: str, /, *, idempotency_key: str | None = None, **changes: Any
    ) -> Job:
        return await self._job(calls.clone(await self.namespace(), name, changes, idempotency_key))

    async def get(self, name: str) -> Job:
        return await self._job(calls.job(await self.namespace(), name))

    async def list(self, *, phase: str | Sequence[str] = (), text: str = "") -> AsyncIterator[Job]:
        phases = (phase,) if isinstance(phase, str) else tuple(phase)
        token: str | None = None
        while True:
            page = await self._call(
                calls.jobs(await self.namespace(), phases=phases, text=text, token=token)
            )
            for view in page["items"]:
                yield job_from_view(view)
            token = page["next_page_token"]
            if token is None:
                return

    async def events(self, name: str) -> Sequence[Event]:
        found: Sequence[Event] = ()
        after: int | None = None
        while True:
            page = await self._call(calls.part(await self.namespace(), name, "events", after=after))
            found = [*found, *map(answers.event_of, page["items"])]
            after = page.get("next_after")
            if after is None:
                return found

    async def metrics(
        self, name: str, *, rank: int | Literal["mean"] = 0
    ) -> Mapping[str, Sequence[Point]]:
        namespace = await self.namespace()
        return answers.metrics_of(
            await self._call(calls.part(namespace, name, "metrics", rank=rank or None))
        )

    async def pods(self, name: str) -> Sequence[Json]:
        found: Json = await self._call(calls.part(await self.namespace(), name, "pods"))
        items: Sequence[Json] = found["items"]
        return items

    async def explain(self, name: str) -> Json:
        found: Json = await self._call(calls.part(await self.namespace(), name, "explain"))
        return found

    async def logs(
        self,
        name: str,
        *,
        follow: bool = False,
        rank: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
    ) -> AsyncIterator[LogLine]:
        query = LogQuery(rank, attempt, tail, grep)
        namespace = await self.namespace()
        if grep and not follow:
            job = await self.get(name)
            every = searches(namespace, name, query, nodes=job.nodes, framework=job.framework)
            async for line in search_async(every, self._lines):
                yield line
            return
        matches = query.matcher()
        call = calls.logs(namespace, name, query, follow=follow)
        async for text in self._event_data(call) if follow else self._lines(call):
            line = answers.line_of(loads(text))
            if matches(line.text):
                yield line

    async def watch(self, name: str) -> AsyncIterator[Job]:
        async for event in self._events(calls.stream(await self.namespace())):
            if event.name in ("ready", "resync"):
                job = await self.get(name)
            elif (found := answers.news_of(name, event)) is not None:
                job = found
            else:
                continue
            yield job
            if job.is_over:
                return

    async def wait(self, name: str, *, timeout_seconds: float | None = None) -> Job:
        try:
            async with asyncio.timeout(timeout_seconds):
                async for job in self.watch(name):
                    last = job
                return last
        except TimeoutError:
            raise Unavailable(answers.not_over(name, timeout_seconds)) from None

    async def suspend(self, name: str) -> Job:
        return await self._job(calls.act(await self.namespace(), name, "suspend"))

    async def resume(self, name: str) -> Job:
        return await self._job(calls.act(await self.namespace(), name, "resume"))

    async def restart(self, name: str) -> Job:
        return await self._job(calls.act(await self.namespace(), name, "restart"))

    async def delete(self, name: str, *, uid: str | None = None, keep_code: bool = False) -> Job:
        return await self._job(
            calls.delete(await self.namespace(), name, uid=uid, keep_code=keep_code)
        )

    async def _job(self, call: Call) -> Job:
        return job_from_view(await self._call(call))

    async def _call(self, call: Call) -> Any:
        try:
            answer = await self._http.request(
                call.method, call.path, json=call.body, headers=call.headers
            )
        except httpx.HTTPError as error:
            raise lost(self._url, call, error) from error
        return answers.value_of(answer.status_code, answer.content, self._url)

    async def _lines(self, call: Call) -> AsyncIterator[bytes]:
        try:
            async with self._http.stream(call.method, call.path) as answer:
                if answer.status_code != 200:
                    raise answers.error_of(answer.status_code, await answer.aread(), self._url)
                rest = b""
                async for block in answer.aiter_bytes():
                    *whole, rest = (rest + block).split(b"\n")
                    for line in whole:
                        yield line
                if rest:
                    yield rest
        except httpx.HTTPError as error:
            raise lost(self._url, call, error) from error

    async def _event_data(self, call: Call) -> AsyncIterator[bytes]:
        async for event in self._events(call):
            if event.name == "end":
                return
            yield event.data.encode()

    async def _events(self, call: Call) -> AsyncIterator[ServerEvent]:
        """As `Session.events`: comes back where it was, and never ends by itself."""
        parser = Parser()
        clock = asyncio.get_running_loop().time
        pause, silent_since = FIRST_PAUSE, clock()
        while True:
            headers = {"Last-Event-ID": parser.last_id} if parser.last_id else {}
            try:
                async with self._http.stream(
                    call.method, call.path, headers=headers, timeout=STREAM_SECONDS
                ) as answer:
                    if answer.status_code != 200:
                        raise answers.error_of(answer.status_code, await answer.aread(), self._url)
                    async for block in answer.aiter_bytes():
                        pause, silent_since = FIRST_PAUSE, clock()
                        for event in parser.feed(block):
                            yield event
            except (httpx.HTTPError, Unavailable) as error:
                if clock() - silent_since > PATIENCE_SECONDS:
                    raise lost(self._url, call, error) from error
            parser.restart()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
