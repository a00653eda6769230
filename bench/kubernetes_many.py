"""A server on a cluster with thousands of TrainJobs: reads, freshness, memory, and what it asks of the API server.

One job goes through the whole product and the operators. The others are copies of all that is there of it then, on
nodes of KWOK's: row, TrainJob, JobSet, Job, pod, and events of those that run. JobSet's and Kubernetes' controllers are
told to leave the copies alone, so that two cores are enough; the Trainer finds a JobSet for each and reads it. So the
server has as many objects as it would have, and less of a history of changes.

The server has an account of its own, and the API server counts its requests by a FlowSchema.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import httpx
from cluster.layout import API_PORT, HOST_IP, NODE_IP, Layout
from cluster.nodes import MARK, node
from cluster.operators import Kubectl
from tests.cluster.api import GROUPS, MERGE_PATCH, Api, Space
from tests.cluster.service.people import Person, a_server, sign_up
from tests.server.serving import Process, bearer
from tests.store.databases import a_new_job

from astrago_trainer.engines.kubernetes.resources import JOB_UID
from astrago_trainer.store import Store
from astrago_trainer.store.jobs import insert_jobs
from bench.api import load
from bench.kubelet import FakeKubelet, fake_kubelet

JOBS = int(os.environ.get("ASTRAGO_BENCH_JOBS", "5000"))
RUNNING = int(os.environ.get("ASTRAGO_BENCH_RUNNING", str(JOBS // 10)))
"""Of them; each has a log that is followed. The others are complete."""
PODS_PER_NODE = 100
AT_ONCE = 16
STREAMS = 50
CHANGES = 100
WINDOW_SECONDS = 5.0
SETTLE_SECONDS = 600.0
NOBODY = "trainer.astrago.io/nobody"
"""Who looks after the copies; Kubernetes' and JobSet's controllers let such objects be."""
FIRST = "firstofmany"

Json = dict[str, Any]


def run(kubectl: Kubectl, api: Api, layout: Layout) -> Iterator[Json]:
    with ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
        account = stack.enter_context(_account(kubectl, data.parent))
        kubeconfig = {"KUBECONFIG": str(data.parent / "kubeconfig")}
        kubelet = stack.enter_context(fake_kubelet(layout))
        nodes = stack.enter_context(_fake_nodes(kubectl, kubelet.port, account))
        with a_server(data, **kubeconfig) as server:
            yield _memory(server, "no jobs", "")
            person = sign_up(server.address, api, account.replace("bench-", "many"))
            cluster = _Cluster(layout, person.namespace)
            stack.callback(_remove, kubectl, cluster, person.namespace)
            person.submit("print('hello')\n", name=FIRST)
            person.wait(FIRST)
        begin = time.monotonic()
        copies = _Copies(cluster, person.space, nodes)
        copies.make()
        made_seconds = time.monotonic() - begin
        asyncio.run(_insert_rows(data, person, copies.uids))
        counter = _Counter(kubectl, account, kubelet)
        begin = time.monotonic()
        with a_server(data, **kubeconfig) as server:
            person = person.at(server.address)
            _until_settled(server, person, kubelet)
            yield {
                "id": f"kubernetes server start to all known, {JOBS} TrainJobs",
                "unit": "s",
                "goal": "",
                "ours": round(time.monotonic() - begin, 1),
                "peer": None,
                "n": 1,
                "api_server_requests": counter.value(),
                "logs_followed": kubelet.open,
                "logs_read_at_once": kubelet.most,
                "copies_made_in_s": round(made_seconds, 1),
            }
            yield _memory(server, f"{JOBS} TrainJobs, {RUNNING} of them followed", "<= 250")
            yield from _reads(person, counter)
            yield _readers(person, counter)
            yield _freshness(person, cluster)
            yield _memory(server, f"{JOBS} TrainJobs, after the load", "<= 250")


# --- what is measured


def _reads(person: Person, counter: _Counter) -> Iterator[Json]:
    base = f"/api/v1/namespaces/{person.namespace}/jobs"
    for name, path, goal in (
        ("status of a running job", f"{base}/{_name(0)}", 10),
        ("status of a complete job", f"{base}/{_name(JOBS - 2)}", 10),
        ("list page of 50", f"{base}?limit=50", 20),
    ):
        before = counter.value()
        rate, times = load(person.address, path, token=person.token, seconds=WINDOW_SECONDS)
        times.sort()
        yield {
            "id": f"kubernetes {name}, {JOBS} TrainJobs, 16 connections",
            "unit": "ms, p99",
            "goal": f"<= {goal}",
            "ours": round(times[len(times) * 99 // 100] * 1e3, 2),
            "p50_ms": round(times[len(times) // 2] * 1e3, 2),
            "peer": None,
            "n": len(times),
            "requests_per_s": round(rate),
            "api_server_requests": counter.value() - before,
        }


def _readers(person: Person, counter: _Counter) -> Json:
    """One in 50 asks for a status, as often as it can; so do all 50."""
    path = f"/api/v1/namespaces/{person.namespace}/jobs/{_name(0)}"
    asked, answered = [], []
    for readers in (0, 1, 50):
        before = counter.value()
        if readers:
            rate, _ = load(
                person.address,
                path,
                token=person.token,
                connections=readers,
                seconds=WINDOW_SECONDS,
            )
        else:
            rate = 0.0
            time.sleep(WINDOW_SECONDS)
        asked.append(round((counter.value() - before) / WINDOW_SECONDS, 2))
        answered.append(round(rate))
    return {
        "id": f"kubernetes requests to the API server, {JOBS} TrainJobs, 0, 1 and 50 readers",
        "unit": "requests/s",
        "goal": "flat",
        "ours": asked,
        "answered_per_s": answered,
        "peer": None,
        "n": 1,
    }


def _freshness(person: Person, cluster: _Cluster) -> Json:
    times = sorted(asyncio.run(_changes(person, cluster)))
    return {
        "id": f"kubernetes change in the cluster to {STREAMS} streams, {JOBS} TrainJobs",
        "unit": "ms, p99",
        "goal": "<= 300",
        "ours": round(times[len(times) * 99 // 100] * 1e3, 1),
        "p50_ms": round(times[len(times) // 2] * 1e3, 1),
        "peer": None,
        "n": len(times),
    }


async def _changes(person: Person, cluster: _Cluster) -> list[float]:
    """From the sending of a change of a JobSet's status to its news on every stream: the write is in it."""
    times: list[float] = []
    seen: asyncio.Queue[tuple[str, int, float]] = asyncio.Queue()
    ready = asyncio.Semaphore(0)
    limits = httpx.Limits(max_connections=STREAMS)

    async def listen(client: httpx.AsyncClient) -> None:
        path = f"/api/v1/namespaces/{person.namespace}/stream"
        async with client.stream("GET", path, headers=bearer(person.token)) as answer:
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                    if name == "ready":
                        ready.release()
                elif line.startswith("data: ") and name == "changed":
                    job = json.loads(line[6:])
                    seen.put_nowait((job["name"], job["restarts"], time.perf_counter()))

    async with httpx.AsyncClient(base_url=person.address, timeout=None, limits=limits) as client:
        tasks = [asyncio.create_task(listen(client)) for _ in range(STREAMS)]
        for _ in tasks:
            await ready.acquire()
        for number in range(min(CHANGES, 10 * RUNNING)):
            job, restarts = _name(number % RUNNING), 1 + number // RUNNING
            begin = time.perf_counter()
            await asyncio.to_thread(cluster.patch_status, "jobsets", job, {"restarts": restarts})
            missing = STREAMS
            while missing:
                name, count, when = await seen.get()
                if (name, count) == (job, restarts):
                    times.append(when - begin)
                    missing -= 1
            await asyncio.sleep(0.1)
            while not seen.empty():
                seen.get_nowait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return times


