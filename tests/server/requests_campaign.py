"""Generated requests over every route: `python -m tests.server.requests_campaign --count 100000`.

Three tenants and callers without a token, against a real server with the local engine. No answer may be a fault of the
server, none may hold what belongs to another tenant, and the server answers `/healthz` meanwhile. A table, then
"N passed, M failed"; the exit status is 1 when something failed. The seed gives the same requests again; what jobs
do meanwhile differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from tests.engines.ending import end_jobs
from tests.figures import Table, percentile
from tests.server.generating import Generator, Known, Operation, Request, operations_of
from tests.server.sampling import sampled
from tests.server.serving import PATIENCE, Process, a_process, bearer

TENANTS = ("a", "b", "c")
CALLERS = 12
"""That send at a time."""
NAMES = 12
"""Names of jobs that a tenant uses; generated requests make and delete them again and again."""
GUESSED = 4
"""Of these, names that other callers know; nobody but their tenant ever sends the others."""
STREAM_SECONDS = 0.1
MOST_SHOWN = 10
CANARY = re.compile(r"canary[abc][0-9a-z-]*")
"""In everything that is a tenant's: names, variables, logs, events. The letter after it says whose."""


@dataclass(frozen=True)
class Limits:
    health: float = 0.1
    """Seconds, p99 of /healthz."""
    held: float = 1.0
    """Seconds, the longest that the event loop was held."""


@dataclass
class Tenant:
    letter: str
    token: str = ""
    namespace: str = ""
    user: str = ""
    uids: list[str] = field(default_factory=list)
    token_ids: list[str] = field(default_factory=list)
    page_tokens: list[str] = field(default_factory=list)

    @property
    def secret(self) -> str:
        """In variables and logs; no request of another caller has it."""
        return f"canary{self.letter}9secret"

    @property
    def code(self) -> str:
        return f"print('loss=1 {self.secret}', flush=True)\n"

    def names(self) -> list[str]:
        return [f"canary{self.letter}-{number}" for number in range(NAMES)]

    def values_for_others(self) -> dict[str, list[str]]:
        """What another caller could know, or have guessed."""
        known = self.values()
        del known["secret"]
        return {**known, "name": known["name"][:GUESSED]}

    def values(self) -> dict[str, list[str]]:
        """By the name of the parameter that takes them."""
        return {
            "namespace": [self.namespace],
            "name": self.names(),
            "user": [self.user],
            "uid": self.uids[-20:],
            "id": self.token_ids[-5:],
            "page_token": self.page_tokens[-5:],
            "cursor": ["0:0:0", "0:0:10"],
            "secret": [self.secret],
        }


def foreign_canaries(
    text: str, letter: str, request: Request, stored: Set[str] = frozenset()
) -> list[str]:
    """What the text has of tenants other than this one, and the request did not bring itself.

    `stored`: what this caller has sent before, for example as the label of a token, and may read again.
    """
    found = [
        each
        for each in CANARY.findall(text)
        if each[len("canary")] != letter and each not in stored
    ]
    if not found:
        return []
    sent = " ".join(
        [unquote(request.path), *request.headers.values(), request.body.decode(errors="replace")]
    )
    return [each for each in found if each.rstrip("-") not in sent]


