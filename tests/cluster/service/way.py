"""A kubeconfig whose server is the troublesome proxy, in a thread of this process: for servers that are processes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.layout import Layout
from tests.cluster.engine.proxy import Trouble, proxy

from astrago_trainer.engines.kubernetes.credentials import kubeconfig_access


@contextmanager
def a_way(folder: Path, trouble: Trouble) -> Iterator[Path]:
    """The proxy has the rights; who comes through it needs none."""
    loop = asyncio.new_event_loop()
    ready, end = threading.Event(), asyncio.Event()
    found: list[str] = []

    async def serve() -> None:
        async with proxy(kubeconfig_access(Layout.default().kubeconfig), trouble) as access:
            found.append(access.server)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "way",
                "contexts": [{"name": "way", "context": {"cluster": "way"}}],
                "clusters": [{"name": "way", "cluster": {"server": found[0]}}],
            }
        )
    )
    try:
        yield path
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        loop.close()