def _memory(server: Process, when: str, goal: str) -> Json:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    now, peak = (
        round(int(re.findall(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)[0]) * 1.024e-3, 1)
        for name in ("VmRSS", "VmHWM")
    )
    return {
        "id": f"kubernetes server memory, {when}",
        "unit": "MB",
        "goal": goal,
        "ours": now,
        "peak": peak,
        "peer": None,
        "n": 1,
    }


class _Counter:
    """Requests of the server's account as the API server counts them; it leaves out logs, which the kubelet counts."""

    def __init__(self, kubectl: Kubectl, account: str, kubelet: FakeKubelet) -> None:
        self._kubectl = kubectl
        self._kubelet = kubelet
        self._line = re.compile(
            rf'^apiserver_flowcontrol_dispatched_requests_total{{flow_schema="{account}".*}} (\S+)$',
            re.MULTILINE,
        )
        self._begin = self._read()

    def value(self) -> int:
        return self._read() - self._begin

    def _read(self) -> int:
        found = self._line.findall(self._kubectl("get", "--raw", "/metrics"))
        if not found:
            raise RuntimeError("the API server has counted no request of the server's account")
        return round(sum(map(float, found))) + self._kubelet.requests


def _until_settled(server: Process, person: Person, kubelet: FakeKubelet) -> None:
    """Returns when every job that runs is followed, and the server has had nothing to do for two seconds."""
    end = time.monotonic() + SETTLE_SECONDS
    before, quiet = -1.0, 0
    while quiet < 4:
        if time.monotonic() > end:
            raise RuntimeError(
                f"the server is not at rest after {SETTLE_SECONDS:.0f} s: it follows {kubelet.open} of {RUNNING} logs"
            )
        now = _cpu_seconds(server)
        is_quiet = now - before <= 0.05 and kubelet.open >= RUNNING
        quiet = quiet + 1 if is_quiet else 0
        before = now
        time.sleep(0.5)
    for number, phase in ((0, "Running"), (RUNNING - 1, "Running"), (JOBS - 2, "Complete")):
        job = person.client.get(_name(number))
        if job.phase != phase:
            raise RuntimeError(f"{job.name} is {job.phase} ({job.message}), not {phase}")


