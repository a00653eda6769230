"""OpenAPI is complete and true: requests made from it, good and bad ones, never break the server.

`ASTRAGO_EXAMPLES` is the number of requests for each operation; the campaign takes more.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from astrago_trainer.server import page, schemas
from astrago_trainer.server.rules import RULES
from astrago_trainer.service.view import job_to_view
from tests.server.serving import BOSS, a_request, a_site
from tests.store.databases import a_new_job

EXAMPLES = int(os.environ.get("ASTRAGO_EXAMPLES", "4"))


def _document(tmp_path) -> dict[str, Any]:
    async def ask():
        async with a_site(tmp_path) as site:
            return (await site.client.get("/openapi.json")).json()

    found: dict[str, Any] = asyncio.run(ask())
    return found


def test_every_route_is_described_with_examples(tmp_path):
    document = _document(tmp_path)
    described = {
        (verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs
    }
    undescribed = {(method, path) for method in page.METHODS for path in page.PATHS}
    undescribed.add(("GET", "/openapi.json"))
    assert described | undescribed == set(RULES)
    names = set()
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            names.add(operation["operationId"])
            assert operation["description"], path
            good = [each for status, each in operation["responses"].items() if status < "300"]
            assert good, (verb, path)
            body = operation.get("requestBody")
            if body:
                assert body["content"]["application/json"]["examples"], path
    assert len(names) == len(described)


def test_the_model_of_a_job_is_what_is_sent():
    job = a_new_job().job
    assert list(schemas.Job.model_fields) == list(job_to_view(job))
    schemas.Job.model_validate(job_to_view(job))


def test_requests_made_from_the_schema_never_break_it(tmp_path):
    """One loop, one server: the requests of all operations follow one another on the same jobs."""
    loop = asyncio.new_event_loop()
    site_manager = a_site(tmp_path / "site")

    async def begin():
        site = await site_manager.__aenter__()
        await site.service.access.create_user(BOSS, "ann")
        await site.service.access.create_tenant(BOSS, "team")
        await site.client.post("/api/v1/namespaces/team/jobs", json=a_request(name="hello"))
        return site, (await site.client.get("/openapi.json")).json()

    site, document = loop.run_until_complete(begin())
    schema = schemathesis.openapi.from_dict(document)
    count = 0
    try:
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.definition.raw["operationId"] == "streamJobs":
                continue  # it does not end
            for mode in schemathesis.GenerationMode:
                count += _send_many(loop, site, operation, mode)
    finally:
        loop.run_until_complete(site_manager.__aexit__(None, None, None))
        loop.close()
    print(f"{count} requests")
    assert count >= EXAMPLES * 50


def _send_many(loop, site, operation, mode) -> int:
    """How many requests were made; not every operation can be asked wrongly."""
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def send(case: Any, is_known: bool) -> None:
        nonlocal count
        if is_known:  # else most requests would be of namespaces that have nothing
            for name, value in (("namespace", "team"), ("name", "hello")):
                if isinstance(case.path_parameters, dict) and name in case.path_parameters:
                    case.path_parameters[name] = value
        count += 1
        _send(loop, site, case, mode)

    try:
        send()
    except Exception as error:
        if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):
            raise
    return count


def _send(loop, site, case, mode) -> None:
    keywords = case.as_transport_kwargs(base_url="http://127.0.0.1:8000")
    keywords = {name: value for name, value in keywords.items() if value is not None}
    headers = {
        name: value
        for name, value in dict(keywords.pop("headers", {})).items()
        if name.lower() not in ("host", "origin", "content-length")
    }
    body = keywords.pop("data", None)
    params = dict(keywords.get("params") or {})
    params.pop("follow", None)  # nor does this
    request: dict[str, Any] = {"headers": headers, "params": params}
    if "json" in keywords:
        request["json"] = keywords["json"]
    elif isinstance(body, bytes | str):
        request["content"] = body
    try:
        answer = loop.run_until_complete(
            site.client.request(keywords["method"], keywords["url"], **request)
        )
    except (UnicodeError, ValueError, TypeError) as error:
        if "a request broke" in str(error):
            raise
        return  # no client can send this
    assert answer.status_code < 500, (keywords, answer.text)
    if mode is schemathesis.GenerationMode.POSITIVE:
        _check(case, answer)


def _check(case, answer) -> None:
    """The answer is one that the description knows, of its type and shape."""
    responses = case.operation.definition.raw["responses"]
    assert str(answer.status_code) in responses, (
        case.operation.label,
        answer.status_code,
        answer.text,
    )
    content = responses[str(answer.status_code)].get("content", {})
    if answer.content:
        assert answer.headers["content-type"] in content, (case.operation.label, answer.headers)
