"""The kubernetes engine on the test cluster beside kubectl and the stock runtime: starts, deletions, recoveries.

Both sides run the same manifests in one namespace of this run alone, by turns. Times come from one clock, because pods
run on this machine: the containers print `time_ns`, and who submits holds the beginning.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cluster.holder import Holder
from cluster.layout import Layout
from cluster.operators import Kubectl
from tests.cluster.api import Api
from tests.cluster.service.people import SMALL, Person, a_server, sign_up

from astrago_trainer import catalogue
from bench import kubernetes_many
from bench.measure import comparison, interleaved

ROUNDS = int(os.environ.get("ASTRAGO_BENCH_ROUNDS", "20"))
KILLS = 3
"""Of one job: as many as our runtimes restart it."""
RECOVERY_ROUNDS = max(1, ROUNDS // 5)
CAP_SECONDS = 120.0
"""A recovery that takes longer counts as this long."""
JOBSET = "jobset.sigs.k8s.io/jobset-name"
INDEX = "batch.kubernetes.io/job-completion-index"

Json = dict[str, Any]

SAYS = "import time\nprint('clock', time.time_ns(), flush=True)\n"
SLEEPS = "import time\nprint('ready', flush=True)\ntime.sleep(3600)\n"
STEPS = r"""
import os, socket, sys, time
begun = time.time_ns()
rank, place = int(os.environ["PET_NODE_RANK"]), (os.environ["PET_MASTER_ADDR"], 29431)
if rank == 0:
    peer = socket.create_server(("", place[1])).accept()[0].makefile("rw")
else:
    while True:
        try:
            peer = socket.create_connection(place, timeout=1).makefile("rw")
            break
        except OSError:
            time.sleep(0.05)
for step in range(10**9):
    time.sleep(0.1)
    peer.write("gradient\n")
    peer.flush()
    if not peer.readline():  # its peer is gone: training ends with an error, as a collective of gloo does
        sys.exit(1)
    print("step", step, time.time_ns(), begun, flush=True)
