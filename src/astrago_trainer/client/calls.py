"""Requests as plain data: what the synchronous and the asynchronous client send is made here, once, without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from astrago_trainer.client.models import LogQuery

PAGE = 500


class Call(NamedTuple):
    """One request to the API."""

    method: str
    path: str
    """Escaped, with its query; begins with a slash."""
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = {}


def whoami() -> Call:
    return Call("GET", "/api/v1/whoami")


def submit(namespace: str, spec: Mapping[str, Any], key: str | None = None) -> Call:
    return Call("POST", f"{_space(namespace)}/jobs", spec, _key(key))


def preview(namespace: str, spec: Mapping[str, Any]) -> Call:
    return Call("POST", f"{_space(namespace)}/jobs:preview", spec)


def jobs(
    namespace: str,
    *,
    phases: tuple[str, ...] = (),
    text: str = "",
    limit: int = PAGE,
    token: str | None = None,
) -> Call:
    query = {"limit": limit, "phase": ",".join(phases), "q": text, "page_token": token}
    return Call("GET", f"{_space(namespace)}/jobs{_query(query)}")


def job(namespace: str, name: str) -> Call:
    return Call("GET", _job(namespace, name))


def delete(namespace: str, name: str, *, uid: str | None = None, keep_code: bool = False) -> Call:
    query = {"uid": uid, "keep_code": "true" if keep_code else None}
    return Call("DELETE", f"{_job(namespace, name)}{_query(query)}")


def act(namespace: str, name: str, verb: str) -> Call:
    """suspend, resume or restart."""
    return Call("POST", f"{_job(namespace, name)}:{verb}")


def clone(namespace: str, name: str, changes: Mapping[str, Any], key: str | None = None) -> Call:
    return Call("POST", f"{_job(namespace, name)}:clone", changes, _key(key))


def part(namespace: str, name: str, what: str, **query: object) -> Call:
    """events, metrics, pods, explain, checkpoints or manifest."""
    return Call("GET", f"{_job(namespace, name)}/{what}{_query(query)}")


def logs(namespace: str, name: str, wanted: LogQuery, *, follow: bool = False) -> Call:
    """Without the pattern: see `search`."""
    query = {
        "format": "sse" if follow else "ndjson",
        "follow": "true" if follow else None,
        "rank": wanted.rank,
        "attempt": wanted.attempt,
        "tail": wanted.tail,
    }
    return Call("GET", f"{_job(namespace, name)}/logs{_query(query)}")


def search(namespace: str, name: str, wanted: LogQuery, *, cursor: str, hits: int) -> Call:
    """One page of the lines of one rank that match."""
    query = {
        "format": "ndjson",
        "rank": wanted.rank,
        "attempt": wanted.attempt,
        "tail": None if cursor else wanted.tail,
        "grep": wanted.grep,
        "max_hits": hits,
        "cursor": cursor,
    }
    return Call("GET", f"{_job(namespace, name)}/logs{_query(query)}")


def stream(namespace: str) -> Call:
    return Call("GET", f"{_space(namespace)}/stream")


def nodes() -> Call:
    return Call("GET", "/api/v1/nodes")


def tokens() -> Call:
    return Call("GET", "/api/v1/tokens")


def create_token(user: str | None, label: str, seconds: int | None) -> Call:
    body = {"user": user, "label": label, "seconds": seconds}
    return Call(
        "POST", "/api/v1/tokens", {name: each for name, each in body.items() if each is not None}
    )


def revoke_token(token: str) -> Call:
    return Call("DELETE", f"/api/v1/tokens/{quote(token, safe='')}")


def tenants() -> Call:
    return Call("GET", "/api/v1/tenants")


def create_tenant(namespace: str, title: str) -> Call:
    return Call("POST", "/api/v1/tenants", {"namespace": namespace, "title": title})


def set_backend(name: str, namespaces: Sequence[str]) -> Call:
    return Call("PUT", _backend(name), {"namespaces": list(namespaces)})


def remove_backend(name: str) -> Call:
    return Call("DELETE", _backend(name))


def _backend(name: str) -> str:
    return f"/api/v1/backends/{quote(name, safe='')}"


def create_user(name: str) -> Call:
    return Call("POST", "/api/v1/users", {"name": name})


def users() -> Call:
    return Call("GET", "/api/v1/users")


def change_user(name: str, action: str) -> Call:
    """`action`: disable, enable, revoke (all tokens), delete."""
    place = f"/api/v1/users/{quote(name, safe='')}"
    if action in ("disable", "enable"):
        return Call("POST", f"{place}:{action}")
    return Call("DELETE", f"{place}/tokens" if action == "revoke" else place)


def members(namespace: str) -> Call:
    return Call("GET", f"/api/v1/tenants/{quote(namespace, safe='')}/members")


def set_member(namespace: str, user: str, role: str) -> Call:
    return Call("PUT", _member(namespace, user), {"role": role})


def remove_member(namespace: str, user: str) -> Call:
    return Call("DELETE", _member(namespace, user))


def leave(namespace: str) -> Call:
    return Call("POST", f"/api/v1/tenants/{quote(namespace, safe='')}:leave")


def invitations(namespace: str | None = None) -> Call:
    """Of a namespace; without one, the caller's own."""
    return Call("GET", "/api/v1/invitations" if namespace is None else _invitations(namespace))


def invite(namespace: str, user: str, role: str) -> Call:
    return Call("POST", _invitations(namespace), {"user": user, "role": role})


def withdraw(namespace: str, user: str) -> Call:
    return Call("DELETE", f"{_invitations(namespace)}/{quote(user, safe='')}")


def answer_invitation(namespace: str, answer: str) -> Call:
    """`answer`: accept or decline."""
    return Call("POST", f"/api/v1/invitations/{quote(namespace, safe='')}:{answer}")


def _invitations(namespace: str) -> str:
    return f"/api/v1/tenants/{quote(namespace, safe='')}/invitations"


def _member(namespace: str, user: str) -> str:
    return f"/api/v1/tenants/{quote(namespace, safe='')}/members/{quote(user, safe='')}"


def _space(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}"


def _job(namespace: str, name: str) -> str:
    return f"{_space(namespace)}/jobs/{quote(name, safe='')}"


def _query(values: Mapping[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    return f"?{urlencode(given)}" if given else ""


def _key(key: str | None) -> Mapping[str, str]:
    return {} if key is None else {"Idempotency-Key": key}
