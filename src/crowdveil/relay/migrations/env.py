"""How alembic runs here: inside the transaction of ``migrate``, and in no other way."""

from alembic import context

from crowdveil.relay.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
