"""A server on a port, until it is told to stop: it finishes its answers, ends streams, and leaves jobs alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn

from astrago_trainer.engines.base import Engine
from astrago_trainer.server.app import make_app, opened
from astrago_trainer.server.context import Context, OwnRights
from astrago_trainer.server.protocol import bounded_by
from astrago_trainer.server.settings import BadSettings, ServerSettings, open_file_limit

DRAIN_SECONDS = 10
KEEP_ALIVE_SECONDS = 30
SEND_BUFFER = 1 << 19
NEW_OBJECTS = 20_000
"""After which the youngest are looked at; a few MB at most."""


OnReady = Callable[[str, OwnRights | None], None]
"""Is called with the address, and whose rights on the cluster everybody uses who reaches it."""


def run_server(settings: ServerSettings, *, on_ready: OnReady = lambda *_: None) -> None:
    """Until SIGTERM or SIGINT. Raises BadSettings and StoreError, which say what to do."""
    import uvloop

    def ready(address: str, rights: OwnRights | None) -> None:
        calm_collector()
        on_ready(address, rights)

    open_file_limit(settings.max_connections)
    sys.setswitchinterval(SWITCH_SECONDS)
    uvloop.run(serve(settings, on_ready=ready))


SWITCH_SECONDS = 0.001
"""How long a thread that plans a job keeps the interpreter when the event loop wants it; Python's default is 5 ms."""


def calm_collector() -> None:
    """Python's collector looks at all that was loaded again and again, a third of the time of a submit.

    What there is at the start stays to the end, so it is never looked at; and a request makes thousands of objects
    that go without its help, so it comes after more of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 20)


async def serve(
    settings: ServerSettings,
    *,
    engine: Engine | None = None,
    on_ready: OnReady = lambda *_: None,
) -> None:
    """`on_ready` is called when requests are answered."""
    listener = listen(settings)
    with contextlib.closing(listener):
        address = _address(listener)
        async with opened(settings, engine, address=address) as context:
            config = uvicorn.Config(
                make_app(context),
                http=bounded_by(settings),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
            server = Server(config, context, lambda: on_ready(address, context.rights))
            await server.serve(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn's, with streams that end when it stops."""

    def __init__(
        self, config: uvicorn.Config, context: Context, on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._context = context
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._context.closing.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own sends the signal again when it is done, before what we opened could be closed."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(settings: ServerSettings) -> socket.socket:
    """The port, taken before anything is opened: two servers by mistake must not meet in the data folder."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. The kernel would keep up to 4 MB for each client that does not read, and hundreds of
        # them would use up what it has for all connections of the machine.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listener.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listener.close()
        raise BadSettings(
            f"port {settings.port} of {settings.host} cannot be used: {error.strerror}. "
            "Choose another one with --port, or end what uses it."
        ) from error
    listener.set_inheritable(False)
    return listener
