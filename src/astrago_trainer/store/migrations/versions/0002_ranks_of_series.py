"""Series have a rank; those that were there are of rank 0."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KEPT = "series, first, count, points"


def upgrade() -> None:
    # A new table instead of a new column: SQLite cannot change a primary key.
    op.rename_table("metrics", "metrics_before")
    if op.get_bind().dialect.name == "postgresql":  # where the old key keeps its name
        op.drop_constraint(op.f("pk_metrics"), "metrics_before")
    op.create_table(
        "metrics",
        sa.Column(
            "job",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("series", sa.String(length=120), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("points", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.number"], name=op.f("fk_metrics_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "run", "rank", "series", "first", name=op.f("pk_metrics")),
    )
    op.execute(
        f"INSERT INTO metrics (job, run, rank, {_KEPT}) SELECT job, run, 0, {_KEPT} FROM metrics_before"  # noqa: S608 - our own words
    )
    op.drop_table("metrics_before")
