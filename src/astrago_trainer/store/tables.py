"""The tables. Migrations make them; a test holds both to be the same.

Times are seconds since 1970. What a list shows is in `jobs` itself; the long texts of a job are in `documents`, so that
all jobs can be read at a start without touching them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

_Number = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER counts by itself there


def _job() -> Column[int]:
    place = ForeignKey("jobs.number", ondelete="CASCADE")
    return Column("job", _Number, place, primary_key=True, autoincrement=False)


jobs = Table(
    "jobs",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("uid", String(40), nullable=False, unique=True),
    Column("namespace", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("owner", String(253), nullable=False),
    Column("framework", String(40), nullable=False),
    Column("runtime", String(253), nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("engine", String(40), nullable=False),
    Column("code_name", String(253)),
    Column("ttl_seconds", Integer),
    Column("max_restarts", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    # What its people want.
    Column("is_suspended", Boolean, nullable=False),
    Column("is_deleting", Boolean, nullable=False),
    Column("keeps_code", Boolean, nullable=False),
    Column("wanted_run", Integer, nullable=False),
    # Where it stands.
    Column("phase", String(20), nullable=False),
    Column("outcome", String(20)),
    Column("reason", String(200), nullable=False),
    Column("message", Text, nullable=False),
    Column("run", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("is_handed", Boolean, nullable=False),
    Column("is_reaped", Boolean, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("settled_at", Double),
    Column("events", Integer, nullable=False),
    Column("engine_events", Integer, nullable=False),
    # Who looks after it, and how often it was changed.
    Column("server", String(80)),
    Column("version", Integer, nullable=False),
    Column("stamp", BigInteger, nullable=False, index=True),
    # Which job it was made of; that one may be gone.
    Column("cloned_from", String(63)),
    Column("cloned_from_uid", String(40)),
    UniqueConstraint("namespace", "name"),
    sqlite_autoincrement=True,  # a number never comes again
)

documents = Table(
    "documents",
    metadata,
    _job(),
    Column("digest", String(64), nullable=False),
    Column("spec", Text, nullable=False),
    Column("runtime", String(64), nullable=False),
    Column("shared", String(64)),
    Column("objects", Text, nullable=False),
    Column("effective", Text, nullable=False),
    Column("original", Text),
)

texts = Table(
    "texts",
    metadata,
    # Runtimes and scripts that many jobs share, by their hash: there are as many as there were versions of them.
    Column("digest", String(64), primary_key=True),
    Column("text", Text, nullable=False),
)

codes = Table(
    "codes",
    metadata,
    # Names of code ConfigMaps: one name stands for one content as long as a job uses it.
    Column("namespace", String(63), primary_key=True),
    Column("name", String(253), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("uses", Integer, nullable=False),
)

removals = Table(
    "removals",
    metadata,
    # Tells other servers on this database which jobs have gone.
    Column("job", BigInteger, primary_key=True, autoincrement=False),
    Column("stamp", BigInteger, nullable=False, index=True),
    Column("time", Double, nullable=False),
)

events = Table(
    "events",
    metadata,
    _job(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("actor", String(253), nullable=False),
    Column("reason", String(200), nullable=False),
    Column("message", Text, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    _job(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("phase", String(20), nullable=False),
    Column("reason", String(200), nullable=False),
    Column("message", Text, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
)

pods = Table(
    "pods",
    metadata,
    # Of the newest attempt of a run.
    _job(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("name", String(80), primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("replicated_job", String(63), nullable=False),
    Column("pod_index", Integer, nullable=False),
    Column("phase", String(20), nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("exit_code", Integer),
    Column("reason", Text, nullable=False),
    Column("node", String(253)),
    Column("address", String(45)),
)

metrics = Table(
    "metrics",
    metadata,
    # Points of one series of one rank that came together, packed.
    _job(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("series", String(120), primary_key=True),
    Column("first", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("points", LargeBinary, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", _Number, primary_key=True, autoincrement=True),
    Column("time", Double, nullable=False),
    Column("actor", String(253), nullable=False),
    Column("namespace", String(63), nullable=False),
    Column("action", String(60), nullable=False),
    Column("object", String(253), nullable=False),
    Column("uid", String(40), nullable=False),
    Column("result", String(40), nullable=False),
    Column("detail", Text, nullable=False),
    Column("request_id", String(80), nullable=False),
    Index(None, "namespace", "id"),
    sqlite_autoincrement=True,
)

tenants = Table(
    "tenants",
    metadata,
    Column("namespace", String(63), primary_key=True),
    Column("title", String(200), nullable=False),
    Column("created_at", Double, nullable=False),
    # It was in the cluster before, and holds what its owner has put there.
    Column("is_adopted", Boolean, nullable=False, server_default=false()),
)

users = Table(
    "users",
    metadata,
    Column("name", String(253), primary_key=True),
    Column("is_administrator", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    # Namespaces in which a backend acts for others: names and patterns with commas between; empty for people.
    Column("backend", Text, nullable=False, server_default=""),
    # Who verifies this user: empty for tokens of ours, the URL of an issuer, or `*` until somebody of an issuer comes.
    Column("issuer", Text, nullable=False, server_default=""),
    # The value of the claim by which the issuer names this user.
    Column("subject", Text, nullable=False, server_default=""),
    Column("is_disabled", Boolean, nullable=False, server_default=false()),
    Index(
        "users_of_issuers",
        "issuer",
        "subject",
        unique=True,
        sqlite_where=text("subject <> ''"),
        postgresql_where=text("subject <> ''"),
    ),
)

members = Table(
    "members",
    metadata,
    Column("namespace", ForeignKey("tenants.namespace", ondelete="CASCADE"), primary_key=True),
    Column("user", ForeignKey("users.name", ondelete="CASCADE"), primary_key=True),
    Column("role", String(20), nullable=False),
)

invitations = Table(
    "invitations",
    metadata,
    Column("namespace", ForeignKey("tenants.namespace", ondelete="CASCADE"), primary_key=True),
    # No reference: an invitation of somebody who is no user looks the same, so that nobody learns who is one.
    Column("user", String(253), primary_key=True),
    Column("role", String(20), nullable=False),
    Column("invited_by", String(253), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("user", ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("label", String(200), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    # The token that it was made with, without which it opens nothing.
    Column("parent", String(40), nullable=False, server_default=""),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("namespace", String(63), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("uid", String(40), nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", Double, nullable=False, index=True),
)

outbox = Table(
    "outbox",
    metadata,
    # No reference to the job: its end is told even if it is deleted meanwhile.
    Column("id", String(80), primary_key=True),
    Column("namespace", String(63), nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", String(20), nullable=False),
    Column("due_at", Double, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Index(None, "state", "due_at"),
)

servers = Table(
    "servers",
    metadata,
    # Who looks after jobs; `beat` grows as long as it lives.
    Column("id", String(80), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
)

clock = Table(
    "clock",
    metadata,
    # Counts the write transactions; each holds the row until it commits, so the stamps are in the order of commits.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("value", BigInteger, nullable=False),
    Column("access", BigInteger, nullable=False),
)
