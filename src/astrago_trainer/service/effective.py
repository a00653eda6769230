"""What an engine is given for a job, read from the store; the last ones are kept."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from astrago_trainer.core.render.reporting import token_secret, wants_token
from astrago_trainer.engines.base import Effective, Handle
from astrago_trainer.service.job_tokens import JobTokens
from astrago_trainer.store import Store
from astrago_trainer.store.jobs import Job, load_documents

KEPT = 256
"""Jobs are handed over soon after they were accepted; older ones are read again."""

Json = dict[str, Any]


class Effectives:
    """Effective objects by job number."""

    def __init__(self, store: Store, tokens: JobTokens) -> None:
        self._store = store
        self._tokens = tokens
        self._known: OrderedDict[int, tuple[tuple[Json, ...], tuple[Json, ...], int | None]] = (
            OrderedDict()
        )

    def remember(
        self,
        number: int,
        made: tuple[Json, ...],
        objects: tuple[Json, ...],
        deadline: int | None,
    ) -> None:
        """`made`: what an operator would make of it, the JobSet first."""
        self._known[number] = (made, objects, deadline)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    async def get(self, job: Job) -> Effective | None:
        """As wished now; None when the job is gone."""
        if job.number not in self._known:
            found = await self._store.read(
                lambda connection: load_documents(connection, job.number)
            )
            if found is None:
                return None
            self.remember(
                job.number,
                tuple(json.loads(found.effective)),
                tuple(json.loads(found.objects)),
                json.loads(found.spec).get("active_deadline_seconds"),
            )
        made, objects, deadline = self._known[job.number]
        if wants_token(made[0]):
            # Here and not before: what is stored and shown has no token.
            secret = token_secret(job.namespace, job.name, self._tokens.token(job))
            objects = (*objects[:-1], secret, objects[-1])
        return Effective(made[0], objects, job.is_suspended, deadline, beside=made[1:])

    def forget(self, number: int) -> None:
        self._known.pop(number, None)


def handle_of(job: Job, run: int | None = None) -> Handle:
    """The name of a run for the engine; its present one unless told."""
    number = job.run if run is None else run
    return Handle(job.namespace, job.name, job.uid if number == 1 else f"{job.uid}-{number}")
