"""Users that act for others, and tenants whose namespace was there before."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("users", sa.Column("backend", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "tenants",
        sa.Column("is_adopted", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