def _cpu_seconds(server: Process) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- what it is measured on


@contextmanager
def _account(kubectl: Kubectl, folder: Path) -> Iterator[str]:
    """The name of the server's account, of its namespace and of its FlowSchema; its kubeconfig is in the folder."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    schema = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 1000,
            "priorityLevelConfiguration": {"name": "workload-low"},  # as of any account
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [
                        {
                            "kind": "ServiceAccount",
                            "serviceAccount": {"name": name, "namespace": name},
                        }
                    ],
                    "resourceRules": [
                        {
                            "verbs": ["*"],
                            "apiGroups": ["*"],
                            "resources": ["*"],
                            "namespaces": ["*"],
                            "clusterScope": True,
                        }
                    ],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                }
            ],
        },
    }
    kubectl("create", "namespace", name)
    try:
        kubectl("-n", name, "create", "serviceaccount", name)
        kubectl(
            *("create", "clusterrolebinding", name, "--clusterrole=cluster-admin"),
            f"--serviceaccount={name}:{name}",
        )
        kubectl("create", "-f", "-", stdin=json.dumps(schema))
        token = kubectl("-n", name, "create", "token", name, "--duration=4h").strip()
        found = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
        found["users"] = [{"name": name, "user": {"token": token}}]
        found["contexts"][0]["context"]["user"] = name
        found["current-context"] = found["contexts"][0]["name"]
        (folder / "kubeconfig").write_text(json.dumps(found))
        yield name
    finally:
        kubectl("delete", f"clusterrolebinding/{name}", f"flowschema/{name}", "--ignore-not-found")
        kubectl("delete", "namespace", name, "--wait=false")


@contextmanager
def _fake_nodes(kubectl: Kubectl, port: int, mark: str) -> Iterator[list[str]]:
    """Nodes of this run alone: nothing is scheduled there, and nobody who wants another number of them removes them."""
    nodes = []
    for index in range(-(-JOBS // PODS_PER_NODE)):
        each = node(index)
        name = f"{mark}-{index}"
        each["metadata"]["name"] = each["metadata"]["labels"]["kubernetes.io/hostname"] = name
        each["metadata"]["labels"].pop(MARK)
        each["metadata"]["labels"][mark] = "true"
        each["spec"]["taints"] = [{"key": MARK, "effect": "NoSchedule"}]
        each["status"]["addresses"] = [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": name},
        ]
        each["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        nodes.append(each)
    try:
        kubectl("create", "-f", "-", stdin=json.dumps(_list(nodes)))
        yield [each["metadata"]["name"] for each in nodes]
    finally:
        kubectl("delete", "nodes", "-l", mark, "--wait=false")


def _list(items: list[Json]) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _name(number: int) -> str:
    """Running ones come first."""
    return f"{'running' if number < RUNNING else 'complete'}-{number}"


class _Copies:
    """Of everything that the cluster has of the first job."""

    def __init__(self, cluster: _Cluster, space: Space, nodes: list[str]) -> None:
        self._cluster = cluster
        self._space = space
        self._nodes = nodes
        trainjob = space.get("trainjobs", FIRST)
        self._first_uid = trainjob["metadata"]["labels"][JOB_UID]
        self._objects = [
            ("jobsets", space.get("jobsets", FIRST)),
            *(("jobs", each) for each in space.list("jobs")),
            *(("pods", each) for each in space.list("pods")),
            ("trainjobs", trainjob),
            *(("events", each) for each in space.list("events")),
        ]
        self.uids = [uuid.uuid4().hex for _ in range(JOBS - 1)]

    def make(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(self._make, range(JOBS - 1)):
                pass
        self._until_complete(_name(JOBS - 2))

    def _until_complete(self, last: str) -> None:
        """KWOK and the Trainer come to the copies in their order; until they have, nothing else can be measured."""
        selector = f"jobset.sigs.k8s.io/jobset-name={last}"
        end = time.monotonic() + SETTLE_SECONDS
        while not (
            _is_complete(self._space.get("trainjobs", last))
            and self._space.list("pods", labelSelector=selector)[0]["status"]["phase"]
            == "Succeeded"
        ):
            if time.monotonic() > end:
                raise RuntimeError(f"{last} is not complete after {SETTLE_SECONDS:.0f} s")
            time.sleep(1)

    def _make(self, number: int) -> None:
        """In this order: each belongs to the one before, and the Trainer makes no JobSet where one is."""
        name, is_running = _name(number), number < RUNNING
        new = {FIRST: name, self._first_uid: self.uids[number]}
        for resource, first in self._objects:
            if resource == "events" and not is_running:
                continue  # a cluster forgets them after an hour
            text = json.dumps(first)
            for old, word in new.items():
                text = text.replace(old, word)
            each = _fresh(resource, json.loads(text))
            if resource == "pods":
                each["spec"]["nodeName"] = self._nodes[number // PODS_PER_NODE]
                if is_running:  # KWOK completes pods of Jobs, and leaves others as they are
                    del each["metadata"]["ownerReferences"]
            made = self._cluster.create(resource, each)
            new[first["metadata"]["uid"]] = made["metadata"]["uid"]
            if resource == "jobsets" and not is_running:
                self._cluster.patch_status(resource, name, first["status"])


def _is_complete(trainjob: Json) -> bool:
    conditions = trainjob.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Complete", "True") for each in conditions)


def _fresh(resource: str, each: Json) -> Json:
    """As if it had never been stored; nobody but us looks after it."""
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        each["metadata"].pop(key, None)
    each["metadata"].pop("finalizers", None)
    if resource != "events":
        each.pop("status", None)
    if resource in ("jobsets", "jobs"):
        each["spec"]["managedBy"] = NOBODY
    if resource == "jobsets":
        del each["metadata"]["ownerReferences"]  # its TrainJob comes later
    if resource == "jobs":
        del each["spec"]["selector"]
        for labels in (each["metadata"]["labels"], each["spec"]["template"]["metadata"]["labels"]):
            for key in [key for key in labels if key.endswith(("controller-uid", "job-name"))]:
                del labels[key]
    return each


def _remove(kubectl: Kubectl, cluster: _Cluster, namespace: str) -> None:
    """All kinds at once: a namespace that is deleted takes them one after the other."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(cluster.delete_all, ("events", "pods", "jobs", "jobsets", "trainjobs")))
    kubectl("delete", "namespace", namespace, "--timeout=900s")


