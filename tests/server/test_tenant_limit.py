"""How many jobs of one namespace may be there that have not ended."""

from __future__ import annotations

import asyncio

import pytest

from astrago_trainer.server.settings import BadSettings, read_settings
from astrago_trainer.service.identity import Role
from tests.server.serving import JOBS, a_request, a_site, bearer

OTHER = JOBS.replace("team", "other")
TOKENS = {"auth": "tokens", "local_users": "trusted", "tenant_max_jobs": 2}


def run(story):
    return asyncio.run(story())


def test_a_namespace_with_too_many_jobs_is_refused_and_others_are_not(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER, other=Role.MEMBER))

            async def post(path=JOBS, *, headers=ann, key=None, **fields):
                named = headers if key is None else {**headers, "idempotency-key": key}
                return await site.client.post(path, json=a_request(**fields), headers=named)

            first = await post(name="one", key="k1")
            together = await asyncio.gather(*(post(name=f"job-{each}") for each in range(5)))
            assert sorted(each.status_code for each in together) == [201, 429, 429, 429, 429]
            refused = await post(name="three", key="k3")
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "60"
            found = refused.json()
            assert found["code"] == "too-many"
            for part in ("'team'", "2 jobs that have not ended", "delete some", "TENANT_MAX_JOBS"):
                assert part in found["detail"]
            # The first API has the same limit.
            old = {"user_id": "ann", "namespace": "team", "framework": "pytorch"}
            old |= {"training_code": "print(1)", "config": {"num_nodes": 1, "gpu_per_node": 0}}
            old["config"] |= {"cpu_per_node": 1, "memory_per_node": "1Gi"}
            answer = await site.client.post("/api/trainjob/create", json=old, headers=ann)
            assert (answer.status_code, answer.json()["code"]) == (429, "too-many")
            # What was accepted is repeated, in the other namespace there is space, and administrators are not limited.
            again = await post(name="one", key="k1")
            assert (again.status_code, again.json()) == (201, first.json())
            assert (await post(OTHER, name="one")).status_code == 201
            boss = bearer((tmp_path / "admin-token").read_text().strip())
            assert (await post(headers=boss, name="boss")).status_code == 201
            clone = await site.client.post(f"{JOBS}/one:clone", json={}, headers=ann)
            assert clone.status_code == 429
            await site.until("one", "Running")
            # A running job that is restarted is none more.
            restarted = await site.client.post(f"{JOBS}/one:restart", headers=ann)
            assert restarted.status_code == 202

    run(story)


def test_an_ended_job_makes_space_and_its_restart_needs_it(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS | {"tenant_max_jobs": 1}) as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            for name in ("one", "two"):
                body = a_request(name=name)
                made = await site.client.post(JOBS, json=body, headers=ann)
                assert made.status_code == 201, made.text
                await site.until(name, "Running")
                if name == "one":
                    site.engine.finish(site.handle(name))
                    await site.until(name, "Complete")
            restarted = await site.client.post(f"{JOBS}/one:restart", headers=ann)
            assert restarted.status_code == 429, restarted.text

    run(story)


def test_a_repeated_request_of_a_deleted_job_gets_its_answer(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS | {"tenant_max_jobs": 1}) as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            keyed = {**ann, "idempotency-key": "k1"}
            first, twice = await asyncio.gather(
                *(site.client.post(JOBS, json=a_request(), headers=keyed) for _ in range(2))
            )
            assert (first.status_code, twice.status_code) == (201, 201), twice.text
            name = first.json()["name"]
            with site.service.subscribe("team") as news:
                await site.client.delete(f"{JOBS}/{name}", headers=ann)
                while site.service.board.find("team", name) is not None:
                    await anext(news)
            other = await site.client.post(JOBS, json=a_request(name="other"), headers=ann)
            assert other.status_code == 201
            again = await site.client.post(JOBS, json=a_request(), headers=keyed)
            assert (again.status_code, again.json()) == (201, first.json())

    run(story)


def test_without_a_limit_there_is_none(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS | {"tenant_max_jobs": 0}) as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            for _ in range(3):
                made = await site.client.post(JOBS, json=a_request(), headers=ann)
                assert made.status_code == 201

    run(story)
    assert read_settings({}, data=tmp_path).tenant_max_jobs == 2000
    with pytest.raises(BadSettings, match="ASTRAGO_TENANT_MAX_JOBS must be 0"):
        read_settings({"ASTRAGO_TENANT_MAX_JOBS": "-1"}, data=tmp_path)
