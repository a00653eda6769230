"""A running job reports its progress with a token of its own, which opens nothing else and is kept nowhere."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3

import httpx
import pytest

from astrago_trainer.server.rules import RULES
from astrago_trainer.service.identity import Role
from astrago_trainer.service.installation_key import InstallationKey
from astrago_trainer.service.job_tokens import PREFIX, JobTokens
from tests.server.serving import PATIENCE, a_process, a_request, a_site, bearer

STATUS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/{}/status"
REPORT = {
    "trainerStatus": {
        "progressPercentage": 45,
        "metrics": [{"name": "loss", "value": "0.5"}],
        "lastUpdatedTime": "2026-01-31T12:00:00Z",
    }
}
SCRIPT = """
import json, os, pathlib, urllib.request
url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"]
token = pathlib.Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text()
for percent in (50, 100):
    status = {
        "progressPercentage": percent,
        "metrics": [{"name": "loss", "value": str(1 / percent)}, {"name": "current_step", "value": str(percent)}],
        "lastUpdatedTime": "2026-01-31T12:00:%02dZ" % (percent % 60),
    }
    body = json.dumps({"trainerStatus": status}).encode()
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        print("reported", answer.status, flush=True)
"""


@pytest.mark.parametrize("auth", ["off", "tokens"])
def test_a_script_reports_from_the_local_engine_and_its_token_is_nowhere(tmp_path, auth):
    data = tmp_path / "data"
    with a_process(data, ASTRAGO_AUTH=auth) as server:
        headers = {}
        if auth == "tokens":
            headers = bearer((data / "admin-token").read_text().strip())
        with httpx.Client(base_url=server.address, headers=headers, timeout=PATIENCE) as client:
            if auth == "tokens":
                client.post("/api/v1/tenants", json={"namespace": "team"}).raise_for_status()
            request = a_request(name="told", nodes=1, code={"inline": SCRIPT})
            jobs = "/api/v1/namespaces/team/jobs"
            preview = client.post(f"{jobs}:preview", json=request).raise_for_status().json()
            client.post(jobs, json=request).raise_for_status()
            said = client.get(f"{jobs}/told/logs", params={"follow": "true"}).text
            assert said.count("reported 200") == 2, said
            found = client.get(f"{jobs}/told/metrics").json()
            manifest = client.get(f"{jobs}/told/manifest").text
        assert [value for _, _, value in found["series"]["loss"]] == [0.02, 0.01]
        assert found["progress"]["fraction"] == 1.0
        token = _token_of(data)
    # Where people and programs look, there is the path of the token and never the token.
    assert "/var/run/secrets/astrago/progress/token" in manifest
    texts = [json.dumps(preview), manifest, said, server.stderr.read_text()]
    assert not any(token in text for text in texts)
    assert token.encode() not in b"".join(path.read_bytes() for path in data.glob("astrago.db*"))


def _token_of(data) -> str:
    """As the job was given it: the only other place is the key that it follows from."""
    with sqlite3.connect(data / "astrago.db") as database:
        namespace, name, uid = database.execute("SELECT namespace, name, uid FROM jobs").fetchone()

    class Named:
        pass

    job = Named()
    job.namespace, job.name, job.uid = namespace, name, uid
    assert (data / "job-key").stat().st_mode & 0o777 == 0o600
    return JobTokens(InstallationKey(data / "job-key")).token(job)


def test_the_preview_names_the_platform_as_the_origin(tmp_path):
    async def scenario():
        async with a_site(tmp_path, job_url="https://astrago.example:8443") as site:
            return await site.client.post(
                "/api/v1/namespaces/team/jobs:preview", json=a_request(name="seen")
            )

    found = asyncio.run(scenario()).json()
    container = "/0/spec/replicatedJobs/0/template/spec/template/spec/containers/0"
    pod = found["objects"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    env = {
        each["name"]: (i, each.get("value")) for i, each in enumerate(pod["containers"][0]["env"])
    }
    index, url = env["KUBEFLOW_TRAINER_SERVER_URL"]
    assert url == f"https://astrago.example:8443{STATUS.format('seen')}"
    assert found["provenance"][f"{container}/env/{index}/value"] == "platform"
    volume = next(each for each in pod["volumes"] if each["name"] == "astrago-progress")
    assert volume["secret"] == {"secretName": "seen-progress", "optional": True}
    origins = {
        found["provenance"][key] for key in found["provenance"] if re.search("/volumes/", key)
    }
    assert "platform" in origins


@pytest.mark.parametrize("framework", ["tensorflow", "horovod"])
def test_other_frameworks_are_told_too(tmp_path, framework):
    async def scenario():
        async with a_site(tmp_path, job_url="http://host:1") as site:
            return await site.client.post(
                "/api/v1/namespaces/team/jobs:preview", json=a_request(framework=framework)
            )

    found = asyncio.run(scenario()).json()
    assert not found["is_refused"], found["problems"]
    text = json.dumps(found["objects"][0])
    assert "KUBEFLOW_TRAINER_SERVER_URL" in text
    if framework == "horovod":  # ranks in other pods see no variable that mpirun does not name
        assert "-x KUBEFLOW_TRAINER_SERVER_URL -x KUBEFLOW_TRAINER_SERVER_TOKEN python" in text


def test_a_jobs_token_opens_its_own_status_and_nothing_else(tmp_path):
    async def scenario():
        async with a_site(tmp_path, auth="tokens") as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            for name in ("mine", "other"):
                made = a_request(name=name)
                await site.client.post("/api/v1/namespaces/team/jobs", json=made, headers=ann)
            job = site.service.get("team", "mine").job
            token = site.service._job_tokens.token(job)
            own = await site.client.post(STATUS.format("mine"), json=REPORT, headers=bearer(token))
            assert own.status_code == 200, own.text
            answers = {}
            for method, route in RULES:
                path = re.sub(r"\{(\w+)\}", "mine", route.replace("{namespace}", "team"))
                if (method, path) == ("POST", STATUS.format("mine")) or RULES[
                    method, route
                ].where == "anybody":
                    continue
                answer = await site.client.request(method, path, headers=bearer(token))
                answers[method, path] = answer.status_code
            assert set(answers.values()) == {403}, answers
            for other in (STATUS.format("other"), STATUS.format("missing")):
                answer = await site.client.post(other, json=REPORT, headers=bearer(token))
                assert answer.status_code == 403

            forged = token[:-1] + ("0" if token[-1] != "0" else "1")
            renamed = token.replace("_mine_", "_other_")
            for bad in (forged, renamed, PREFIX, f"{PREFIX}team_mine_", f"{PREFIX}\u00e9__"):
                header = {"authorization": f"Bearer {bad}".encode()}
                answer = await site.client.post(STATUS.format("mine"), json=REPORT, headers=header)
                assert answer.status_code == 401, bad

            # It goes with the job: a later one of the same name has another.
            await site.client.delete("/api/v1/namespaces/team/jobs/mine", headers=ann)
            while site.service.board.find("team", "mine") is not None:
                await asyncio.sleep(0.01)
            await site.client.post(
                "/api/v1/namespaces/team/jobs", json=a_request(name="mine"), headers=ann
            )
            late = await site.client.post(STATUS.format("mine"), json=REPORT, headers=bearer(token))
            assert late.status_code == 401

    asyncio.run(scenario())


def test_the_key_is_made_once_and_a_broken_one_is_named(tmp_path):
    from tests.store.databases import a_new_job

    job = a_new_job().job
    first = JobTokens(InstallationKey(tmp_path / "new" / "job-key")).token(job)
    assert JobTokens(InstallationKey(tmp_path / "new" / "job-key")).token(job) == first
    assert JobTokens(InstallationKey(tmp_path / "job-key")).token(job) != first
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["job-key"]
    (tmp_path / "job-key").write_bytes(b"short")
    with pytest.raises(ValueError, match="has 5 bytes"):
        JobTokens(InstallationKey(tmp_path / "job-key")).token(job)
