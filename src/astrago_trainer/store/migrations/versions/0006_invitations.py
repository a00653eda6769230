"""Invitations to namespaces."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "invitations",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("user", sa.String(length=253), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("invited_by", sa.String(length=253), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["namespace"],
            ["tenants.namespace"],
            name=op.f("fk_invitations_namespace"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("namespace", "user", name=op.f("pk_invitations")),
    )
