"""The server and its people, as in `tests/cluster/service`; the engine alone, as in `tests/cluster/engine`."""

from tests.cluster.engine.conftest import (  # noqa: F401 - fixtures are found here
    a_handle,
    access,
    engine,
)
from tests.cluster.service.conftest import (  # noqa: F401 - fixtures are found here
    ann,
    bob,
    newcomer,
    runtimes,
    server,
)
