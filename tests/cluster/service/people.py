"""A server on the cluster as people have it: `astrago up`, tokens, sign-up; and somebody who has signed up there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cluster.layout import Layout
from tests import patient
from tests.cluster.api import LINGER, PATIENCE, Api, Space
from tests.server.serving import Process, a_process, bearer

from astrago_trainer.client import Job, NotFound, TrainerClient

Json = dict[str, Any]

SETTINGS = {
    "ASTRAGO_ENGINE": "kubernetes",
    "ASTRAGO_AUTH": "tokens",
    "ASTRAGO_SIGNUP": "open",
}
SMALL = {"cpu": {"request": "50m", "limit": 1}, "memory": "256Mi"}


@contextmanager
def a_server(data: Path, **variables: str) -> Iterator[Process]:
    kubeconfig = {"KUBECONFIG": str(Layout.default().kubeconfig)}
    with a_process(data, **{**kubeconfig, **SETTINGS, **variables}) as process:
        yield process


@dataclass(frozen=True)
class Person:
    """Somebody with a token and a namespace."""

    user: str
    namespace: str
    token: str
    address: str
    space: Space
    """The same namespace, seen past the server."""

    @property
    def client(self) -> TrainerClient:
        return TrainerClient(self.address, self.token, namespace=self.namespace)

    def at(self, address: str) -> Person:
        """The same one, after the server has moved."""
        return Person(self.user, self.namespace, self.token, address, self.space)

    def ask(self, method: str, path: str, body: Json | None = None) -> httpx.Response:
        headers = bearer(self.token) if self.token else {}
        return httpx.request(
            method, f"{self.address}{path}", json=body, headers=headers, timeout=PATIENCE
        )

    def first(self, method: str, path: str, body: Json | None = None, **query: Any) -> Json:
        """The first API; asserts success."""
        words = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.ask(method, f"/api/trainjob/{path}?{words}", body)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def submit(self, script: str, **fields: Any) -> Job:
        """Of one node and little room, unless told."""
        wanted = {"framework": "pytorch", "nodes": 1, "resources": SMALL, **fields}
        return self.client.submit(user=self.user, code={"inline": LINGER + script}, **wanted)

    def until(self, name: str, claim: Callable[[Job], object]) -> Job:
        """The first job as the server tells of it for which the claim holds; one that has ended may start again."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for job in self.client.watch(name, timeout_seconds=PATIENCE):
                if claim(job):
                    return job
        raise AssertionError(f"{name} ended before: {self.client.get(name)}")

    def wait(self, name: str) -> Job:
        return self.client.wait(name, timeout_seconds=PATIENCE)

    def delete(self, name: str) -> None:
        """Returns when it is gone for the server."""
        self.client.delete(name)
        self.until_gone(name)

    def until_gone(self, name: str) -> None:
        """A job that has ended is told once more before it goes, and ends a watch."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                for _ in self.client.watch(name, timeout_seconds=PATIENCE):
                    pass
            except NotFound:
                return
        raise AssertionError(f"{name} is still there: {self.client.get(name)}")

    def lines(self, name: str, rank: int = 0, **query: Any) -> list[str]:
        return [line.text for line in self.client.logs(name, rank=rank, **query)]


def sign_up(address: str, api: Api, user: str = "") -> Person:
    user = user or f"user{random.randrange(10**8, 10**9)}"
    answer = patient.post(f"{address}/api/v1/signup", json={"user": user}, timeout=PATIENCE)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    space = Space(api, made["namespace"])
    return Person(user, made["namespace"], made["token"]["secret"], address, space)
