"""Whatever people type is refused or carried verbatim, and never interpreted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

from tests.server.hostile import STRINGS
from tests.server.serving import JOBS, a_request, a_site

CANARY = Path("/tmp/canary")


def test_there_are_enough_of_them():
    assert len(STRINGS) >= 300


def _bodies(text: str):
    yield "env value", a_request(env=[{"name": "X", "value": text}])
    yield "command", a_request(command=text)
    yield "argument", a_request(argv=["python", text], code=None)
    yield "code", a_request(code={"inline": text})
    yield "annotation", a_request(annotations={"example.org/x": text})
    yield "name", a_request(name=text)
    yield "env name", a_request(env=[{"name": text, "value": "x"}])
    yield "mount path", a_request(volumes=[{"name": "v", "claim": "c", "mount_path": text}])
    yield (
        "sub path",
        a_request(volumes=[{"name": "v", "claim": "c", "mount_path": "/v", "sub_path": text}]),
    )
    yield "file", a_request(code={"files": {text: "x", "train.py": "x"}})
    yield "image", a_request(image=text)
    yield "git", a_request(code={"git": {"url": text}})
    yield "memory", a_request(resources={"cpu": "1", "memory": text})
    yield "user", a_request(user=text)
    yield "label", a_request(labels={"x": text})


def _texts(value, found):
    if isinstance(value, str):
        found.add(value)
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        _texts(each, found)
    if isinstance(value, dict):
        found.update(value)
    return found


def test_in_a_preview_every_string_is_refused_or_there_as_it_was(tmp_path):
    carried = refused = 0

    async def story():
        nonlocal carried, refused
        async with a_site(tmp_path) as site:
            for number, text in enumerate(STRINGS):
                bodies = list(_bodies(text))
                # Three places for each string, turning, so that all meet many: the whole product takes minutes.
                for place, body in (bodies[(number * 3 + turn) % len(bodies)] for turn in range(3)):
                    answer = await site.client.post(f"{JOBS}:preview", json=body)
                    assert answer.status_code in (200, 422), (place, text, answer.text)
                    shown = answer.json()
                    assert "Traceback" not in answer.text
                    if answer.status_code == 422 or shown["is_refused"]:
                        refused += 1
                        continue
                    carried += 1
                    there = _texts(shown["objects"], set())
                    if place in (
                        "env value",
                        "argument",
                        "annotation",
                        "label",
                        "image",
                        "mount path",
                    ):
                        wanted = (
                            text.replace("$", "$$") if place in ("env value", "argument") else text
                        )
                        assert {text, wanted} & there or text == "", (place, text)
                    elif place == "command":
                        assert (
                            any(each.endswith(text) or text in each for each in there)
                            or "$" in text
                        )

    asyncio.run(story())
    assert carried > 100
    assert refused > 100
    assert not CANARY.exists()


def test_in_paths_queries_and_headers_they_find_nothing(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            for text in STRINGS:
                part = quote(text, safe="")
                for path in (
                    f"{JOBS}/{part}",
                    f"{JOBS}/{part}/logs",
                    f"/api/v1/namespaces/{part}/jobs/hello",
                    f"/api/trainjob/{part}/status?namespace=team",
                    f"/api/v1/runtimes/{part}",
                ):
                    answer = await site.client.get(path)
                    # A dot segment is taken away by the client, so the path may be that of a list.
                    assert answer.status_code in (404, 405, 422) or text in (".", ".."), (
                        path,
                        answer.text,
                    )
                    assert "passwd" not in answer.text or "passwd" in text
                listed = await site.client.get(
                    JOBS, params={"q": text, "owner": text, "page_token": text}
                )
                assert listed.status_code in (200, 422)
                if text.isascii() and text.isprintable():
                    headers = {"x-request-id": text, "idempotency-key": text, "if-none-match": text}
                    answer = await site.client.get(f"{JOBS}/hello", headers=headers)
                    assert answer.status_code in (200, 304)

    asyncio.run(story())


def test_what_is_stored_comes_back_as_it_was(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            env = [
                {"name": f"V{number}", "value": text}
                for number, text in enumerate(STRINGS)
                if "\0" not in text and text.isprintable()
            ][:100]
            made = await site.client.post(JOBS, json=a_request(env=env))
            assert made.status_code == 201, made.text
            kept = (await site.client.get(f"{JOBS}/{made.json()['name']}/manifest")).json()
            assert kept["spec"]["env"] == env
            copy = await site.client.post(f"{JOBS}/{made.json()['name']}:clone", json={})
            again = (await site.client.get(f"{JOBS}/{copy.json()['name']}/manifest")).json()
            assert json.dumps(again["spec"]["env"]) == json.dumps(env)

    asyncio.run(story())
