"""Users belong to the issuer that verifies them, tokens to the token they were made with, and users can be disabled."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_IS_BOUND = sa.text("subject <> ''")
# Somebody without any token was made by an administrator, for the person whom the issuer calls so. Who signed up under
# a name that they had already came with a token of the issuer. All others have a token of ours, and come with it.
_UNCLAIMED = """
    UPDATE users SET issuer = '*'
    WHERE backend = '' AND (
        NOT EXISTS (SELECT 1 FROM tokens WHERE tokens."user" = users.name)
        OR EXISTS (SELECT 1 FROM audit WHERE action = 'user.signup' AND object = users.name AND actor = users.name)
    )
"""


def upgrade() -> None:
    for name in ("issuer", "subject"):
        op.add_column("users", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "users", sa.Column("is_disabled", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("tokens", sa.Column("parent", sa.String(40), nullable=False, server_default=""))
    op.create_index(
        "users_of_issuers",
        "users",
        ["issuer", "subject"],
        unique=True,
        sqlite_where=_IS_BOUND,
        postgresql_where=_IS_BOUND,
    )
    op.execute(_UNCLAIMED)
