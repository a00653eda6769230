"""Requests made from the OpenAPI document: mostly nearly right, so that they get past the first check.

Values are at their limits and around them, of other types, or strings that want to be more than text. Bodies are
examples of the document with a few places changed; some are as large, as long or as deep as a body may be, and a little
more.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from astrago_trainer.server.body_limits import MAX_DEPTH, MAX_MEMBERS, MAX_VALUES
from tests.server.hostile import STRINGS

Json = dict[str, Any]

MAX_BODY, MAX_SMALL_BODY = 2 << 20, 64 << 10
NUMBERS = (-1, 0, 1, 2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308)
BROKEN = (
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1e999}',
    b'{"a":"\\ud800"}', b'{"nodes":' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"a":' * 50_000, b"\0" * 100,
)  # fmt: skip
HARMLESS = (
    "name",
    "env",
    "labels",
    "annotations",
    "nodes",
    "ttl_seconds",
    "max_restarts",
    "suspend",
)
"""Fields of a job that may be changed in a request that starts it. Its code stays ours: it runs on this machine."""


@dataclass(frozen=True)
class Operation:
    """One verb of one route."""

    method: str
    path: str
    name: str
    parameters: tuple[Json, ...]
    example: Any
    """Of a body; None where there is none."""

    @property
    def starts_job(self) -> bool:
        is_create = self.method == "POST" and self.path.endswith(("/jobs", "/create"))
        return is_create or self.path.endswith(":clone")


@dataclass
class Request:
    method: str
    path: str
    """With the query, quoted."""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_stream: bool = False
    """The answer has no end of its own."""
    operation: str = ""


@dataclass(frozen=True)
class Known:
    """What a caller could know, or have guessed: values of parameters by their name, its own and others'."""

    own: dict[str, list[str]]
    others: dict[str, list[str]]


def operations_of(document: Json) -> list[Operation]:
    found = []
    for path, verbs in document["paths"].items():
        for verb, each in verbs.items():
            content = each.get("requestBody", {}).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            values = [example["value"] for example in examples.values()]
            parameters = tuple(_resolved(document, one) for one in each.get("parameters", ()))
            found.append(
                Operation(verb.upper(), path, each["operationId"], parameters, values or None)
            )
    return found


