"""One key, one job: however many ask at the same time, and whatever was lost on the way."""

from __future__ import annotations

import asyncio
import random

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.service.errors import Conflict
from tests.service.jobs import ANN, a_spec, running, serving, until, until_gone

KEYS = 40
TIMES = 8


def test_many_keys_each_sent_by_many_at_once(tmp_path):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine) as service:
            keys = [f"key {number}" for number in range(KEYS)] * TIMES
            random.Random(1).shuffle(keys)
            spec = a_spec(nodes=1)
            records = await asyncio.gather(
                *(service.submit(ANN, "team", spec, key) for key in keys)
            )
            await until(service, lambda: service.board.counts() == {"Running": KEYS})
            return keys, records, len(service.board)

    keys, records, jobs = asyncio.run(scenario())

    answers = {}
    for key, record in zip(keys, records, strict=True):
        answers.setdefault(key, set()).add(record.body)
    assert jobs == len(engine._jobs) == KEYS
    assert {len(bodies) for bodies in answers.values()} == {1}, "all get the same answer"
    assert [what for what, _ in engine.calls].count("apply") == KEYS


def test_the_same_answer_after_a_new_start_and_after_the_job_is_gone(tmp_path):
    async def submit():
        async with serving(tmp_path) as service:
            return (await service.submit(ANN, "team", a_spec(), "key")).body

    async def delete():
        async with serving(tmp_path) as service:
            (record,) = service.list("team").records
            await service.delete(ANN, "team", record.job.name)
            await until_gone(service, record.job.name)

    first, second = asyncio.run(submit()), asyncio.run(submit())
    asyncio.run(delete())
    third = asyncio.run(submit())

    assert first == second == third


def test_the_name_follows_from_the_key(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            return [
                (await service.submit(ANN, "team", a_spec(), key)).job.name
                for key in ("one", "one", "two")
            ]

    first, again, other = asyncio.run(scenario())

    assert first == again != other
    assert first.startswith("ann-job-")


def test_a_key_with_another_request_is_refused(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            await service.submit(ANN, "team", a_spec(), "key")
            with pytest.raises(InvalidRequest) as caught:
                await service.submit(ANN, "team", a_spec(nodes=1), "key")
            return caught.value.problems, len(service.board)

    problems, jobs = asyncio.run(scenario())

    assert [(problem.path, problem.code) for problem in problems] == [
        ("Idempotency-Key", "key-reused")
    ]
    assert jobs == 1


def test_keys_of_two_namespaces_are_two_keys(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            for namespace in ("team", "other"):
                await service.submit(ANN, namespace, a_spec(namespace=namespace), "key")
            return len(service.board)

    assert asyncio.run(scenario()) == 2


@pytest.mark.parametrize("key", ["", "x" * 201, "line\nbreak", "\0"])
def test_what_is_no_key_is_refused(tmp_path, key):
    async def scenario():
        async with serving(tmp_path) as service:
            with pytest.raises(InvalidRequest, match="Idempotency-Key: must be 1 to 200 printable"):
                await service.submit(ANN, "team", a_spec(), key)

    asyncio.run(scenario())


def test_a_key_and_a_name_that_is_taken(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            await running(service, name="mine")
            with pytest.raises(Conflict):
                await service.submit(ANN, "team", a_spec(name="mine"), "key")
            return len(service.board)

    assert asyncio.run(scenario()) == 1
