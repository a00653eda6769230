"""How to reach the API server and who we are there: a kubeconfig, or the service account of our own pod.

Reads what people's kubeconfigs hold: certificates, tokens, token files that are rewritten, and exec plugins (EKS, GKE,
OIDC). Kept small and ours, because the libraries that can do it cost more than the rest of the engine (decision 8).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from astrago_trainer.engines.base import EngineUnavailable

Json = Mapping[str, Any]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_SECONDS = 60.0
"""A kubelet renews a mounted token long before it expires; client-go looks as often."""
_EARLY_SECONDS = 60.0
"""A token is renewed this long before it expires, so that none expires on its way."""
_PLUGIN_SECONDS = 60.0


class Auth(httpx.Auth):
    """Nobody: client certificates speak for themselves."""

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if token := await self.token():
            request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == 401 and (renewed := await self.token(is_refused=True)) != token:
            request.headers["Authorization"] = f"Bearer {renewed}"
            yield request

    async def token(self, *, is_refused: bool = False) -> str:
        """`is_refused`: the last one was not accepted."""
        return ""


class FixedToken(Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self, *, is_refused: bool = False) -> str:
        return self._token


class TokenFile(Auth):
    """A token that somebody else keeps fresh."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._read_at = 0.0

    async def token(self, *, is_refused: bool = False) -> str:
        if is_refused or not self._token or time.monotonic() - self._read_at > _REREAD_SECONDS:
            try:
                self._token = self._path.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise EngineUnavailable(
                    f"the token in {self._path} cannot be read: {error}"
                ) from error
            self._read_at = time.monotonic()
        return self._token


class Plugin(Auth):
    """A program that hands out credentials (`users[].user.exec`)."""

    def __init__(self, settings: Json, cluster: Json, folder: Path, tls: ssl.SSLContext) -> None:
        command = str(settings["command"])
        # As kubectl: a path with a slash is relative to the kubeconfig, a bare name is looked up.
        self._command = str(folder / command) if "/" in command else command
        self._args = [str(each) for each in settings.get("args") or ()]
        self._env = {each["name"]: each["value"] for each in settings.get("env") or ()}
        self._hint = str(settings.get("installHint") or "")
        self._request = {
            "apiVersion": settings.get("apiVersion", "client.authentication.k8s.io/v1"),
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                **({"cluster": dict(cluster)} if settings.get("provideClusterInfo") else {}),
            },
        }
        self._tls = tls
        self._token = ""
        self._expires = 0.0
        self._lock = asyncio.Lock()

    async def token(self, *, is_refused: bool = False) -> str:
        refused = self._token if is_refused else None
        async with self._lock:  # one run for all requests that wait
            if time.time() >= self._expires or self._token == refused:
                self._take(await self._run())
            return self._token

    async def _run(self) -> Json:
        env = {**os.environ, **self._env, "KUBERNETES_EXEC_INFO": json.dumps(self._request)}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *self._args,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            raise EngineUnavailable(
                f"the kubeconfig's credential plugin {self._command} cannot be run: {error}. {self._hint}".rstrip()
            ) from error
        try:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                out, said = await process.communicate()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise EngineUnavailable(
                f"the credential plugin {self._command} gave no answer in {_PLUGIN_SECONDS:.0f} s"
            ) from error
        if process.returncode != 0:
            raise EngineUnavailable(
                f"the credential plugin {self._command} ended with {process.returncode}: "
                f"{said.decode(errors='replace').strip()[-500:]}"
            )
        try:
            status: Json = json.loads(out)["status"]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineUnavailable(
                f"the credential plugin {self._command} answered with no ExecCredential"
            ) from error
        return status

    def _take(self, status: Json) -> None:
        self._token = str(status.get("token") or "")
        if "clientCertificateData" in status:
            _load_certificate(
                self._tls,
                status["clientCertificateData"].encode(),
                status["clientKeyData"].encode(),
            )
        expires = status.get("expirationTimestamp")
        self._expires = (
            float("inf")
            if not expires
            else datetime.fromisoformat(str(expires)).timestamp() - _EARLY_SECONDS
        )


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is, how to trust it, and who asks."""

    server: str
    tls: ssl.SSLContext | None
    auth: Auth
    headers: Mapping[str, str]
    is_in_cluster: bool = False
    """The account of our own pod, not a person's."""
    context: str = ""
    """Of the kubeconfig."""
    user: str = ""
    """As the kubeconfig names its entry; the cluster may know another name."""
    namespace: str = ""
    """Of the context: where kubectl works when none is named."""