class Campaign:
    def __init__(self, server: Process, seed: int) -> None:
        self._server = server
        self._seed = seed
        self._tenants = {letter: Tenant(letter) for letter in TENANTS}
        self._operations: list[Operation] = []
        self._choices: list[Operation] = []
        self._stored: dict[str, set[str]] = {letter: set() for letter in (*TENANTS, "")}
        self.statuses: Counter[int] = Counter()
        self.routes: Counter[str] = Counter()
        self.good_routes: set[str] = set()
        self.unavailable = self.aborted = self.unsendable = 0
        self.faults: list[str] = []
        self.leaks: list[str] = []
        self.held = 0.0

    async def run(self, count: int) -> None:
        limits = httpx.Limits(max_connections=CALLERS * 2, max_keepalive_connections=CALLERS)
        async with httpx.AsyncClient(
            base_url=self._server.address, timeout=PATIENCE, limits=limits
        ) as client:
            await self._prepare(client)
            numbers = iter(range(count))
            await asyncio.gather(*(self._caller(client, numbers) for _ in range(CALLERS)))
            text = (await client.get("/metrics")).text
            found = re.search(r"^astrago_event_loop_held_seconds_max (\S+)", text, re.M)
            assert found is not None
            self.held = float(found[1])

    async def _prepare(self, client: httpx.AsyncClient) -> None:
        self._operations = operations_of((await client.get("/openapi.json")).json())
        # Else hardly a job would be there: most other requests that change something delete or refuse one.
        self._choices = [*self._operations, *(each for each in self._operations if each.starts_job)]
        data = Path(self._server.process.args[-1])  # type: ignore[index,arg-type]
        boss = bearer((data / "admin-token").read_text().strip())
        for tenant in self._tenants.values():
            tenant.user = f"canary{tenant.letter}-user"
            tenant.namespace = f"canary{tenant.letter}-ns"
            await _asked(client, "POST", "/api/v1/users", boss, {"name": tenant.user})
            body = {"namespace": tenant.namespace, "title": tenant.secret}
            await _asked(client, "POST", "/api/v1/tenants", boss, body)
            member = f"/api/v1/tenants/{tenant.namespace}/members/{tenant.user}"
            await _asked(client, "PUT", member, boss, {"role": "administrator"})
            made = await _asked(client, "POST", "/api/v1/tokens", boss, {"user": tenant.user})
            tenant.token = made["secret"]
            own = bearer(tenant.token)
            made = await _asked(client, "POST", "/api/v1/tokens", own, {"label": tenant.secret})
            tenant.token_ids.append(made["id"])
            jobs = f"/api/v1/namespaces/{tenant.namespace}/jobs"
            for name in tenant.names()[:8]:
                job = {
                    "name": name,
                    "framework": "pytorch",
                    "code": {"inline": tenant.code},
                    "resources": {"cpu": "100m", "memory": "64Mi"},
                    "env": [{"name": "SECRET", "value": tenant.secret}],
                }
                tenant.uids.append((await _asked(client, "POST", jobs, own, job))["uid"])
            page = await _asked(client, "GET", jobs + "?limit=1", own)
            tenant.page_tokens.append(page["next_page_token"])

    async def _caller(self, client: httpx.AsyncClient, numbers: Any) -> None:
        for number in numbers:
            letter, request = self._generated(number)
            await self._send(client, number, letter, request)

    def _generated(self, number: int) -> tuple[str, Request]:
        """Whose it is: a tenant's letter, or nothing; and the request."""
        chance = random.Random(f"{self._seed} {number}")
        letter = chance.choice((*TENANTS, *TENANTS, ""))
        others: dict[str, list[str]] = {}
        for tenant in self._tenants.values():
            if tenant.letter != letter:
                for name, values in tenant.values_for_others().items():
                    others.setdefault(name, []).extend(values)
        # A caller without a token tries what is a tenant's, as if it were its own.
        own = self._tenants[letter or chance.choice(TENANTS)]
        mine = own.values() if letter else {**own.values_for_others(), "secret": ["none"]}
        known = Known(mine, others)
        while True:
            operation = chance.choice(self._choices)
            request = Generator(chance, known, own.code if letter else "pass").request(operation)
            if not self._would_end_campaign(request, own):
                break
        if letter:
            request.headers |= bearer(own.token)
        elif chance.random() < 0.3:
            token = chance.choice(list(self._tenants.values())).token
            cut = chance.choice((token[:-1], token + "x", token.upper(), "", "x" * 7000))
            request.headers |= bearer(cut)
        return letter, request

    def _would_end_campaign(self, request: Request, own: Tenant) -> bool:
        """Whether it takes the caller's own access away, or gives another caller access."""
        if request.method == "GET":
            return False
        path = unquote(request.path)
        is_member = path.startswith(f"/api/v1/tenants/{own.namespace}/members/canary")
        return is_member or path.startswith(f"/api/v1/users/{own.user}")

    async def _send(
        self, client: httpx.AsyncClient, number: int, letter: str, request: Request
    ) -> None:
        if request.method != "GET":  # before another request of this caller can read it
            self._stored[letter].update(CANARY.findall(unquote(request.path)))
            self._stored[letter].update(CANARY.findall(request.body.decode(errors="replace")))
        try:
            async with client.stream(
                request.method, request.path, headers=request.headers, content=request.body
            ) as answer:
                text = await _read(answer, request.is_stream)
        except (httpx.InvalidURL, UnicodeError, httpx.LocalProtocolError):
            self.unsendable += 1  # no client of this kind can send it
            return
        except httpx.TransportError as error:
            # A body over the limit is answered and the connection closed while it is being sent.
            self.aborted += 1
            if len(request.body) < 65536:
                self._fault(number, letter, request, f"no answer: {error!r}")
            return
        self.statuses[answer.status_code] += 1
        self.routes[request.operation] += 1
        if answer.status_code < 300:
            self.good_routes.add(request.operation)
            self._learn(letter, request, answer, text)
        if answer.status_code == 503 and "retry-after" in answer.headers:
            self.unavailable += 1
        elif answer.status_code >= 500 or "Traceback (most recent" in text:
            self._fault(number, letter, request, f"{answer.status_code} {text[:300]}")
        stored = self._stored[letter]
        if found := foreign_canaries(f"{text} {answer.headers}", letter, request, stored):
            self.leaks.append(self._line(number, letter, request, f"has {found[:3]}"))

    def _learn(self, letter: str, request: Request, answer: httpx.Response, text: str) -> None:
        if not letter or not text.startswith("{"):
            return
        body, tenant = answer_json(text), self._tenants[letter]
        if isinstance(uid := body.get("uid"), str):
            tenant.uids.append(uid)
        if isinstance(token := body.get("next_page_token"), str):
            tenant.page_tokens.append(token)
        if request.operation == "createToken":
            tenant.token_ids.append(body["id"])

    def _fault(self, number: int, letter: str, request: Request, what: str) -> None:
        self.faults.append(self._line(number, letter, request, what))

    def _line(self, number: int, letter: str, request: Request, what: str) -> str:
        body = request.body[:300].decode(errors="replace")
        return (
            f"seed {self._seed}, request {number} of {letter or 'nobody'}: {request.method} "
            f"{request.path[:300]} ({len(request.body)} bytes: {body!r}): {what}"
        )

    def table(self, limits: Limits, health: list[float], *, needs_all_routes: bool) -> Table:
        table = Table()
        for line in (self.faults + self.leaks)[:MOST_SHOWN]:
            table.lines.append(line)
        table.note("seed", self._seed)
        table.note("requests that were answered", self.statuses.total())
        for status, count in sorted(self.statuses.items()):
            table.note(f"answers with {status}", count)
        table.note("answers with 503 and Retry-After", self.unavailable)
        table.note("large bodies cut off while sent", self.aborted)
        table.note("requests that no client can send", self.unsendable)
        names = {each.name for each in self._operations}
        table.note("operations with an answer below 300", f"{len(self.good_routes)}/{len(names)}")
        if needs_all_routes:
            table.equal("operations without a request", len(names - set(self.routes)), 0)
        table.equal("faults of the server (5xx)", len(self.faults), 0)
        table.equal("leaks between tenants", len(self.leaks), 0)
        table.at_most("/healthz, p99", percentile(health, 99) * 1000, limits.health * 1000, " ms")
        table.note("/healthz, longest", f"{max(health, default=0) * 1000:.1f} ms")
        table.at_most("event loop held at most", self.held, limits.held, " s")
        return table


