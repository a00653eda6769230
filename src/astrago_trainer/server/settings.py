"""What an installation decides about its server, read once from the environment and the command line."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.core.namespace_rules import (
    NamespaceRule,
    check_patterns,
    parse_selector,
    split_patterns,
)
from astrago_trainer.core.platform import TRAINER_VERSIONS
from astrago_trainer.logs.limits import (
    LEAST_LOG_BYTES,
    LOG_BYTES,
    RESERVE_BYTES,
    TENANT_BYTES,
    LogLimits,
)

PREFIX = "ASTRAGO_"


class BadSettings(AstragoError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """The server does not start like this; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One installation. Each field is the variable ASTRAGO_ and its name in capitals."""

    data: Path
    """The data folder: database, jobs of the local engine, logs."""
    database: str | None = None
    """`postgresql://…` or `sqlite:///…`; default: astrago.db in the data folder."""
    host: str = "127.0.0.1"
    """The address to listen at; beyond loopback only with authentication."""
    port: int = 8000
    """0 takes a free one."""
    engine: str = "local"
    """local, or kubernetes: the cluster of KUBECONFIG, of the server's own pod, or of ~/.kube/config."""
    kube_context: str = ""
    """The context of the kubeconfig; default: its current one."""
    trainer: str = "auto"
    """Release of the cluster's Kubeflow Trainer: 2.1, 2.2, 2.3, or auto: read off its schema at the start."""
    tenants: Path | None = None
    """A JSON file that says what a tenant's namespace holds; see docs/server.md."""
    namespaces: str = ""
    """Namespaces of the cluster that may be adopted: names and patterns, as `user-*,team-a`."""
    namespace_selector: str = ""
    """The same by labels, as `team=ml,astrago`. With neither: all but reserved ones."""
    platform: Path | None = None
    """A YAML or JSON file with default runtimes and images, presets, limits; see docs/server.md."""
    auth: str = "off"
    """off (loopback only), or tokens: bearer tokens, and OIDC where an issuer is named."""
    oidc_issuer: str = ""
    """URL of an OpenID Connect issuer whose tokens are accepted beside our own."""
    oidc_audience: str = ""
    """What such a token must be made for: the client id of this installation."""
    oidc_claim: str = "sub"
    """The claim that names the user. Another one only if the issuer lets nobody choose it freely."""
    local_users: str = "separate"
    """trusted: users of the local engine may read each other's files, which tokens there need; see docs/server.md."""
    signup: str = "off"
    """off, or open: POST /api/v1/signup makes a user and a namespace."""
    job_url: str = ""
    """Where pods reach this server to report progress. Default: its own address on the local engine, none elsewhere."""
    job_ca_file: str = ""
    """In the pods: the certificate of that address's authority, where their system does not know it."""
    job_key: Path | None = None
    """The file with the key of jobs' tokens; servers that share a database share it."""
    warm: str = ""
    """Modules that processes of the local engine have imported before a job comes, for example torch."""
    notify: Path | None = None
    """A JSON file that says who is told of the jobs of which namespace; see docs/server.md."""
    log: str = "auto"
    """json, text, or auto: text on a terminal."""
    max_body: int = 2 << 20
    """Bytes of a request's body. Code lies in a ConfigMap, which holds 1 MiB."""
    max_headers: int = 32 << 10
    """Bytes of a request's line and headers."""
    max_connections: int = 4096
    """Open connections; more are closed at once."""
    max_streams: int = 1024
    """Streams of logs and changes at a time, all callers together."""
    max_streams_each: int = 256
    """Streams of one caller."""
    header_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body_seconds: float = 30.0
    """From there to the end of its body."""
    send_seconds: float = 30.0
    """How long a client may leave an answer unread before it is cut off."""

    tenant_max_jobs: int = 2000
    """Jobs of one namespace that have not ended; 0: no limit. Administrators are not limited."""
    log_max_bytes: int = LOG_BYTES
    """Of one log; beyond it the middle is dropped, and a line says so. 0: no limit."""
    tenant_log_max_bytes: int = TENANT_BYTES
    """Of all logs of a namespace; those not written for longest shrink first. 0: no limit."""
    disk_reserve_bytes: int = RESERVE_BYTES
    """Free space below which no log is written; at most 5 % of the disk. 0: none."""

    @property
    def log_limits(self) -> LogLimits:
        return LogLimits(self.log_max_bytes, self.tenant_log_max_bytes, self.disk_reserve_bytes)

    @property
    def is_local_only(self) -> bool:
        return is_loopback(self.host)

    @property
    def has_auth(self) -> bool:
        return self.auth != "off"

    @property
    def namespace_rule(self) -> NamespaceRule:
        """Which namespaces of the cluster may be adopted."""
        return NamespaceRule(
            split_patterns(self.namespaces), parse_selector(self.namespace_selector)
        )


def read_settings(environment: Mapping[str, str], **given: Any) -> ServerSettings:
    """`given` (the command line) before the environment before the defaults; raises BadSettings."""
    values: dict[str, Any] = {}
    for field in fields(ServerSettings):
        name = PREFIX + field.name.upper()
        if given.get(field.name) is not None:
            values[field.name] = given[field.name]
        elif environment.get(name):
            values[field.name] = _read(name, environment[name], _READERS[str(field.type)])
    settings = ServerSettings(**values)
    check_settings(settings)
    return settings


