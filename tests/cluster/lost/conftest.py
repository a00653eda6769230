"""The engine alone, as in `tests/cluster/engine`."""

from tests.cluster.engine.conftest import (  # noqa: F401 - fixtures are found here
    a_handle,
    access,
    engine,
)
