"""All jobs in memory: status and lists are answered here and never ask the database.

A record is the row of a job and its JSON, encoded when first asked for and kept until the job changes. Indices are
arrays of job numbers, which grow with time: a page is a search by halves and a walk, as long with 100,000 jobs as with
100. It belongs to one event loop.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.service.feed import Feed, News, Subscription
from astrago_trainer.service.page_tokens import PageTokens, scope_of
from astrago_trainer.service.view import job_to_json
from astrago_trainer.store.jobs import Job

MOST_PER_PAGE = 500
MOST_LOOKED_AT = 5_000
"""Jobs that one page examines for a search; then it ends, short, with the token to go on."""

MOST_GONE = 10_000
"""Removed jobs that are remembered, for those who have read them a moment before."""
EVERYWHERE = ""
"""Stands for all namespaces."""


class Record:
    """A job as it was at one moment; it never changes."""

    __slots__ = ("_body", "job")

    def __init__(self, job: Job) -> None:
        self.job = job
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The answer of the API."""
        if self._body is None:
            self._body = job_to_json(self.job)
        return self._body

    @property
    def etag(self) -> str:
        return f'"{self.job.uid}.{self.job.version}"'


@dataclass(frozen=True, slots=True)
class Query:
    """Which jobs, all conditions together; an empty one is no condition."""

    phases: frozenset[str] = frozenset()
    owner: str = ""
    framework: str = ""
    text: str = ""
    """Part of the name, or of the owner's, in any case."""


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first."""

    records: tuple[Record, ...]
    next_token: str | None
    """None at the end; a page may be short and still have one."""


class Board:
    """The jobs of one database, and who wants to hear of changes."""

    def __init__(self, tokens: PageTokens | None = None) -> None:
        """Without `tokens` those of its pages are for this board alone."""
        self._tokens = tokens or PageTokens()
        self._records: dict[int, Record] = {}
        self._names: dict[str, dict[str, Record]] = {}
        self._indices: dict[tuple[str, ...], array[int]] = {}
        self._gone: dict[int, None] = {}
        """Numbers of jobs that were removed, the newest of them; a number never comes again."""
        self.feed = Feed()

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def load(self, jobs: Iterable[Job]) -> None:
        """Fills an empty board with compact jobs; nobody is told."""
        for job in jobs:
            self._add(Record(job))

    def put(self, job: Job) -> Record:
        """The job as it is now; an older version than the known one changes nothing, nor does a job that is gone."""
        if job.number in self._gone:
            return Record(job)  # read before it was removed
        known = self._records.get(job.number)
        if known is not None and known.job.version >= job.version:
            return known
        record = Record(compact(job))
        if known is None:
            self._add(record)
        else:
            self._records[job.number] = record
            self._names[job.namespace][job.name] = record
            if known.job.phase != job.phase:
                self._leave(_phase_keys(known.job), job.number)
                self._enter(_phase_keys(job), job.number)
        self.feed.tell(job.namespace, News("changed", record))
        return record

    def remove(self, number: int) -> None:
        """It is gone; removing what is not there is fine."""
        self._gone[number] = None
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        record = self._records.pop(number, None)
        if record is None:
            return
        job = record.job
        names = self._names[job.namespace]
        if names.get(job.name) is record:
            del names[job.name]
        self._leave((*_keys(job), *_phase_keys(job)), number)
        self.feed.tell(job.namespace, News("removed", record))

    def find(self, namespace: str, name: str) -> Record | None:
        return self._names.get(namespace, {}).get(name)

    def find_number(self, number: int) -> Record | None:
        return self._records.get(number)

    def has_code(self, namespace: str, name: str) -> bool:
        """Whether a job has its code under that name."""
        return (namespace, "code", name) in self._indices

    def counts(self, namespace: str = EVERYWHERE) -> dict[str, int]:
        """How many jobs are in each phase."""
        return {
            phase.value: len(index)
            for phase in Phase
            if (index := self._indices.get((namespace, "phase", phase.value)))
        }

    def unfinished(self, namespace: str) -> int:
        """How many jobs of a namespace have not ended; those being deleted count until they are gone."""
        counts = self.counts(namespace)
        return sum(count for phase, count in counts.items() if not is_terminal(Phase(phase)))

    def page(
        self,
        namespace: str = EVERYWHERE,
        query: Query | None = None,
        *,
        limit: int = 50,
        token: str | None = None,
    ) -> Page:
        """The newest jobs that fit, or those after the page that ended with `token`."""
        query = query or Query()
        scope = scope_of(namespace, query.phases, query.owner, query.framework, query.text)
        before = self._tokens.number(scope, token) if token else None
        limit = max(1, min(limit, MOST_PER_PAGE))
        found: list[Record] = []
        last, looked = 0, 0
        for number in self._candidates(namespace, query, before):
            if len(found) == limit or looked == MOST_LOOKED_AT:
                return Page(tuple(found), self._tokens.token(scope, last))
            record = self._records[number]
            last, looked = number, looked + 1
            if _fits(record.job, query):
                found.append(record)
        return Page(tuple(found), None)

    def subscribe(self, namespace: str = EVERYWHERE) -> Subscription:
        """Changes from now on."""
        return self.feed.subscribe(namespace)

    def _candidates(self, namespace: str, query: Query, before: int | None) -> Iterator[int]:
        """Numbers, falling, from the shortest index that holds all that fit."""
        choices: list[list[tuple[str, ...]]] = [[(namespace,)]]
        if query.phases:
            choices.append([(namespace, "phase", phase) for phase in sorted(query.phases)])
        if query.owner:
            choices.append([(namespace, "owner", query.owner)])
        if query.framework:
            choices.append([(namespace, "framework", query.framework)])
        indices = min(
            ([self._indices.get(key, _NONE) for key in keys] for keys in choices),
            key=lambda each: sum(map(len, each)),
        )
        falling = [_falling(index, before) for index in indices]
        return falling[0] if len(falling) == 1 else merge(*falling, reverse=True)

    def _add(self, record: Record) -> None:
        job = record.job
        self._records[job.number] = record
        self._names.setdefault(job.namespace, {})[job.name] = record
        self._enter((*_keys(job), *_phase_keys(job)), job.number)

    def _enter(self, keys: Iterable[tuple[str, ...]], number: int) -> None:
        for key in keys:
            index = self._indices.get(key)
            if index is None:
                index = self._indices[key] = array("q")
            if not index or index[-1] < number:
                index.append(number)
            else:
                index.insert(bisect_left(index, number), number)

    def _leave(self, keys: Iterable[tuple[str, ...]], number: int) -> None:
        for key in keys:
            index = self._indices[key]
            del index[bisect_left(index, number)]
            if not index:
                del self._indices[key]


_NONE = array("q")


def _keys(job: Job) -> Iterator[tuple[str, ...]]:
    for namespace in (EVERYWHERE, job.namespace):
        yield (namespace,)
        yield namespace, "owner", job.owner
        yield namespace, "framework", job.framework
    if job.code_name is not None:
        yield job.namespace, "code", job.code_name


def _phase_keys(job: Job) -> Iterator[tuple[str, ...]]:
    for namespace in (EVERYWHERE, job.namespace):
        yield namespace, "phase", job.phase


def _falling(index: array[int], before: int | None) -> Iterator[int]:
    place = len(index) if before is None else bisect_left(index, before)
    return (index[each] for each in range(place - 1, -1, -1))


def _fits(job: Job, query: Query) -> bool:
    text = query.text.lower()
    return (
        (not query.phases or job.phase in query.phases)
        and (not query.owner or job.owner == query.owner)
        and (not query.framework or job.framework == query.framework)
        and (not text or text in job.name or text in job.owner.lower())
    )


def compact(job: Job) -> Job:
    """The same job with one copy of each word that many jobs share: half the memory."""
    return job._replace(
        namespace=sys.intern(job.namespace),
        owner=sys.intern(job.owner),
        framework=sys.intern(job.framework),
        runtime=sys.intern(job.runtime),
        engine=sys.intern(job.engine),
        phase=sys.intern(str(job.phase)),
        reason=sys.intern(job.reason),
        message=sys.intern(job.message),
        code_name=None if job.code_name is None else sys.intern(job.code_name),
        server=None if job.server is None else sys.intern(job.server),
    )