def check_settings(settings: ServerSettings) -> None:
    """Raises BadSettings with what to change."""
    _one_of("auth", settings.auth, ("off", "tokens"))
    _one_of("signup", settings.signup, ("off", "open"))
    _one_of("local_users", settings.local_users, ("separate", "trusted"))
    _one_of("log", settings.log, ("auto", "json", "text"))
    _one_of("trainer", settings.trainer, ("auto", *TRAINER_VERSIONS))
    if settings.engine not in ("local", "kubernetes", "fake"):
        raise BadSettings(
            f"{PREFIX}ENGINE is {settings.engine!r}; this version runs jobs with: local, kubernetes."
        )
    _check_rule(settings)
    _check_sizes(settings)
    if settings.tenant_max_jobs < 0:
        raise BadSettings(
            f"{PREFIX}TENANT_MAX_JOBS must be 0 (no limit) or more; found {settings.tenant_max_jobs}."
        )
    if not 0 <= settings.port <= 65535:
        raise BadSettings(f"the port must be a number from 0 to 65535, not {settings.port}.")
    if settings.auth == "off" and not settings.is_local_only:
        raise BadSettings(
            f"without authentication the server listens on this machine alone, not on {settings.host}: anybody who "
            f"reaches it runs code {'with your rights' if settings.engine == 'kubernetes' else 'here'}. "
            f"Set {PREFIX}AUTH=tokens, or leave out --host."
        )
    if settings.engine == "local" and settings.has_auth and settings.local_users != "trusted":
        raise BadSettings(
            "with the local engine every job runs as the user of this server, so the jobs of one user can read the "
            f"files and tokens of all others, the administrator's too. Set {PREFIX}LOCAL_USERS=trusted if all users "
            f"trust each other, or {PREFIX}ENGINE=kubernetes."
        )
    if settings.job_url and not _is_address(settings.job_url):
        raise BadSettings(
            f"{PREFIX}JOB_URL must be http://host:port or https://host:port; found {settings.job_url!r}."
        )
    if settings.oidc_issuer and not settings.has_auth:
        raise BadSettings(f"{PREFIX}OIDC_ISSUER needs {PREFIX}AUTH=tokens.")
    if settings.oidc_issuer and not settings.oidc_audience:
        raise BadSettings(
            f"{PREFIX}OIDC_ISSUER needs {PREFIX}OIDC_AUDIENCE: else tokens made for others would open this server."
        )
    if settings.oidc_issuer and not is_safe_url(settings.oidc_issuer):
        raise BadSettings(
            f"{PREFIX}OIDC_ISSUER must be an https URL (http on loopback alone): its keys decide who comes in."
        )


def log_limits_here(environment: Mapping[str, str]) -> LogLimits:
    """For commands that run jobs without a server; raises BadSettings."""
    values = {
        name: _read(f"{PREFIX}{name.upper()}", environment[f"{PREFIX}{name.upper()}"], int)
        for name in _SIZES
        if environment.get(f"{PREFIX}{name.upper()}")
    }
    settings = ServerSettings(data=Path(), **values)
    _check_sizes(settings)
    return settings.log_limits


def _check_sizes(settings: ServerSettings) -> None:
    for name, least in _SIZES.items():
        value: int = getattr(settings, name)
        if value < 0 or 0 < value < least:
            raise BadSettings(
                f"{PREFIX}{name.upper()} must be 0 or at least {least} bytes; found {value}."
            )


_SIZES = {
    "log_max_bytes": LEAST_LOG_BYTES,
    "tenant_log_max_bytes": 1 << 20,
    "disk_reserve_bytes": 0,
}


def _check_rule(settings: ServerSettings) -> None:
    problems = check_patterns(split_patterns(settings.namespaces), path=f"{PREFIX}NAMESPACES")
    if problems:
        raise BadSettings("; ".join(f"{each.path} {each.message}" for each in problems))
    try:
        parse_selector(settings.namespace_selector)
    except ValueError as error:
        raise BadSettings(
            f"{PREFIX}NAMESPACE_SELECTOR must be labels with commas between, as team=ml,astrago; "
            f"found {str(error)[:80]!r}."
        ) from None


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        return is_whole and not (parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        return False


def is_safe_url(url: str) -> bool:
    """Whether what is read there cannot be changed on the way."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" or (
            parts.scheme == "http" and is_loopback(parts.hostname or "")
        )
    except ValueError:
        return False


def open_file_limit(wanted: int) -> None:
    """A connection is a descriptor, as is each of 2,000 logs that are read for numbers; many systems allow 1,024."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted + 2048
    if soft != resource.RLIM_INFINITY and soft < enough:
        most = enough if hard == resource.RLIM_INFINITY else min(hard, enough)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def environment() -> Mapping[str, str]:
    return os.environ


_READERS: Mapping[str, Callable[[str], Any]] = {
    "Path": lambda text: Path(text).expanduser().absolute(),
    "Path | None": lambda text: Path(text).expanduser().absolute(),
    "str": str,
    "str | None": str,
    "int": int,
    "float": float,
}


def _read(name: str, text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text)
    except ValueError:
        raise BadSettings(f"{name} must be a number; found {text!r}.") from None


def _one_of(name: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise BadSettings(
            f"{PREFIX}{name.upper()} must be one of {', '.join(words)}; found {value!r}."
        )
