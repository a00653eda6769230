"""The real server, the real page, a real browser. Each test has its own data folder and its own window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from astrago_trainer.server.page import BUILT
from tests.server.serving import Process, a_process
from tests.web.chromium import FLAGS, Missing, chromium
from tests.web.site import Site, a_window


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not (BUILT / "index.html").is_file():
        pytest.fail("the page is not built: make setup")
    try:
        program = chromium()
    except Missing as why:
        pytest.skip(str(why))
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def server(tmp_path) -> Iterator[Process]:
    """`astrago up` with the local engine and without authentication, on a free port."""
    with a_process(tmp_path / "data") as process:
        yield process


@pytest.fixture
def site(browser, server) -> Iterator[Site]:
    """A window on that server. What goes wrong in it fails the test at its end: see `Site.check`."""
    with a_window(browser, server.address) as found:
        yield found


@pytest.fixture
def guarded(browser, tmp_path) -> Iterator[Site]:
    """The same where everybody needs a token; `Site.token` is the administrator's."""
    data = tmp_path / "data"
    with (
        a_process(data, ASTRAGO_AUTH="tokens") as process,
        a_window(browser, process.address) as found,
    ):
        found.token = (data / "admin-token").read_text().strip()
        yield found