def _resolved(document: Json, value: Any) -> Any:
    """Without references; the schemas of parameters are small and do not recurse."""
    if isinstance(value, dict):
        if "$ref" in value:
            found = document
            for step in value["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            return _resolved(document, found)
        return {name: _resolved(document, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolved(document, each) for each in value]
    return value


class Generator:
    """Requests of one caller; the same chance gives the same requests."""

    def __init__(self, chance: random.Random, known: Known, code: str) -> None:
        self._chance = chance
        self._known = known
        self._code = code
        """The script of every job that may start."""

    def request(self, operation: Operation) -> Request:
        chance, path = self._chance, operation.path
        query, headers = [], {}
        for each in operation.parameters:
            if each["in"] == "path":
                value = self._parameter(each)
                path = path.replace(f"{{{each['name']}}}", quote(value, safe="", errors="replace"))
            elif each.get("required") or chance.random() < 0.35:
                value = self._parameter(each)
                if each["in"] == "query":
                    query.append(f"{each['name']}={quote(value, safe='', errors='replace')}")
                elif value.isascii() and value.isprintable():
                    headers[each["name"]] = value
        if chance.random() < 0.02:
            query.append(f"{quote(chance.choice(STRINGS), safe='', errors='replace')}=x")
        body = b""
        if operation.example is not None:
            body = self._body(operation)
            headers["content-type"] = "application/json"
            if chance.random() < 0.03:
                kinds = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
                headers["content-type"] = chance.choice(kinds)
        is_stream = path.endswith("/stream") or any(
            each.lower().startswith("follow=") for each in query
        )
        target = path + ("?" + "&".join(query) if query else "")
        return Request(operation.method, target, headers, body, is_stream, operation.name)

    def _parameter(self, parameter: Json) -> str:
        chance, name = self._chance, parameter["name"]
        name = {
            "trainjob_name": "name",
            "cloned_from": "name",
            "owner": "user",
            "actor": "user",
        }.get(name, name)
        own, others = self._known.own.get(name), self._known.others.get(name)
        kind = chance.random()
        if own and kind < 0.8:
            return chance.choice(own)
        if others and kind < 0.9:
            return chance.choice(others)
        if kind < 0.96:
            return str(self._of_schema(parameter.get("schema", {})))
        return chance.choice(STRINGS)

    def _of_schema(self, schema: Json) -> Any:
        chance = self._chance
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            return self._of_schema(chance.choice(choices))
        if "enum" in schema:
            return chance.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
            around = (low - 1, low, low + 1, high - 1, high, high + 1)
            return chance.choice((*around, *around, chance.randint(low, high), *NUMBERS))
        if kind == "boolean":
            return chance.choice(("true", "false", "1", "0", "yes", ""))
        if kind == "number":
            return chance.choice(NUMBERS)
        longest = schema.get("maxLength", 64)
        lengths = (0, 1, longest - 1, longest, longest + 1)
        return chance.choice(("a" * chance.choice(lengths), chance.choice(STRINGS)))

    def _body(self, operation: Operation) -> bytes:
        chance = self._chance
        body = copy.deepcopy(chance.choice(operation.example))
        kind = chance.random()
        if kind < 0.03:
            return chance.choice(BROKEN)
        if operation.starts_job and not operation.path.endswith(":clone"):
            body = self._job(operation)
        if kind < 0.05:
            self._enlarge(body, operation)
        elif kind < 0.5:
            for _ in range(chance.randint(1, 3)):
                self._change(body, operation)
        data = json.dumps(body).encode()
        if 0.05 <= kind < 0.055:  # spaces count as bytes, and as nothing else
            limit = chance.choice((MAX_BODY, MAX_SMALL_BODY))
            data += b" " * max(0, limit + chance.choice((-1, 0, 1)) - len(data))
        return data

    def _job(self, operation: Operation) -> Json:
        """One that runs for a moment; it prints what nobody else may read."""
        name = self._chance.choice(self._known.own["name"])
        secret = self._known.own["secret"][0]
        if operation.path.endswith("/create"):
            return {
                "user_id": self._known.own["user"][0],
                "namespace": self._known.own["namespace"][0],
                "framework": "pytorch",
                "training_code": self._code,
                "config": {"num_nodes": 1, "gpu_per_node": 0, "cpu_per_node": 1, "memory_per_node": "64Mi"},
            }  # fmt: skip
        return {
            "name": name,
            "framework": "pytorch",
            "nodes": 1,
            "code": {"inline": self._code},
            "resources": {"cpu": "100m", "memory": "64Mi"},
            "env": [{"name": "SECRET", "value": secret}],
            "annotations": {"example.org/secret": secret},
            "suspend": self._chance.random() < 0.1,
        }

    def _change(self, body: Any, operation: Operation) -> None:
        """One place gets another value."""
        places = list(_places(body))
        if operation.starts_job:
            places = [each for each in places if _top(each) in HARMLESS]
        if not places:
            return
        *steps, last = self._chance.choice(places)
        holder = body
        for step in steps:
            holder = holder[step]
        holder[last] = self._value()

    def _value(self) -> Any:
        chance = self._chance
        kind = chance.random()
        if kind < 0.5:
            return chance.choice(STRINGS)
        if kind < 0.7:
            return chance.choice(NUMBERS)
        if kind < 0.8:
            pools = [each for each in self._known.others.values() if each]
            return chance.choice(chance.choice(pools)) if pools else "x"
        return chance.choice((None, True, False, [], {}, [[]], [None], {"": None}, "a" * 300))

    def _enlarge(self, body: Any, operation: Operation) -> None:
        """As large as a body may be, and a little more."""
        if not isinstance(body, dict):
            return
        chance, off = self._chance, self._chance.choice((-1, 0, 1))
        place = (
            chance.choice(HARMLESS[1:4]) if operation.starts_job else chance.choice(("env", "x"))
        )
        kind = chance.randrange(5)
        value: Any
        if kind == 0:
            value = [{"name": f"A{number}", "value": "x"} for number in range(MAX_MEMBERS + off)]
        elif kind == 1:
            value = {f"a{number}": "x" for number in range(MAX_MEMBERS + off)}
        elif kind == 2:
            value = [[0] * 4000 for _ in range(MAX_VALUES // 4001)]
            value.append([0] * max(0, MAX_VALUES - 4001 * len(value) - len(body) - 2 + off))
        elif kind == 3:
            value = []
            for _ in range(MAX_DEPTH - 2 + off):
                value = [value]
        else:
            value = "x" * (chance.choice((MAX_BODY, MAX_SMALL_BODY, 131_072)) + off)
        body[place] = value


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    for key, each in members:
        yield (*before, key)
        yield from _places(each, (*before, key))


def _top(place: tuple[Any, ...]) -> str:
    return str(place[0])