class _Cluster:
    """A namespace of it; every thread keeps a connection of its own, for many small writes."""

    def __init__(self, layout: Layout, namespace: str) -> None:
        self._namespace = namespace
        self._tls = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        self._tls.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
        self._own = threading.local()

    def create(self, resource: str, manifest: Json) -> Json:
        return self._ask("POST", self._path(resource), manifest)

    def patch_status(self, resource: str, name: str, status: Json) -> None:
        self._ask("PATCH", f"{self._path(resource)}/{name}/status", {"status": status})

    def delete_all(self, resource: str) -> None:
        """The API server ends a request after a minute, however much is left; then it is asked again."""
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for _ in range(20):
            try:
                self._ask("DELETE", self._path(resource), options)
                return
            except (HTTPException, TimeoutError):
                del self._own.connection
        raise RuntimeError(f"{resource} of {self._namespace} cannot be removed")

    def _path(self, resource: str) -> str:
        return f"{GROUPS[resource]}/namespaces/{self._namespace}/{resource}"

    def _ask(self, method: str, path: str, body: Json) -> Json:
        if not hasattr(self._own, "connection"):
            self._own.connection = HTTPSConnection(NODE_IP, API_PORT, context=self._tls)
        content = MERGE_PATCH if method == "PATCH" else "application/json"
        self._own.connection.request(method, path, json.dumps(body), {"Content-Type": content})
        answer = self._own.connection.getresponse()
        found: Json = json.loads(answer.read())
        if answer.status == 504:
            raise TimeoutError(f"{method} {path}")
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {found}")
        return found


async def _insert_rows(data: Path, person: Person, uids: list[str]) -> None:
    store = await Store.open(f"sqlite:///{data / 'astrago.db'}")
    now = time.time()
    for first in range(0, len(uids), 1000):
        news = []
        for number in range(first, min(first + 1000, len(uids))):
            is_running = number < RUNNING
            end = (
                {} if is_running else {"outcome": "Complete", "finished_at": now, "settled_at": now}
            )
            news.append(
                a_new_job(
                    _name(number),
                    uid=uids[number],
                    namespace=person.namespace,
                    owner=person.user,
                    engine="kubernetes",
                    nodes=1,
                    ttl_seconds=None,
                    max_restarts=3,
                    is_handed=True,
                    phase="Running" if is_running else "Complete",
                    created_at=now,
                    started_at=now,
                    **end,
                )
            )
        await asyncio.gather(*(store.write(insert_jobs, new) for new in news))
    await store.close()
