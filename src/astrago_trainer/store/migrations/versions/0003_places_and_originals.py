"""Where each pod runs, and which job a job was cloned from."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("pods", sa.Column("node", sa.String(length=253), nullable=True))
    op.add_column("pods", sa.Column("address", sa.String(length=45), nullable=True))
    op.add_column("jobs", sa.Column("cloned_from", sa.String(length=63), nullable=True))
    op.add_column("jobs", sa.Column("cloned_from_uid", sa.String(length=40), nullable=True))
    op.add_column("documents", sa.Column("original", sa.Text(), nullable=True))