def answer_json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:  # the beginning of a stream
        return {}
    return found if isinstance(found, dict) else {}


async def _asked(
    client: httpx.AsyncClient, method: str, path: str, headers: dict[str, str], body: Any = None
) -> Any:
    answer = await client.request(method, path, headers=headers, json=body)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json() if answer.content else None


async def _read(answer: httpx.Response, is_stream: bool) -> str:
    """All of it; of a stream what comes in a moment."""
    if not is_stream:
        return (await answer.aread()).decode(errors="replace")
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            async for part in answer.aiter_bytes():
                parts.append(part)
    except TimeoutError:
        pass
    return b"".join(parts).decode(errors="replace")


def run_campaign(folder: Path, count: int, seed: int, limits: Limits | None = None) -> Table:
    health: list[float] = []
    with a_process(
        folder / "data",
        ASTRAGO_AUTH="tokens",
        ASTRAGO_SIGNUP="open",
        # Generated numbers of nodes are refused, not squeezed onto this machine.
        ASTRAGO_LOCAL_OVERSIZE="refuse",
    ) as server:
        campaign = Campaign(server, seed)
        try:
            with sampled(server.address, server.process.pid, health):
                asyncio.run(campaign.run(count))
        finally:
            server.stop()
            end_jobs(folder / "data")
    return campaign.table(limits or Limits(), health, needs_all_routes=count >= 1000)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="astrago-requests-") as folder:
        return run_campaign(Path(folder), options.count, options.seed).print()


if __name__ == "__main__":
    sys.exit(main())
