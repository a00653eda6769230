"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(length=253), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("object", sa.String(length=253), nullable=False),
        sa.Column("uid", sa.String(length=40), nullable=False),
        sa.Column("result", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("request_id", sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_namespace_id"), "audit", ["namespace", "id"], unique=False)
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.Column("access", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clock")),
    )
    op.create_table(
        "codes",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name", name=op.f("pk_codes")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("uid", sa.String(length=40), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(
        op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"], unique=False
    )
    op.create_table(
        "jobs",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uid", sa.String(length=40), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("owner", sa.String(length=253), nullable=False),
        sa.Column("framework", sa.String(length=40), nullable=False),
        sa.Column("runtime", sa.String(length=253), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=40), nullable=False),
        sa.Column("code_name", sa.String(length=253), nullable=True),
        sa.Column("ttl_seconds", sa.Integer(), nullable=True),
        sa.Column("max_restarts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("is_suspended", sa.Boolean(), nullable=False),
        sa.Column("is_deleting", sa.Boolean(), nullable=False),
        sa.Column("keeps_code", sa.Boolean(), nullable=False),
        sa.Column("wanted_run", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("is_handed", sa.Boolean(), nullable=False),
        sa.Column("is_reaped", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("settled_at", sa.Double(), nullable=True),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("engine_events", sa.Integer(), nullable=False),
        sa.Column("server", sa.String(length=80), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_jobs")),
        sa.UniqueConstraint("namespace", "name", name=op.f("uq_jobs_namespace_name")),
        sa.UniqueConstraint("uid", name=op.f("uq_jobs_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_stamp"), "jobs", ["stamp"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_state_due_at"), "outbox", ["state", "due_at"], unique=False)
    op.create_table(
        "removals",
        sa.Column("job", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("job", name=op.f("pk_removals")),
    )
    op.create_index(op.f("ix_removals_stamp"), "removals", ["stamp"], unique=False)
    op.create_table(
        "servers",
        sa.Column("id", sa.String(length=80), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_servers")),
    )
    op.create_table(
        "tenants",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("namespace", name=op.f("pk_tenants")),
    )
    op.create_table(
        "texts",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_texts")),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("is_administrator", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_users")),
    )
    op.create_table(
        "attempts",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_attempts_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "run", "attempt", name=op.f("pk_attempts")),
    )
    op.create_table(
        "documents",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("runtime", sa.String(length=64), nullable=False),
        sa.Column("shared", sa.String(length=64), nullable=True),
        sa.Column("objects", sa.Text(), nullable=False),
        sa.Column("effective", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_documents_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", name=op.f("pk_documents")),
    )
    op.create_table(
        "events",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(length=253), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_events_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "number", name=op.f("pk_events")),
    )
    op.create_table(
        "members",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("user", sa.String(length=253), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.ForeignKeyConstraint(
            ["namespace"],
            ["tenants.namespace"],
            name=op.f("fk_members_namespace"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user"], ["users.name"], name=op.f("fk_members_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("namespace", "user", name=op.f("pk_members")),
    )
    op.create_table(
        "metrics",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("series", sa.String(length=120), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("points", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_metrics_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "run", "series", "first", name=op.f("pk_metrics")),
    )
    op.create_table(
        "pods",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("replicated_job", sa.String(length=63), nullable=False),
        sa.Column("pod_index", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_pods_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "run", "name", name=op.f("pk_pods")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("user", sa.String(length=253), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user"], ["users.name"], name=op.f("fk_tokens_user"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.execute("INSERT INTO clock VALUES (1, 0, 0)")