def find_access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """The given kubeconfig, else `KUBECONFIG`, else our pod's account, else `~/.kube/config`.

    Raises EngineUnavailable with what was looked for.
    """
    named = os.environ.get("KUBECONFIG", "")
    if kubeconfig is None and named:
        kubeconfig = Path(named.split(os.pathsep)[0])
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ and ACCOUNT.exists():
        return in_cluster_access()
    return kubeconfig_access(kubeconfig or Path("~/.kube/config").expanduser(), context)


def in_cluster_access(account: Path = ACCOUNT) -> Access:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    tls = ssl.create_default_context(cafile=str(account / "ca.crt"))
    token = TokenFile(account / "token")
    return Access(f"https://{host}:{port}", tls, token, {}, is_in_cluster=True)


def kubeconfig_access(path: Path, context: str | None = None) -> Access:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        chosen = context or config["current-context"]
        where = _named(config, "contexts", chosen)["context"]
        cluster = _named(config, "clusters", where["cluster"])["cluster"]
        user = _named(config, "users", where["user"])["user"] if where.get("user") else {}
        server = str(cluster["server"])
    except OSError as error:
        raise EngineUnavailable(
            f"no cluster is configured: {path} cannot be read ({error.strerror}). "
            "Set KUBECONFIG to a kubeconfig, or run inside the cluster"
        ) from error
    except (KeyError, TypeError, yaml.YAMLError) as error:
        raise EngineUnavailable(f"the kubeconfig {path} is incomplete: {error}") from error
    folder = path.resolve().parent
    tls = _trust(cluster, folder) if server.startswith("https://") else None
    if tls is not None and (certificate := _content(user, "client-certificate", folder)):
        _load_certificate(tls, certificate, _content(user, "client-key", folder) or b"")
    impersonation = {"Impersonate-User": user["as"]} if "as" in user else {}
    return Access(
        server.rstrip("/"),
        tls,
        _auth(user, cluster, folder, tls),
        impersonation,
        context=str(chosen),
        user=str(where.get("user") or ""),
        namespace=str(where.get("namespace") or ""),
    )


def _named(config: Json, kind: str, name: str) -> Json:
    for each in config.get(kind) or ():
        if each["name"] == name:
            found: Json = each
            return found
    raise KeyError(f"{kind} has no {name!r}")


def _trust(cluster: Json, folder: Path) -> ssl.SSLContext:
    authority = _content(cluster, "certificate-authority", folder)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _content(entry: Json, key: str, folder: Path) -> bytes | None:
    """A file's content, inline (`{key}-data`) or named; relative to the kubeconfig."""
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data)
    if name := entry.get(key):
        try:
            return (folder / str(name)).read_bytes()
        except OSError as error:
            raise EngineUnavailable(f"{key} of the kubeconfig cannot be read: {error}") from error
    return None


def _load_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL reads them from files only; they exist for this call alone.
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        tls.load_cert_chain(file.name)


def _auth(user: Json, cluster: Json, folder: Path, tls: ssl.SSLContext | None) -> Auth:
    if name := user.get("tokenFile"):
        return TokenFile(folder / name)
    if token := user.get("token"):
        return FixedToken(str(token))
    if plugin := user.get("exec"):
        if tls is None:
            raise EngineUnavailable("a credential plugin is used with https only")
        return Plugin(plugin, cluster, folder, tls)
    return Auth()
