"""The API server, asked directly: kubectl hides the HTTP codes, and a process per question is slow on a small machine.

Waiting is watching: `watch` yields the objects whenever one of them changes, so nothing is asked twice, no state is
missed and no test sleeps.
"""

from __future__ import annotations

import json
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlencode

from cluster.layout import API_PORT, NODE_IP, Layout

Json = dict[str, Any]

PATIENCE = 180.0
"""Seconds that a test waits for anything. Only a failing test takes them: the machine may be busy."""

LINGER = "import atexit, sys, time; atexit.register(lambda: (sys.stdout.flush(), time.sleep(1)))\n"
"""Begins a script whose log is read: of one that ends at once containerd may lose all (docs/kubernetes-engine.md)."""

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
GROUPS = {
    "trainjobs": TRAINER,
    "trainingruntimes": TRAINER,
    "clustertrainingruntimes": TRAINER,
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "jobs": "/apis/batch/v1",
    "configmaps": "/api/v1",
    "events": "/api/v1",
    "pods": "/api/v1",
    "resourcequotas": "/api/v1",
    "limitranges": "/api/v1",
    "serviceaccounts": "/api/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "services": "/api/v1",
}
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, refusals too."""

    code: int
    text: str
    warnings: tuple[str, ...]

    @property
    def body(self) -> Json:
        found: Json = json.loads(self.text)
        return found

    @property
    def message(self) -> str:
        """The words of a refusal."""
        return str(self.body["message"])


class Api:
    """The API server of the running cluster, as its administrator."""

    def __init__(self, layout: Layout) -> None:
        self._tls = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        self._tls.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")

    def ask(
        self, method: str, path: str, body: Json | None = None, content: str = "application/json"
    ) -> Answer:
        with closing(self._connect()) as connection:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": content})
            response = connection.getresponse()
            warnings = tuple(response.headers.get_all("Warning", ()))
            return Answer(response.status, response.read().decode(), warnings)

    def lines(self, path: str, end: float) -> Iterator[str]:
        """A response that goes on, line by line; TimeoutError when `end` (of time.monotonic) is passed."""
        with closing(self._connect()) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200, response.read().decode()
            while line := self._line(connection, response, end):
                yield line

    def _line(self, connection: HTTPSConnection, response: HTTPResponse, end: float) -> str:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:  # it is None once the server has said that nothing follows
            connection.sock.settimeout(left)
        return response.readline().decode()

    def _connect(self) -> HTTPSConnection:
        return HTTPSConnection(NODE_IP, API_PORT, context=self._tls, timeout=PATIENCE)


class Space:
    """One namespace. `try_…` gives back any answer, the others insist on success."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name

    def try_create(self, manifest: Json, validation: str = "Strict", **query: str) -> Answer:
        resource = manifest["kind"].lower() + "s"
        path = self._path(resource, fieldValidation=validation, **query)
        return self.api.ask("POST", path, manifest)

    def create(self, *manifests: Json) -> None:
        for manifest in manifests:
            answer = self.try_create(manifest)
            assert answer.code == 201, answer.text
            if manifest["kind"] == "TrainingRuntime":
                self._wait_until_the_webhook_knows(manifest["metadata"]["name"])

    def try_patch(self, resource: str, name: str, change: Json) -> Answer:
        path = self._path(resource, name, fieldValidation="Strict")
        return self.api.ask("PATCH", path, change, MERGE_PATCH)

    def patch(self, resource: str, name: str, change: Json) -> Json:
        answer = self.try_patch(resource, name, change)
        assert answer.code == 200, answer.text
        return answer.body

    def delete(self, resource: str, name: str, propagation: str = "Background") -> None:
        options = {"propagationPolicy": propagation}
        answer = self.api.ask("DELETE", self._path(resource, name), options)
        assert answer.code in (200, 202), answer.text

    def find(self, resource: str, name: str) -> Json | None:
        answer = self.api.ask("GET", self._path(resource, name))
        assert answer.code in (200, 404), answer.text
        return answer.body if answer.code == 200 else None

    def get(self, resource: str, name: str) -> Json:
        found = self.find(resource, name)
        assert found is not None, f"no {resource}/{name} in {self.name}"
        return found

    def list(self, resource: str, **query: str) -> list[Json]:
        answer = self.api.ask("GET", self._path(resource, **query))
        assert answer.code == 200, answer.text
        found: list[Json] = answer.body["items"]
        return found

    def try_log(self, pod: str, container: str = "node", **query: str) -> Answer:
        return self.api.ask("GET", self._path("pods", f"{pod}/log", container=container, **query))

    def log(self, pod: str, container: str = "node", **query: str) -> str:
        answer = self.try_log(pod, container, **query)
        assert answer.code == 200, answer.text
        return answer.text

    def follow(self, pod: str, container: str = "node") -> Iterator[str]:
        """The lines of a log as they are written, until the container ends."""
        path = self._path("pods", f"{pod}/log", container=container, follow="true")
        for line in self.api.lines(path, time.monotonic() + PATIENCE):
            yield line.rstrip("\n")

    def watch(self, resource: str, **query: str) -> Iterator[list[Json]]:
        """The objects as they are, then again after each change; TimeoutError when nobody stops it."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.api.ask("GET", self._path(resource, **query)).body
            objects = {each["metadata"]["name"]: each for each in answer["items"]}
            yield list(objects.values())
            version = answer["metadata"]["resourceVersion"]
            path = self._path(resource, watch="true", resourceVersion=version, **query)
            for line in self.api.lines(path, end):  # the server may end it: then listed anew
                event = json.loads(line)
                if event["type"] == "ERROR":
                    break
                changed = event["object"]
                objects.pop(changed["metadata"]["name"], None)
                if event["type"] != "DELETED":
                    objects[changed["metadata"]["name"]] = changed
                yield list(objects.values())

    def until(
        self, resource: str, claim: Callable[[list[Json]], object], **query: str
    ) -> list[Json]:
        """Waits until the claim holds for all objects together, and gives them back."""
        objects: list[Json] = []
        try:
            for objects in self.watch(resource, **query):
                if claim(objects):
                    return objects
        except TimeoutError:
            pass
        seen = [{key: each.get(key) for key in ("metadata", "status")} for each in objects]
        raise AssertionError(f"not within {PATIENCE:.0f} s; {resource} at the end: {seen}")

    def until_one(self, resource: str, name: str, claim: Callable[[Json], object] = bool) -> Json:
        """Waits until the named object is there and the claim holds for it."""
        selector = f"metadata.name={name}"
        return self.until(resource, lambda all_: all_ and claim(all_[0]), fieldSelector=selector)[0]

    def until_gone(self, resource: str, **query: str) -> None:
        self.until(resource, lambda objects: not objects, **query)

    def until_event(self, reason: str, about: str) -> Json:
        """The first event with this reason about an object of this name."""
        selector = f"involvedObject.name={about},reason={reason}"
        return self.until("events", bool, fieldSelector=selector)[0]

    def events(self, about: str) -> list[Json]:
        return self.list("events", fieldSelector=f"involvedObject.name={about}")

    def settle(self, runtime: str = "rt") -> None:
        """Returns when both controllers have worked off what they had to do before this call.

        Nothing can be waited for that shall not happen. But the controllers take things in turn: when a job that is
        made now has its JobSet and its Job, those that were changed before have had their turn.
        """
        name = f"later-{uuid.uuid4().hex[:6]}"
        ref = {"kind": "TrainingRuntime", "name": runtime}
        self.create(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": name},
                "spec": {"runtimeRef": ref, "suspend": True},
            }
        )
        self.until_one("jobs", f"{name}-node-0")

    def _wait_until_the_webhook_knows(self, runtime: str) -> None:
        """It reads runtimes from a cache that lags a little, and there is nothing to watch for that."""
        ref = {"kind": "TrainingRuntime", "name": runtime}
        probe = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "probe"},
            "spec": {"runtimeRef": ref},
        }
        end = time.monotonic() + PATIENCE
        while "must be created before the TrainJob" in self.try_create(probe, dryRun="All").text:
            assert time.monotonic() < end, f"the webhook does not see {runtime}"

    def _path(self, resource: str, name: str = "", **query: str) -> str:
        path = f"{GROUPS[resource]}/namespaces/{self.name}/{resource}"
        return f"{path}/{name}?{urlencode(query)}" if name else f"{path}?{urlencode(query)}"
