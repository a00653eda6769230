"""Read by alembic: migrations run on the connection, and in the transaction, that they are given."""

from alembic import context

from astrago_trainer.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()
