"""`TrainerClient`: everything a user does with jobs, for scripts and notebooks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from json import loads
from pathlib import Path
from typing import Any, Literal

from astrago_trainer.client import calls
from astrago_trainer.client.answers import event_of, line_of, metrics_of, news_of, not_over
from astrago_trainer.client.errors import Unavailable
from astrago_trainer.client.models import Event, Job, Json, LogLine, LogQuery, Point, job_from_view
from astrago_trainer.client.places import find_place, namespace_of
from astrago_trainer.client.requests import request, script_request
from astrago_trainer.client.searching import search, searches
from astrago_trainer.client.session import ANSWER_SECONDS, Session, TimeOver
from astrago_trainer.client.sse import ServerEvent


class TrainerClient:
    """A server, seen from a namespace.

        client = TrainerClient("http://127.0.0.1:8000")
        job = client.run("train.py", nodes=2, max_restarts=1)
        for line in client.logs(job.name, follow=True):
            print(line.rank, line.text)
        assert client.wait(job.name).has_succeeded

    Without arguments the server is that of ASTRAGO_SERVER and ASTRAGO_TOKEN, else that of `astrago login`. Without a
    namespace it is ASTRAGO_NAMESPACE, else the caller's only one. Every method raises `ClientError`, whose kinds say
    what to do next (`astrago_trainer.client.errors`). It holds no connection and may be shared between threads.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        namespace: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        place = find_place(url, token, namespace)
        self._session = Session(place.url, place.token, timeout_seconds=timeout_seconds)
        self._namespace = place.namespace

    @property
    def namespace(self) -> str:
        """Where jobs are looked for; asked from the server once when it was not given."""
        if self._namespace is None:
            self._namespace = namespace_of(self.whoami())
        return self._namespace

    def whoami(self) -> Json:
        """Who the server takes you for: name, roles by namespace, engine, version."""
        found: Json = self._session.call(calls.whoami())
        return found

    # Beginning a job.

    def submit(
        self,
        spec: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Job:
        """Accepts a job and returns at once; it is durable then, and will run.

        `spec` is a `JobSpec` or a mapping with its fields; keyword arguments replace single fields:
        `submit(framework="pytorch", nodes=2, code={"inline": text})`. With `idempotency_key` it is safe to repeat:
        the same key with the same request is the same job. Raises `Refused` with all that is wrong with the
        request, `Conflict` when the name is taken.
        """
        body = request(spec, fields)
        return self._job(calls.submit(self.namespace, body, idempotency_key))

    def run(self, file: str | Path, *arguments: str, **fields: Any) -> Job:
        """Submits a local script: `run("train.py", "--epochs", "3", nodes=2)`; see `submit` for the fields."""
        body = script_request(file, arguments, fields)
        return self._job(calls.submit(self.namespace, body))

    def preview(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Json:
        """What `submit` would lead to, with every problem and the origin of every line; nothing is stored."""
        found: Json = self._session.call(calls.preview(self.namespace, request(spec, fields)))
        return found

    def clone(self, name: str, /, *, idempotency_key: str | None = None, **changes: Any) -> Job:
        """A new job of the same request; `changes` replace fields: `clone("a", nodes=4)`."""
        return self._job(calls.clone(self.namespace, name, changes, idempotency_key))

    # Looking at jobs.

    def get(self, name: str) -> Job:
        """The job as it is now; raises `NotFound`."""
        return self._job(calls.job(self.namespace, name))

    def list(self, *, phase: str | Sequence[str] = (), text: str = "") -> Iterator[Job]:
        """All jobs, newest first, page by page as you go on; `phase` and `text` (part of the name) choose."""
        phases = (phase,) if isinstance(phase, str) else tuple(phase)
        token: str | None = None
        while True:
            page = self._session.call(
                calls.jobs(self.namespace, phases=phases, text=text, token=token)
            )
            yield from map(job_from_view, page["items"])
            token = page["next_page_token"]
            if token is None:
                return

    def events(self, name: str) -> Sequence[Event]:
        """What happened to the job, oldest first."""
        found: Sequence[Event] = ()
        after: int | None = None
        while True:
            page = self._session.call(calls.part(self.namespace, name, "events", after=after))
            found = [*found, *map(event_of, page["items"])]
            after = page.get("next_after")
            if after is None:
                return found

    def metrics(
        self, name: str, *, rank: int | Literal["mean"] = 0
    ) -> Mapping[str, Sequence[Point]]:
        """Series of numbers by name: `metrics("a")["loss"][-1].value`; of one rank, or the mean of all by step."""
        return metrics_of(
            self._session.call(calls.part(self.namespace, name, "metrics", rank=rank or None))
        )

    def pods(self, name: str) -> Sequence[Json]:
        found: Sequence[Json] = self._session.call(calls.part(self.namespace, name, "pods"))[
            "items"
        ]
        return found

    def explain(self, name: str) -> Json:
        """Why it is in its phase, and what to do about it."""
        found: Json = self._session.call(calls.part(self.namespace, name, "explain"))
        return found

    def logs(
        self,
        name: str,
        *,
        follow: bool = False,
        rank: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
    ) -> Iterator[LogLine]:
        """The lines of all ranks, or of one; with `follow` also what comes, until the job is over.

        A lost connection is taken up where it was: no line comes twice, none is lost. A line that is still being
        written (a progress bar) comes with `is_ended` False and again, with the same offset, when it has changed.
        """
        query = LogQuery(rank, attempt, tail, grep)
        if grep and not follow:
            job = self.get(name)
            every = searches(self.namespace, name, query, nodes=job.nodes, framework=job.framework)
            yield from search(every, self._session.lines)
            return
        matches = query.matcher()
        call = calls.logs(self.namespace, name, query, follow=follow)
        for text in _until_end(self._session.events(call)) if follow else self._session.lines(call):
            line = line_of(loads(text))
            if matches(line.text):
                yield line

    def watch(self, name: str, *, timeout_seconds: float | None = None) -> Iterator[Job]:
        """The job as it is, and each time it changes; ends when it has ended.

        Raises `NotFound` when it is deleted, and `Unavailable` when the time is over before.
        """
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        try:
            for event in self._session.events(calls.stream(self.namespace), until=until):
                if (job := self._news_of(name, event)) is not None:
                    yield job
                    if job.is_over:
                        return
        except TimeOver:
            raise Unavailable(not_over(name, timeout_seconds)) from None

    def wait(self, name: str, *, timeout_seconds: float | None = None) -> Job:
        """Returns when the job has ended, however it ended; raises as `watch` does."""
        *_, last = self.watch(name, timeout_seconds=timeout_seconds)
        return last

    # Changing jobs.

    def suspend(self, name: str) -> Job:
        """Its processes end, the job stays; returns when the wish is stored."""
        return self._job(calls.act(self.namespace, name, "suspend"))

    def resume(self, name: str) -> Job:
        return self._job(calls.act(self.namespace, name, "resume"))

    def restart(self, name: str) -> Job:
        """A new run of the same request from the beginning; what runs is stopped first."""
        return self._job(calls.act(self.namespace, name, "restart"))

    def delete(self, name: str, *, uid: str | None = None, keep_code: bool = False) -> Job:
        """Stops it and removes it with its logs; it is gone when `get` raises `NotFound`.

        With `uid` only that very job: `Conflict` when the name means another one by now.
        """
        return self._job(calls.delete(self.namespace, name, uid=uid, keep_code=keep_code))

    def _news_of(self, name: str, event: ServerEvent) -> Job | None:
        return self.get(name) if event.name in ("ready", "resync") else news_of(name, event)

    def _job(self, call: calls.Call) -> Job:
        return job_from_view(self._session.call(call))


def _until_end(events: Iterator[ServerEvent]) -> Iterator[str]:
    for event in events:
        if event.name == "end":
            return
        yield event.data
