"""The server as a process: with real connections, the local engine, kills and clients that are slow on purpose."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests import patient
from tests.server.serving import PATIENCE, a_process, a_request, events_of, health_seconds

ROOT = Path(__file__).parents[2]
JOBS = "/api/v1/namespaces/user-123/jobs"
_NESTED = """{
  "user_id": "user123",
  "namespace": "user-123",
  "framework": "pytorch",
  "training_code": "import torch\\nimport torch.nn as nn\\n...",
  "config": {
    "num_nodes": 2,
    "gpu_per_node": 1,
    "cpu_per_node": 4,
    "memory_per_node": "16Gi"
  }
}"""
_FLAT = """{
    "user_id": "user123",
    "namespace": "user-123",
    "framework": "pytorch",
    "training_code": "import torch\\nimport torch.nn as nn\\nprint(\\"Training...\\")",
    "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
    "num_nodes": 2,
    "cpu_request": "2",
    "cpu_limit": "4",
    "memory_request": "8Gi",
    "memory_limit": "16Gi",
    "gpu_count": 1,
    "command": "python /workspace/scripts/train.py",
    "env_vars": [
      {"name": "EPOCHS", "value": "10"},
      {"name": "BATCH_SIZE", "value": "64"}
    ],
    "volumes": [
      {
        "name": "dataset",
        "pvc": "user123-dataset-pvc",
        "mountPath": "/data",
        "readOnly": true
      },
      {
        "name": "models",
        "pvc": "user123-models-pvc",
        "mountPath": "/models",
        "readOnly": false
      }
    ]
  }"""
"""The requests of the first two documents, word for word."""
SMALL = {"ASTRAGO_LOCAL_CPUS": "1", "ASTRAGO_LOCAL_GPUS": "0"}
"""A machine of which the sample asks for more than it has."""


def _watch(address: str, name: str, namespace: str = "user-123") -> list[dict[str, str]]:
    """Reads the log of a job until it is over."""
    url = f"{address}/api/v1/namespaces/{namespace}/jobs/{name}/logs?follow=true&format=sse"
    return events_of(patient.get(url, timeout=PATIENCE).text)


def _environment_with_torch(folder: Path) -> dict[str, str]:
    """An environment in which `import torch` works at once: the requests import it and use nothing of it."""
    for package in ("torch", "torch/nn"):
        (folder / "modules" / package).mkdir(parents=True)
        (folder / "modules" / package / "__init__.py").touch()
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        program = folder / "bin" / name
        program.write_text(
            f'#!/bin/sh\nexec env PYTHONPATH={folder}/modules {sys.executable} "$@"\n'
        )
        program.chmod(0o755)
    return {"ASTRAGO_ENVIRONMENTS": f"*={folder}"}


@pytest.mark.req("M21", "M52", "M54", "M23", "M24", "M25", "M27", "M28")
@pytest.mark.parametrize(
    ("body", "line"),
    [(_NESTED, "RANK: 0"), (_FLAT, "Training...\n")],
    ids=["nested", "flat"],
)
def test_the_first_apis_requests_word_for_word_on_a_small_machine(tmp_path, body, line):
    """As plain `astrago up` starts it, on any machine."""
    variables = SMALL | _environment_with_torch(tmp_path / "environment")
    with a_process(tmp_path / "data", **variables) as server:
        base = f"{server.address}/api/trainjob"

        def curl(*words: str) -> dict[str, object]:
            done = subprocess.run(
                ["curl", "-s", *words], capture_output=True, check=True, timeout=60
            )
            return json.loads(done.stdout)

        kind = ("-H", "Content-Type: application/json")
        made = curl("-X", "POST", f"{base}/create", *kind, "-d", body)
        assert made["status"] == "success"
        (warning,) = made["warnings"]
        assert (warning["path"], warning["code"]) == ("resources", "job-larger-than-machine")
        assert warning["message"].startswith("asked for 4 CPU, 16Gi and 1 GPU per node on 2 nodes")
        name = made["trainjob_name"]
        assert re.fullmatch(r"user123-job-\d{14}(-\w+)?", str(name))
        assert curl(f"{base}/{name}/status?namespace=user-123")["state"] in ("Running", "Complete")
        _watch(server.address, str(name))
        status = curl(f"{base}/{name}/status?namespace=user-123")
        assert (status["state"], status["message"]) == ("Complete", "jobset completed successfully")
        logs = [curl(f"{base}/{name}/logs?namespace=user-123&worker={n}")["logs"] for n in (0, 1)]
        assert ["RANK: 0" in str(logs[0]), "RANK: 1" in str(logs[1])] == [True, True]
        assert line in str(logs[0])
        assert "detail" in curl(f"{base}/{name}/logs?namespace=user-123&worker=9")
        job = f"{server.address}{JOBS}/{name}"
        told = patient.get(f"{job}/events").json()["items"]
        (note,) = (each["message"] for each in told if each["reason"] == "Squeezed")
        assert note.startswith("asked for 4 CPU, 16Gi and 1 GPU per node on 2 nodes; ")
        assert note.endswith(" and no GPU: runs on CPU")
        short = patient.get(f"{job}/explain").json()["shortfall"]
        assert (short["message"], short["is_refused"]) == (note, False)
        assert (short["nodes"], short["asked"]["gpus"], short["has"]["gpus"]) == (2, 1, 0)
        assert curl("-X", "DELETE", f"{base}/{name}?namespace=user-123")["status"] == "success"
        until = time.monotonic() + PATIENCE
        while "detail" not in curl(f"{base}/{name}/status?namespace=user-123"):
            assert time.monotonic() < until


@pytest.mark.req("M54")
def test_where_the_setting_says_so_a_job_that_can_never_fit_is_refused_with_what_helps(tmp_path):
    with a_process(tmp_path / "data", **SMALL, ASTRAGO_LOCAL_OVERSIZE="refuse") as server:
        answer = patient.post(
            f"{server.address}/api/trainjob/create",
            content=_FLAT,
            headers={"content-type": "application/json"},
        )
        name = answer.json()["trainjob_name"]
        _watch(server.address, name)
        job = patient.get(f"{server.address}{JOBS}/{name}").json()
        assert (job["phase"], job["reason"]) == ("Failed", "TooLarge")
        assert "asked for 4 CPU, 16Gi and 1 GPU per node on 2 nodes" in job["message"]
        assert "unset ASTRAGO_LOCAL_OVERSIZE" in job["message"]
        found = patient.get(f"{server.address}{JOBS}/{name}/explain").json()
        assert found["shortfall"]["is_refused"] is True
        assert found["next_steps"] == [
            f"astrago clone {name} --namespace user-123 --nodes 1",
            "ASTRAGO_LOCAL_OVERSIZE=squeeze astrago up",
        ]
        spec = {"code": {"inline": "pass"}, "framework": "pytorch", "resources": {"gpus": 9}}
        preview = patient.post(f"{server.address}{JOBS}:preview", json={"user": "u", **spec}).json()
        assert preview["shortfall"]["is_refused"] is True
        assert preview["problems"][-1]["code"] == "job-refused-as-too-large"


def test_a_kill_in_the_middle_of_a_job_loses_nothing(tmp_path):
    script = (
        "import os, time\n"
        "for step in range(1, 4):\n"
        "    print(f'step {step} loss={1/step:.3f}', flush=True)\n"
        "    while step == 2 and not os.path.exists(os.environ['GO']): time.sleep(0.01)\n"
    )
    go = tmp_path / "data" / "claims" / "user-123" / "signal" / "go"
    body = a_request(
        user="user123",
        name="long",
        code={"inline": script},
        env=[{"name": "GO", "value": "/signal/go"}],
        volumes=[{"name": "signal", "claim": "signal", "mount_path": "/signal"}],
    )
    with a_process(tmp_path / "data") as server:
        assert patient.post(server.address + JOBS, json=body).status_code == 201
        url = f"{server.address}{JOBS}/long/logs?follow=true&format=sse&rank=0"
        last, seen = "", []
        with patient.stream("GET", url, timeout=PATIENCE) as answer:
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    last = line[4:]
                elif line.startswith("data: "):
                    told = json.loads(line[6:])
                    if told["ended"]:  # a line that is still being written is told again
                        seen.append(told["text"])
                    if seen and seen[-1].startswith("step 2"):
                        break
        server.kill()
    with a_process(tmp_path / "data") as server:
        job = patient.get(f"{server.address}{JOBS}/long").json()
        assert (job["phase"], job["restarts"]) == ("Running", 0)
        go.parent.mkdir(parents=True, exist_ok=True)
        go.touch()
        url = f"{server.address}{JOBS}/long/logs?follow=true&format=sse&rank=0"
        rest = events_of(patient.get(url, headers={"last-event-id": last}, timeout=PATIENCE).text)
        told = [json.loads(each["data"]) for each in rest[:-1]]
        seen += [each["text"] for each in told if each["ended"]]
        assert [each for each in seen if "step" in each] == [
            f"step {n} loss={1 / n:.3f}" for n in (1, 2, 3)
        ]
        job = patient.get(f"{server.address}{JOBS}/long").json()
        assert (job["phase"], job["restarts"], job["attempt"]) == ("Complete", 0, 0)
        until = time.monotonic() + PATIENCE
        while True:
            found = [
                patient.get(f"{server.address}{JOBS}/long/metrics", params={"rank": rank}).json()
                for rank in (0, 1)
            ]
            steps = [{point[0] for point in each["series"].get("loss", ())} for each in found]
            if steps == [{1, 2, 3}] * 2:  # both ranks of the job
                break
            assert time.monotonic() < until, found
        assert patient.delete(f"{server.address}{JOBS}/long").status_code == 202


def test_a_stop_ends_streams_and_leaves_jobs(tmp_path):
    script = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)\n"
    body = a_request(user="user123", name="long", code={"inline": script}, nodes=1)
    with a_process(tmp_path / "data") as server:
        assert patient.post(server.address + JOBS, json=body).status_code == 201
        url = f"{server.address}{JOBS}/long/logs?follow=true&rank=0"
        with (
            patient.stream("GET", url, timeout=PATIENCE) as answer,
            patient.stream("GET", f"{server.address}/api/v1/namespaces/-/stream") as changes,
        ):
            lines, news = answer.iter_lines(), changes.iter_lines()
            assert any("begun" in line for line in lines)
            assert next(news) == "event: ready"
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert list(lines) == []
            list(news)
        assert server.process.wait(PATIENCE) == 0
        assert time.monotonic() - begin < 10
        assert "Traceback" not in server.stderr.read_text()
    with a_process(tmp_path / "data") as server:
        job = patient.get(f"{server.address}{JOBS}/long").json()
        assert (job["phase"], job["restarts"]) == ("Running", 0)
        assert patient.delete(f"{server.address}{JOBS}/long").status_code == 202
        until = time.monotonic() + PATIENCE
        while patient.get(f"{server.address}{JOBS}/long").status_code != 404:
            assert time.monotonic() < until


@contextmanager
def _connections(address: str, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(_connect(address)) for _ in range(count)]


def _connect(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def test_slow_clients_are_cut_off_and_hold_nobody_up(tmp_path):
    limits = {
        "ASTRAGO_HEADER_SECONDS": "1",
        "ASTRAGO_BODY_SECONDS": "1",
        "ASTRAGO_SEND_SECONDS": "1",
        "ASTRAGO_ENGINE": "fake",
    }
    requests = (
        b"GET /healthz HTTP/1.1\r\nHost: loc",
        b"POST /api/v1/namespaces/a/jobs HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        b"GET /api/v1/namespaces/user-123/jobs/big/logs?rank=0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    with a_process(tmp_path / "data", **limits) as server, ExitStack() as stack:
        made = patient.post(
            f"{server.address}{JOBS}", json=a_request(user="user123", name="big")
        ).json()
        log = (
            tmp_path / "data/fake/user-123" / f"big-{made['uid']}" / "logs/0/big-node-0-0/node.log"
        )
        log.parent.mkdir(parents=True)
        log.write_bytes(b"x" * (64 << 20))
        slow = []
        for number in range(300):
            # Sent at once: the second of the limit begins with the connection.
            slow.append(stack.enter_context(_connect(server.address)))
            slow[-1].sendall(requests[number % 3])
        times = []
        with httpx.Client(timeout=PATIENCE) as client:
            for _ in range(100):
                times.append(health_seconds(client, server))
        assert sorted(times)[98] < 0.5
        until = time.monotonic() + PATIENCE
        while server.stderr.read_text().count("cut off") < 100:
            assert time.monotonic() < until
        first = [b"", b"", b""]
        for number in range(3):
            while data := _received(slow[number]):
                first[number] = first[number] or data
        assert first[0].startswith(b"HTTP/1.1 408")
        assert first[1].startswith(b"HTTP/1.1 408")
        assert first[2].startswith(b"HTTP/1.1 200")
        for each in slow:
            each.close()
        until = time.monotonic() + PATIENCE
        while "astrago_streams 0" not in patient.get(f"{server.address}/metrics").text:
            assert time.monotonic() < until


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /api/trainjob/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1 << 20, 7])
def test_what_is_too_large_or_no_http_is_refused(shared_server, request_, status, size):
    with _connect(shared_server) as connection:
        try:
            for at in range(0, len(request_), size if len(request_) < 1000 else 1 << 20):
                connection.sendall(
                    request_[at : at + max(size, 1)] if len(request_) < 1000 else request_
                )
        except ConnectionError:
            pass
        assert _received(connection).startswith(b"HTTP/1.1 %d" % status)


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    with a_process(tmp_path_factory.mktemp("server") / "data", ASTRAGO_ENGINE="fake") as server:
        yield server.address


def test_two_hundred_streams_and_health(tmp_path):
    with (
        a_process(tmp_path / "data", ASTRAGO_ENGINE="fake") as server,
        _connections(server.address, 200) as streams,
    ):
        made = patient.post(
            f"{server.address}{JOBS}", json=a_request(user="user123", name="big")
        ).json()
        log = (
            tmp_path / "data/fake/user-123" / f"big-{made['uid']}" / "logs/0/big-node-0-0/node.log"
        )
        log.parent.mkdir(parents=True)
        log.write_text("begun\n")
        path = f"{JOBS}/big/logs?follow=true&format=sse&rank=0"
        for each in streams:
            each.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for each in streams:
            text = b""
            while b"begun" not in text:
                text += each.recv(1 << 16)
        times = []
        with httpx.Client(timeout=PATIENCE) as client, log.open("a") as file:
            for burst in range(20):
                file.write("".join(f"line {burst * 50 + n}\n" for n in range(50)))
                file.flush()
                for _ in range(10):
                    times.append(health_seconds(client, server))
        assert sorted(times)[197] < 0.5
        for each in streams:
            text = b""
            while b"line 999" not in text:
                text += each.recv(1 << 18)
        memory = re.search(
            r"process_resident_memory_bytes (\d+)", patient.get(f"{server.address}/metrics").text
        )
        assert memory is not None
        assert int(memory[1]) < 300e6


def test_a_port_that_is_taken_and_a_host_beyond_loopback_are_explained(tmp_path, shared_server):
    port = shared_server.rsplit(":", 1)[1]
    command = [str(ROOT / ".venv/bin/astrago"), "up", "--data", str(tmp_path / "d")]
    taken = subprocess.run([*command, "--port", port], capture_output=True, text=True, timeout=60)
    assert (taken.returncode, "--port" in taken.stderr) == (1, True)
    wide = subprocess.run(
        [*command, "--host", "0.0.0.0"], capture_output=True, text=True, timeout=60
    )
    assert (wide.returncode, "ASTRAGO_AUTH=tokens" in wide.stderr) == (1, True)
    assert "Traceback" not in taken.stderr + wide.stderr


def test_the_commands_of_the_document_work(tmp_path):
    """Every curl of docs/api.md, as it stands there but for the port."""
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE)
    commands = []
    for block in blocks:
        for command in re.split(r"^ {4}(?=curl )", block, flags=re.MULTILINE):
            if command.startswith("curl "):
                commands.append(command)
    assert len(commands) >= 4
    with a_process(tmp_path / "data") as server:
        for command in commands:
            words = shlex.split(command.replace("http://127.0.0.1:8000", server.address))
            done = subprocess.run(words, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, command
            assert '"detail"' not in done.stdout, done.stdout
        job = patient.get(f"{server.address}{JOBS}/hello").json()
        assert job["phase"] == "Complete"
        shown = re.search(r"\n {4}(\{\"name\": \"hello\".*?\"version\": 4\})", text, re.DOTALL)
        assert shown is not None
        assert json.loads(shown[1]).keys() == job.keys()
