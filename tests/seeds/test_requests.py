"""What the requests of the documents become, and how forgiving the API is: on a server without a real engine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.seeds.bodies import flat, missing, nested, second_generation
from tests.server.serving import Site, a_site

Json = dict[str, Any]
CREATE = "/api/trainjob/create"


def on_a_site(folder, story: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        async with a_site(folder) as site:
            await story(site)

    asyncio.run(main())


async def objects(site: Site, body: Json) -> list[Json]:
    """What is made for a request, in order."""
    answer = await site.client.post(CREATE, json=body)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    url = f"/api/v1/namespaces/{made['namespace']}/jobs/{made['trainjob_name']}/manifest"
    found: list[Json] = (await site.client.get(url)).json()["objects"]
    return found


def named(found: list[Json]) -> list[tuple[str, str, str]]:
    return [
        (each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in found
    ]


@pytest.mark.seeds("S0-01", "S0-02", "S0-21", "S1-04")
@pytest.mark.parametrize("body", [nested(), flat()], ids=["first", "second"])
def test_three_objects_are_made_in_the_order_of_the_document(tmp_path, body):
    async def story(site: Site) -> None:
        system, code, job = named(await objects(site, body))

        assert system == ("ConfigMap", "user-123", "pytorch-pet-setup")
        assert code == ("ConfigMap", "user-123", "user123-train-script")
        assert job[:2] == ("TrainJob", "user-123")
        assert re.fullmatch(r"user123-job-\d{14}", job[2])

    on_a_site(tmp_path, story)


@pytest.mark.seeds("S1-01", "S1-06")
def test_every_input_of_the_form_is_where_the_document_has_it(tmp_path):
    async def story(site: Site) -> None:
        body = flat()
        *_, job = await objects(site, body)
        trainer = job["spec"]["trainer"]

        assert list(missing(second_generation(body, "user123-train-script"), job)) == []
        assert trainer["command"][:2] == ["bash", "-c"]
        assert trainer["command"][2].rstrip().endswith(body["command"])
        for variable in body["env_vars"]:
            assert variable in trainer["env"], "X6"
        (override,) = job["spec"]["podTemplateOverrides"]
        assert all("env" not in each for each in override["spec"]["containers"]), "X6"

        without = {**body, "gpu_count": 0}
        *_, job = await objects(site, without)
        assert list(missing(second_generation(without, "user123-train-script"), job)) == []
        resources = job["spec"]["trainer"]["resourcesPerNode"]
        assert all("nvidia.com/gpu" not in each for each in resources.values()), "X8"

    on_a_site(tmp_path, story)


@pytest.mark.seeds("S1-05")
def test_a_second_job_with_other_code_has_a_config_map_of_its_own(tmp_path):
    async def story(site: Site) -> None:
        body = flat()
        _, first, _ = await objects(site, body)
        assert first["data"] == {"train.py": body["training_code"]}

        _, same, _ = await objects(site, body)
        _, other, job = await objects(site, {**body, "training_code": "print('other')"})

        assert same["metadata"]["name"] == first["metadata"]["name"] == "user123-train-script"
        assert re.fullmatch(r"user123-train-script-\w+", other["metadata"]["name"])
        wanted = second_generation(body, other["metadata"]["name"])
        assert list(missing(wanted, job)) == []

    on_a_site(tmp_path, story)


@pytest.mark.seeds("S1-07")
def test_the_endpoint_converts_and_ignores_as_the_documents_models_do(tmp_path):
    """pydantic reads numbers and truth values from texts, and leaves out what it does not know."""

    async def story(site: Site) -> None:
        body = flat()
        exact = await objects(site, body)
        lax = {**body, "num_nodes": "2", "gpu_count": "1", "priority": "high"}
        lax["volumes"] = [{**each, "readOnly": str(each["readOnly"])} for each in body["volumes"]]
        answer = await site.client.post(CREATE, json=lax)

        assert answer.status_code == 200, answer.text
        warnings = str(answer.json()["warnings"])
        for field in ("num_nodes", "gpu_count", "priority", "readOnly"):
            assert field in warnings
        found = await objects(site, lax)
        assert found[-1]["spec"] == exact[-1]["spec"]

        plain = await site.client.post(CREATE, json=body)
        assert not plain.json().get("warnings")
        few = {key: value for key, value in body.items() if key not in ("env_vars", "volumes")}
        assert (await site.client.post(CREATE, json=few)).status_code == 200

    on_a_site(tmp_path, story)


@pytest.mark.seeds("S1-07")
def test_a_field_that_the_documents_model_requires_is_required(tmp_path):
    async def story(site: Site) -> None:
        optional = {"env_vars", "volumes"}
        for field in flat().keys() - optional:
            body = flat()
            del body[field]
            answer = await site.client.post(CREATE, json=body)

            assert answer.status_code == 422
            assert ["body", field] in [each["loc"] for each in answer.json()["detail"]]

    on_a_site(tmp_path, story)