"""
_numbers = itertools.count()


def run() -> Iterator[Json]:
    layout = Layout.default()
    if not (layout.kubeconfig.exists() and Holder(layout).is_up()):
        yield {"id": "kubernetes", "needs": "a cluster on this machine: make cluster"}
        return
    kubectl, api = Kubectl(layout.kubeconfig), Api(layout)
    for name in catalogue.names():
        kubectl("apply", "--server-side", "-f", "-", stdin=catalogue.runtime_text(name))
    with tempfile.TemporaryDirectory() as folder, a_server(Path(folder) / "data") as server:
        person = sign_up(server.address, api, f"bench{random.randrange(10**8, 10**9)}")
        bench = _Bench(person, kubectl, Path(folder))
        try:
            for measure in (bench.starts, bench.deletes, bench.recoveries):
                yield {**measure(), **surroundings(layout)}
        finally:
            kubectl("delete", "namespace", person.namespace, "--wait=false", check=False)
    for line in kubernetes_many.run(kubectl, api, layout):
        yield {**line, **surroundings(layout)}


def surroundings(layout: Layout) -> Json:
    """What else the machine did is part of a figure of two cores that the cluster shares."""
    return {
        "trainer": (layout.run / "profile").read_text(encoding="utf-8"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


class _Bench:
    def __init__(self, person: Person, kubectl: Kubectl, folder: Path) -> None:
        self.person = person
        self.space = person.space
        self.kubectl = kubectl
        self.folder = folder

    # --- from the request to the first line in all pods

    def starts(self) -> Json:
        mine, theirs = interleaved(self._start_ours, self._start_kubectl, ROUNDS)
        return {
            "id": "kubernetes submit to the first line in all pods, 2 nodes",
            "unit": "ms",
            "goal": "<= 1.05",
            **comparison(mine, theirs),
            "peer_command": "kubectl apply -f of the same manifests",
            **_spread(mine, theirs),
        }

    def _start_ours(self) -> float:
        name = _name("start")
        begin = time.time_ns()
        self._submit(name, SAYS)
        first = self._last_first_line(name)
        self.person.delete(name)
        return (first - begin) / 1e6

    def _start_kubectl(self) -> float:
        with self._manifests(SAYS) as (name, file):
            begin = time.time_ns()
            self._kubectl("apply", "-f", str(file))
            return (self._last_first_line(name) - begin) / 1e6

    def _last_first_line(self, name: str) -> int:
        pods = self._until_pods(name, lambda pod: pod["status"]["phase"] == "Succeeded")
        logs = [self.space.log(pod["metadata"]["name"]) for pod in pods]
        return max(int(re.findall(r"^clock (\d+)$", log, re.MULTILINE)[0]) for log in logs)

    # --- from the deletion to the last pod

    def deletes(self) -> Json:
        mine, theirs = interleaved(self._delete_ours, self._delete_kubectl, ROUNDS)
        return {
            "id": "kubernetes delete to all pods gone, 2 nodes, training that ends at SIGTERM",
            "unit": "ms",
            "goal": "p95 <= 5000",
            **comparison(mine, theirs),
            "peer_command": "kubectl delete trainjob of the same manifests",
            **_spread(mine, theirs),
        }

    def _delete_ours(self) -> float:
        name = _name("delete")
        self._submit(name, SLEEPS)
        self._until_ready(name)
        taken = self._until_gone(name, lambda: self.person.client.delete(name))
        self.person.until_gone(name)
        return taken

    def _delete_kubectl(self) -> float:
        with self._manifests(SLEEPS) as (name, file):
            self._kubectl("apply", "-f", str(file))
            self._until_ready(name)
            return self._until_gone(name, lambda: self._kubectl("delete", "trainjob", name))

    def _until_ready(self, name: str) -> None:
        for pod in self._until_pods(name, lambda pod: pod["status"]["phase"] == "Running"):
            lines = self.space.follow(pod["metadata"]["name"])
            if not any(line == "ready" for line in lines):
                raise RuntimeError(f"{pod['metadata']['name']} ended before it was deleted")
            lines.close()  # type: ignore[attr-defined]

    def _until_gone(self, name: str, delete: Callable[[], object]) -> float:
        """In milliseconds. The deletion has a thread, because it may return later than the last pod goes."""
        thread = threading.Thread(target=delete)
        begin = time.monotonic()
        thread.start()
        self.space.until_gone("pods", labelSelector=f"{JOBSET}={name}")
        taken = time.monotonic() - begin
        thread.join()
        return taken * 1000

    # --- from the kill of a rank to the next step

    def recoveries(self) -> Json:
        self._make_stock_runtime()
        mine: list[list[float]] = []
        theirs: list[list[float]] = []
        for index in range(RECOVERY_ROUNDS):
            order = [(mine, self._recover_ours), (theirs, self._recover_stock)]
            for results, measure in order if index % 2 == 0 else reversed(order):
                results.append(measure())
        ours, peer = ([each for job in jobs for each in job] for jobs in (mine, theirs))
        return {
            "id": f"kubernetes kill of a rank to the next step, 2 nodes, {KILLS} kills of a job",
            "unit": "ms",
            "goal": "<= 0.7",
            **comparison(ours, peer),
            # The peer's kills differ by design: in place at first, then in back-off. A job meets all of them.
            "mean_of_a_job": comparison(_means(mine), _means(theirs)),
            "peer_command": f"runtime torch-distributed with failurePolicy.maxRestarts {KILLS}",
            "ours_by_kill": _medians(mine),
            "peer_by_kill": _medians(theirs),
            "capped": [sum(ms >= CAP_SECONDS * 1e3 for ms in each) for each in (ours, peer)],
        }

    def _recover_ours(self) -> list[float]:
        name = _name("steps")
        self._submit(name, STEPS, env=[{"name": "BENCH", "value": name}])
        taken = self._kills(name)
        self.person.delete(name)
        return taken

    def _recover_stock(self) -> list[float]:
        name = _name("stock")
        self.space.create(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": name},
                "spec": {
                    "runtimeRef": {"kind": "TrainingRuntime", "name": "stock"},
                    "trainer": {
                        "numNodes": 2,
                        "command": ["python3", "-c", STEPS],
                        "env": [{"name": "BENCH", "value": name}],
                        "resourcesPerNode": {"requests": {"cpu": "50m", "memory": "256Mi"}},
                    },
                },
            }
        )
        taken = self._kills(name)
        self.space.delete("trainjobs", name)
        self.space.until_gone("pods", labelSelector=f"{JOBSET}={name}")
        return taken

    def _make_stock_runtime(self) -> None:
        found = json.loads(
            self.kubectl("get", "clustertrainingruntime", "torch-distributed", "-o", "json")
        )
        found["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": KILLS}
        self.space.create(
            {
                "apiVersion": found["apiVersion"],
                "kind": "TrainingRuntime",
                "metadata": {"name": "stock"},
                "spec": found["spec"],
            }
        )

    def _kills(self, name: str) -> list[float]:
        """One after the other; the next comes when some steps have been done again."""
        self._next_step(name, after=0)
        taken = []
        for _ in range(KILLS):
            now = time.time_ns()
            os.kill(_process(name, rank=1), signal.SIGKILL)
            taken.append((self._next_step(name, after=now) - now) / 1e6)
        return taken

    def _next_step(self, name: str, *, after: int) -> int:
        """When rank 1 finished the first step of a process that began after that moment; returns five steps later."""
        selector = f"{JOBSET}={name},{INDEX}=1"
        end = time.monotonic() + CAP_SECONDS
        while time.monotonic() < end:
            for pod in self.space.list("pods", labelSelector=selector):
                said = self.space.try_log(pod["metadata"]["name"])
                found = re.findall(r"^step \d+ (\d+) (\d+)$", said.text, re.MULTILINE)
                steps = [int(stamp) for stamp, begun in found if int(begun) > after]
                if len(steps) >= 5:
                    return steps[0]
            time.sleep(0.1)
        if not after:
            raise RuntimeError(f"no step of {name} within {CAP_SECONDS:.0f} s")
        return after + int(CAP_SECONDS * 1e9)

    # --- what both sides have in common

    def _submit(self, name: str, script: str, **fields: Any) -> None:
        """Its code is its own, so that no earlier ConfigMap is found."""
        self.person.submit(f"{script}# {name}\n", name=name, nodes=2, **fields)

    @contextlib.contextmanager
    def _manifests(self, script: str) -> Iterator[tuple[str, Path]]:
        """What our engine writes for such a job, under another name, in a file; removed at the end."""
        name = _name("peer")
        body = {
            "user": self.person.user,
            "framework": "pytorch",
            "name": name,
            "nodes": 2,
            "resources": SMALL,
            "code": {"inline": f"{script}# {name}\n"},
        }
        path = f"/api/v1/namespaces/{self.person.namespace}/jobs:retell?form=trainjob"
        answer = self.person.ask("POST", path, body).raise_for_status()
        file = self.folder / f"{name}.yaml"
        # Its code ConfigMap has the user's name here; of two jobs at once the service names the second one otherwise.
        file.write_text(answer.json()["text"].replace(f"{self.person.user}-train-script", name))
        try:
            yield name, file
        finally:
            self._kubectl("delete", "trainjob", name, "--ignore-not-found")
            self.space.until_gone("pods", labelSelector=f"{JOBSET}={name}")

    def _kubectl(self, *words: str) -> str:
        return self.kubectl("-n", self.person.namespace, *words)

    def _until_pods(self, name: str, claim: Callable[[Json], bool]) -> list[Json]:
        return self.space.until(
            "pods",
            lambda pods: len(pods) == 2 and all(map(claim, pods)),
            labelSelector=f"{JOBSET}={name}",
        )


def _name(what: str) -> str:
    return f"{what}-{next(_numbers)}"


def _process(job: str, *, rank: int) -> int:
    """The number here of the python that trains as this rank of the job."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
            is_python = (path / "comm").read_text().startswith("python")
        except OSError:
            continue
        wanted = {f"BENCH={job}".encode(), f"PET_NODE_RANK={rank}".encode()}
        if is_python and wanted <= set(variables):
            found.append(int(path.name))
    if len(found) != 1:
        raise RuntimeError(f"one process of rank {rank} of {job} was expected, found {found}")
    return found[0]


def _means(jobs: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(kills) for kills in jobs]


def _medians(rounds: Sequence[Sequence[float]]) -> list[int]:
    return [round(statistics.median(kill)) for kill in zip(*rounds, strict=True)]


def _spread(mine: Sequence[float], theirs: Sequence[float]) -> Json:
    return {
        f"{who}_{name}": round(sorted(times)[min(len(times) * share // 100, len(times) - 1)])
        for who, times in (("ours", mine), ("peer", theirs))
        for name, share in (("p50", 50), ("p95", 95))
    }
