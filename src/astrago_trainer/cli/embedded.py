"""The service in this process, on the data folder: no server to start first.

A job that was handed over has a supervisor of its own and goes on when the command ends. What is wished here is done
before the door closes, because nobody else may be there to do it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from astrago_trainer import __version__, catalogue
from astrago_trainer.cli import job_logs
from astrago_trainer.client.errors import ClientError, Conflict, NotFound, Refused, Unavailable
from astrago_trainer.client.models import LogLine, LogQuery
from astrago_trainer.client.places import own_namespace, user_name
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.core.names import check_user_id
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.environments import images_here
from astrago_trainer.platform_file import platform_here
from astrago_trainer.server.explaining import event_view, explain, pod_view
from astrago_trainer.server.metric_view import Series, metrics_view, starts_of
from astrago_trainer.server.node_view import node_to_view
from astrago_trainer.server.settings import log_limits_here
from astrago_trainer.service import errors as service_errors
from astrago_trainer.service.board import EVERYWHERE, Query, Record
from astrago_trainer.service.identity import Identity, Role
from astrago_trainer.service.jobs import cloned
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from astrago_trainer.service.view import (
    invitation_to_view,
    job_to_view,
    tenant_to_view,
    time_to_text,
    token_to_view,
    user_to_view,
)
from astrago_trainer.store import StoreError
from astrago_trainer.store.jobs import Original

if TYPE_CHECKING:
    from astrago_trainer.cli.doors import News

Json = dict[str, Any]
T = TypeVar("T")

_BUSY_SECONDS = 30.0
"""How long a command waits for the database: longer than a server, whose callers can come back."""
_TICK_SECONDS = 1.0
_WAITING = 64
"""Batches between what is read and what is printed: a slow terminal slows the reading down, nothing is dropped."""
_PATIENCE_SECONDS = 5.0
"""For a look at jobs that run, before they are shown as they were known last."""
_END = object()


class Embedded:
    """See `doors.Door`."""

    def __init__(
        self, data: Path, database: str | None, *, namespace: str | None, flags: str
    ) -> None:
        if not os.environ.get("ASTRAGO_DEBUG"):
            # What the service logs is for a server's log; what concerns the user is in the answers.
            logging.getLogger("astrago_trainer").addHandler(logging.NullHandler())
        self.flags = flags
        self.where = str(data)
        self.namespace = namespace or own_namespace()
        self._actor = Identity(user_name(), is_administrator=True)
        self._service = Service(
            Settings(data=data, database=database, busy_seconds=_BUSY_SECONDS),
            LocalEngine(data, images=images_here(), log_limits=log_limits_here(os.environ)),
            platform=platform_here(runtimes=catalogue.names()),
        )
        self._touched: set[int] = set()
        self._runner = asyncio.Runner()
        try:
            self._run(self._service.open())
        except BaseException:
            self._runner.close()
            raise

    def close(self) -> None:
        try:
            self._runner.run(self._service.settled(self._touched))
        finally:
            self._runner.run(self._service.close())
            self._runner.close()

    # Who, and what is known.

    def whoami(self) -> Json:
        return {
            "name": self._actor.name,
            "is_administrator": True,
            "roles": {},
            "backend": [],
            "namespaces": self._service.access.usable_by(self._actor),
            "default_namespace": self.namespace,
            "authentication": "off",
            "engine": self._service.engine.name,
            "abilities": sorted(self._service.engine.abilities),
            "version": __version__,
            "sign_up": False,
        }

    def get(self, name: str) -> Json:
        return job_to_view(self._run(self._fresh(name)).job)

    def jobs(
        self, *, limit: int, token: str | None, phases: Sequence[str], text: str, everywhere: bool
    ) -> Json:
        async def page() -> Json:
            place = EVERYWHERE if everywhere else self.namespace
            query = Query(phases=frozenset(phases), text=text)
            await self._service.settled(self._moving(), patience=_PATIENCE_SECONDS)
            found = self._service.list(place, query, limit=limit, token=token)
            return {
                "items": [job_to_view(each.job) for each in found.records],
                "next_page_token": found.next_token,
            }

        return self._run(page())

    def pods(self, name: str) -> list[Json]:
        job = self._get(name).job
        return [pod_view(job, row) for row in self._run(self._service.pods(self.namespace, name))]

    def events(self, name: str) -> list[Json]:
        self.get(name)
        found = self._run(self._service.events(self.namespace, name))
        return [event_view(each) for each in found]

    def metrics(self, name: str, rank: str) -> Json:
        from astrago_trainer.cli.job_metrics import read_metrics

        job = self._run(self._fresh(name)).job
        known: Mapping[int, Series] = self._run(self._service.metrics(self.namespace, name))
        if known:
            attempts = self._run(self._service.attempts(self.namespace, name))
            return metrics_view(job.run, known, rank, starts=starts_of(attempts, job.run))
        # Nobody looked at its logs while it ran: they are read now.
        return metrics_view(job.run, read_metrics(job, self._folder(name)), rank)

    def explain(self, name: str) -> Json:
        job = self._run(self._fresh(name)).job
        service = self._service
        documents = self._run(service.manifest(self.namespace, name))
        return explain(
            job,
            self._run(service.pods(self.namespace, name)),
            self._run(service.attempts(self.namespace, name)),
            self._run(service.events(self.namespace, name)),
            service.shortfall(json.loads(documents.effective)[0]),
        )

    # Verbs.

    def submit(self, spec: Mapping[str, Any], original: Original | None = None) -> Json:
        parsed = self._translated(
            lambda: parse_job_spec({"user": self._actor.name, "namespace": self.namespace, **spec})
        )
        return self._wish(
            self._service.submit(self._actor, self.namespace, parsed, original=original)
        )

    def suspend(self, name: str) -> Json:
        return self._wish(self._service.suspend(self._actor, self.namespace, name))

    def resume(self, name: str) -> Json:
        return self._wish(self._service.resume(self._actor, self.namespace, name))

    def restart(self, name: str) -> Json:
        return self._wish(self._service.restart(self._actor, self.namespace, name))

    def delete(self, name: str, *, keep_code: bool) -> Json:
        return self._wish(
            self._service.delete(self._actor, self.namespace, name, keep_code=keep_code)
        )

    def clone(self, name: str, changes: Mapping[str, Any]) -> Json:
        original = self._run(self._service.original(self.namespace, name))
        return self.submit({**cloned(original), **changes}, original)

    # Logs and changes.

    def logs(self, name: str, query: LogQuery) -> Iterator[Sequence[LogLine]]:
        job = self._run(self._fresh(name)).job
        places = self._translated(
            lambda: job_logs.select(job, self._folder(name), query, attempts=(job.attempt,))
        )
        yield from job_logs.lines_now(places, query)

    def follow(self, name: str, query: LogQuery) -> Iterator[News]:
        return self._news(name, query)

    def watch(self, name: str) -> Iterator[Json | None]:
        for news in self._news(name, None):
            assert news is None or isinstance(news, dict)
            yield news

    # Nodes, tokens.

    def nodes(self) -> list[Json]:
        return [node_to_view(each, self._actor) for each in self._run(self._service.nodes())]

    def tokens(self) -> list[Json]:
        return [token_to_view(each) for each in self._service.access.tokens()]

    def create_token(self, user: str | None, label: str, days: float | None) -> Json:
        seconds = None if days is None else round(days * 86400)
        made = self._run(
            self._service.access.create_token(
                self._actor, user or self._actor.name, label, seconds=seconds
            )
        )
        return {"id": made.id, "secret": made.secret, "expires_at": time_to_text(made.expires_at)}

    def revoke_token(self, token: str) -> None:
        self._run(self._service.access.revoke_token(self._actor, token))

    # Tenants.

    def tenants(self) -> list[Json]:
        return [tenant_to_view(each) for each in self._service.access.tenants()]

    def create_tenant(self, namespace: str, title: str) -> Json:
        made = self._run(self._service.tenancy.create_tenant(self._actor, namespace, title))
        return tenant_to_view(made)

    def create_user(self, name: str) -> Json:
        if problems := check_user_id(name, path="name"):
            raise InvalidRequest(problems)
        made = self._run(self._service.access.create_user(self._actor, name))
        return {"name": made.name, "is_administrator": made.is_administrator}

    def users(self) -> list[Json]:
        return [user_to_view(*each) for each in self._service.access.users()]

    def change_user(self, name: str, action: str) -> None:
        access, actor = self._service.access, self._actor
        if action == "revoke":
            self._run(access.revoke_all(actor, name))
        elif action == "delete":
            self._run(access.delete_user(actor, name))
        else:
            self._run(access.set_disabled(actor, name, is_disabled=action == "disable"))

    def set_backend(self, name: str, namespaces: Sequence[str]) -> Json:
        made = self._run(self._service.access.set_backend(self._actor, name, namespaces))
        return {"name": made.name, "namespaces": list(made.backend)}

    def remove_backend(self, name: str) -> None:
        self._run(self._service.access.remove_backend(self._actor, name))

    def members(self, namespace: str) -> list[Json]:
        found = self._translated(lambda: self._service.access.members(namespace))
        return [each._asdict() for each in found]

    def set_member(self, namespace: str, user: str, role: str) -> Json:
        access = self._service.access
        self._run(access.set_member(self._actor, namespace, user, Role(role)))
        return {"namespace": namespace, "user": user, "role": role}

    def remove_member(self, namespace: str, user: str) -> None:
        self._run(self._service.access.remove_member(self._actor, namespace, user))

    def leave(self, namespace: str) -> None:
        self._run(self._service.access.leave(self._actor, namespace))

    def invitations(self, namespace: str | None) -> list[Json]:
        access = self._service.access
        if namespace is None:
            found = access.invitations_of(self._actor.name)
        else:
            found = self._translated(lambda: access.invitations(namespace))
        return [invitation_to_view(each) for each in found]

    def invite(self, namespace: str, user: str, role: str) -> Json:
        access = self._service.access
        return invitation_to_view(
            self._run(access.invite(self._actor, namespace, user, Role(role)))
        )

    def withdraw(self, namespace: str, user: str) -> None:
        self._run(self._service.access.withdraw(self._actor, namespace, user))

    def accept(self, namespace: str) -> Json:
        return self._run(self._service.access.accept(self._actor, namespace))._asdict()

    def decline(self, namespace: str) -> None:
        self._run(self._service.access.decline(self._actor, namespace))

    # Hands.

    def _get(self, name: str) -> Record:
        return self._translated(lambda: self._service.get(self.namespace, name))

    def _folder(self, name: str) -> Path:
        return self._translated(lambda: self._service.logs(self.namespace, name))

    def _wish(self, verb: Coroutine[Any, Any, Record]) -> Json:
        record = self._run(verb)
        self._touched.add(record.job.number)
        return job_to_view(record.job)

    async def _fresh(self, name: str) -> Record:
        """The job after a look at it: nobody may have looked since the last command."""
        record = self._service.get(self.namespace, name)
        await self._service.settled([record.job.number], patience=_PATIENCE_SECONDS)
        return self._service.get(self.namespace, name)

    def _moving(self) -> Iterator[int]:
        """Jobs that may stand elsewhere by now than the database has them; one that ends may take its time."""
        for record in self._service.board:
            if not (record.job.is_deleting or is_terminal(Phase(record.job.phase))):
                yield record.job.number

    def _news(self, name: str, query: LogQuery | None) -> Iterator[News]:
        queue: asyncio.Queue[Any] = asyncio.Queue(_WAITING)
        pump = self._run(_begun(self._pump(name, query, queue)))
        try:
            while (item := self._run(_next(queue))) is not _END:
                yield item
            self._run(pump)  # raises what it ended with
        finally:
            pump.cancel()
            self._run(asyncio.wait([pump]))

    async def _pump(self, name: str, query: LogQuery | None, queue: asyncio.Queue[Any]) -> None:
        try:
            await self._feed(name, query, queue)
        finally:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():  # else nobody reads any more
                await queue.put(_END)

    async def _feed(self, name: str, query: LogQuery | None, queue: asyncio.Queue[Any]) -> None:
        """The job and its lines into the queue, each time something is new, to its end."""
        lines: job_logs.Following | None = None
        run = first = -1
        try:
            with self._service.subscribe(self.namespace) as news:
                while True:
                    record = self._service.get(self.namespace, name)
                    job = record.job
                    await queue.put(job_to_view(job))
                    if query is not None:
                        if job.run != run:
                            await _end(lines)
                            run, first = job.run, job.attempt
                            lines = job_logs.Following(query, queue)
                        assert lines is not None
                        folder = self._service.logs(self.namespace, name)
                        attempts = range(first, job.attempt + 1)
                        await lines.look(job_logs.select(job, folder, query, attempts=attempts))
                    if is_terminal(Phase(job.phase)) and job.wanted_run == job.run:
                        await _end(lines)
                        return
                    while self._service.get(self.namespace, name) is record:
                        await anext(news)
        finally:
            if lines is not None:
                await lines.close()

    def _run(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        with _translation():
            return self._runner.run(awaited())

    def _translated(self, work: Callable[[], T]) -> T:
        with _translation():
            return work()


async def _begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.create_task(work)


async def _next(queue: asyncio.Queue[Any]) -> Any:
    """None when a second has passed without any."""
    try:
        async with asyncio.timeout(_TICK_SECONDS):
            return await queue.get()
    except TimeoutError:
        return None


async def _end(lines: job_logs.Following | None) -> None:
    """Everything was written: returns when it was read."""
    if lines is not None:
        await lines.finish()
        await lines.close()


@contextmanager
def _translation() -> Iterator[None]:
    """The service's errors as the client has them."""
    try:
        yield
    except ClientError:
        raise
    except InvalidRequest as error:
        raise Refused(error.problems) from error
    except service_errors.NotFound as error:
        raise NotFound(str(error)) from error
    except (service_errors.Conflict, service_errors.Unsupported) as error:
        raise Conflict(str(error)) from error
    except StoreError as error:
        raise Unavailable(str(error)) from error
