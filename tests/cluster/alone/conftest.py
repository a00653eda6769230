"""The server and its people, as in `tests/cluster/service`."""

from tests.cluster.service.conftest import (  # noqa: F401 - fixtures are found here
    ann,
    bob,
    newcomer,
    runtimes,
    server,
)
