"""The requests of the first two documents, sent by curl to `astrago up` as it comes."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests import patient
from tests.seeds.bodies import curl_words, nested
from tests.seeds.steps import read
from tests.server.serving import PATIENCE, Process, a_process

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
DOCUMENT = {step.id: step for step in read("S0").steps}


def curl(*words: str) -> dict[str, object]:
    done = subprocess.run(
        ["curl", "-s", "-S", *words], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with a_process(tmp_path_factory.mktemp("server") / "data") as process:
        yield process


@pytest.fixture(scope="module")
def jobs(server: Process) -> tuple[dict[str, object], dict[str, object]]:
    """The answers to the two requests; both jobs run at the same time."""
    body = json.dumps(nested())
    kind = ("-H", "Content-Type: application/json")
    first = curl("-X", "POST", f"{server.address}/api/trainjob/create", *kind, "-d", body)
    (program, *words) = curl_words()
    assert program == "curl"
    port = server.address.rsplit(":", 1)[1]
    second = curl(*(each.replace("localhost:8000", f"localhost:{port}") for each in words))
    return first, second


@pytest.fixture(scope="module")
def ended(server: Process, jobs: tuple[dict[str, object], ...]) -> list[str]:
    """The names of both jobs, which are over."""
    names = [str(each["trainjob_name"]) for each in jobs]
    for name in names:
        url = f"{server.address}/api/v1/namespaces/user-123/jobs/{name}/logs"
        patient.get(url, params={"follow": "true", "format": "sse"}, timeout=PATIENCE)
    return names


def asked(server: Process, step: str, name: str, **changes: str) -> dict[str, object]:
    """What a request of the first document answers, with its placeholders filled in."""
    method, path = DOCUMENT[step].what.split(" ", 1)
    path = path.replace("{trainjob_name}", name).replace("{namespace}", "user-123")
    for old, new in changes.items():
        path = re.sub(rf"{old}=[^&]*", f"{old}={new}", path)
    return curl("-X", method, f"{server.address}{path}")


@pytest.mark.seeds("S0-20", "S0-22", "S1-08")
@pytest.mark.req("M21", "M22", "M54", "M55", "M138")
def test_both_requests_are_accepted_with_the_answer_of_the_document(jobs):
    wanted = DOCUMENT["S0-22"].data
    for made in jobs:
        assert set(made) - {"warnings"} == set(wanted)
        assert (made["status"], made["namespace"]) == (wanted["status"], wanted["namespace"])
        assert re.fullmatch(r"user123-job-\d{14}(-\w+)?", str(made["trainjob_name"]))
        assert re.fullmatch(TIME, str(made["created_at"]))


@pytest.mark.seeds("S0-23", "S0-24", "S0-25", "S1-08")
@pytest.mark.req("M23", "M24")
def test_both_jobs_are_complete_with_the_message_of_the_document(server, ended):
    wanted = DOCUMENT["S0-24"].data
    for name in ended:
        status = asked(server, "S0-23", name)
        assert set(wanted) <= set(status)
        assert status["trainjob_name"] == name
        assert (status["state"], status["message"]) == (wanted["state"], wanted["message"])
        assert re.fullmatch(TIME, str(status["created_at"]))
        assert re.fullmatch(TIME, str(status["completed_at"]))


@pytest.mark.seeds("S0-25")
@pytest.mark.req("M24")
def test_a_job_that_fails_is_failed_with_a_message(server):
    body = {**nested(), "training_code": "import no_such_module\n"}
    made = patient.post(f"{server.address}/api/trainjob/create", json=body).json()
    name = made["trainjob_name"]
    assert asked(server, "S0-23", name)["state"] in ("Running", "Failed")
    url = f"{server.address}/api/v1/namespaces/user-123/jobs/{name}/logs"
    patient.get(url, params={"follow": "true", "format": "sse"}, timeout=PATIENCE)

    status = asked(server, "S0-23", name)
    assert (status["state"], bool(status["message"])) == ("Failed", True)


@pytest.mark.seeds("S0-26", "S0-28")
@pytest.mark.req("M25")
def test_the_logs_of_each_worker_and_of_none(server, ended):
    first, second = ended
    for name in ended:
        for worker in ("0", "1"):
            logs = asked(server, "S0-26", name, worker=worker)
            assert set(DOCUMENT["S0-28"].data) <= set(logs)
            assert (logs["trainjob_name"], logs["worker"]) == (name, int(worker))
            assert f"RANK: {worker}\n" in str(logs["logs"])
    assert "Training...\n" in str(asked(server, "S0-26", second)["logs"])
    for name, worker in ((first, "9"), ("no-such-job", "0")):
        assert isinstance(asked(server, "S0-26", name, worker=worker)["detail"], str)


@pytest.mark.seeds("S0-29")
@pytest.mark.req("M27", "M28")
def test_a_deleted_job_is_gone(server, ended):
    for name in ended:
        assert asked(server, "S0-29", name)["status"] == "success"
        until = time.monotonic() + PATIENCE
        while "detail" not in asked(server, "S0-23", name):
            assert time.monotonic() < until
        assert "detail" in asked(server, "S0-26", name)
