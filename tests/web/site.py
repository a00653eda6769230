"""A page in a browser, and everything that must not happen in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, ConsoleMessage, Page, Request
from scripts.page import WEB

from tests.server.serving import a_request, bearer

AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 120.0
"""Seconds; only a failing test takes them."""

# The policy is also told to the document, where it has a name and a line.
_REPORTS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile));
"""


@contextmanager
def a_window(browser: Browser, address: str, **options: Any) -> Iterator[Site]:
    """A window on a server; what goes wrong in it fails the test at its end."""
    shape = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}, **options}
    context = browser.new_context(base_url=address, **shape)
    context.set_default_timeout(PATIENCE * 1000)
    try:
        site = Site(context.new_page(), address)
        yield site
        site.check()
    finally:
        context.close()


class Site:
    """One window, its server, and a client of the API beside it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.token = ""
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Parts of messages that a test causes on purpose, as a request that is refused."""
        self.neighbour = ""
        """The origin of an issuer, which the page may ask as well."""
        page.add_init_script(_REPORTS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on(
            "dialog",
            lambda dialog: (self.errors.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        )
        page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def _see(self, request: Request) -> None:
        known = (self.address, *([self.neighbour] if self.neighbour else []))
        if not request.url.startswith(known) and urlsplit(request.url).scheme != "data":
            self.foreign.append(request.url)

    def open(self, path: str = "/") -> Page:
        self.page.goto(path)
        return self.page

    def check(self) -> None:
        """No error in the console, no report of the policy, no dialog, no request to another host."""
        found = [each for each in self.errors if not any(word in each for word in self.expected)]
        assert not found, found
        assert self.foreign == []

    def axe(self) -> list[str]:
        """Serious and critical findings on what is shown, as 'rule: element'."""
        # Not as a <script>: the policy of the page would rightly refuse it.
        found = self.page.evaluate(f"(() => {{ {AXE.read_text(encoding='utf-8')} }})(), axe.run()")
        return [
            f"{rule['id']}: {node['html'][:200]}"
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = bearer(self.token) if self.token else {}
        answer = httpx.request(
            method, f"{self.address}/api/v1{path}", json=body, headers=headers, timeout=PATIENCE
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def submit(self, namespace: str = "team", **fields: Any) -> dict[str, Any]:
        """A job, as somebody else would: the page must hear of it by itself."""
        made: dict[str, Any] = self.api(
            "POST", f"/namespaces/{namespace}/jobs", a_request(**fields)
        )
        return made
