"""`make screenshots`: every page in both languages, both colours and two widths, of a real server with jobs on it.

The pictures are in build/screenshots, as `jobs-en-light-1280.png`. `make screenshots VIEWS="jobs nodes"` takes some of
them, and `make screenshots VIEWS=readme` takes the two of the README anew. What they show is in `shown.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from scripts import shown
from scripts.shown import OTHER, PATIENCE, TEAM, Client
from tests.web.chromium import FLAGS, chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "screenshots"
README = "readme"
SERVE = "--serve"
MOMENT_MS = 500
"""For bars and plots to move to where they belong."""
LANGUAGES = {"en": "en-US", "ko": "ko-KR"}


@dataclass(frozen=True)
class Look:
    """How a window looks."""

    language: str
    colour: str
    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.language}-{self.colour}-{self.width}"


LOOKS = tuple(
    Look(language, colour, width, height)
    for width, height in ((1280, 800), (390, 844))
    for language in LANGUAGES
    for colour in ("light", "dark")
)


@dataclass(frozen=True)
class View:
    """One picture."""

    name: str
    path: str
    ready: str
    """A selector of what must be there."""
    is_signed_in: bool = True
    is_whole: bool = False
    """Also what is below the window."""
    act: Callable[[Page], Any] = lambda page: None
    """What a person does before the picture is taken."""


def _fill_in_the_sample(page: Page) -> None:
    page.locator("main button").first.click()
    page.locator("aside ul li").first.wait_for()


def _select_two(page: Page) -> None:
    for row in (2, 3):
        page.locator("[role=row]").nth(row).locator("label").click()


JOB = f"/jobs/{TEAM}/resnet50-imagenet"
PANEL = "[role=tabpanel]"
ROWS = "[role=row] svg path[d^=M]"  # with their losses
VIEWS = (
    View("sign-in", "/jobs", "input[type=password]", is_signed_in=False),
    View("jobs", "/jobs", ROWS),
    View("jobs-none", "/jobs?q=nothing-is-called-so", "main h2"),
    View("jobs-selected", "/jobs", ROWS, act=_select_two),
    View("jobs-keys", "/jobs", ROWS, act=lambda page: page.keyboard.press("?")),
    View("new", "/new", "aside ul li", is_whole=True),
    View("new-sample", "/new", "aside", act=_fill_in_the_sample),
    View("new-clone", f"/new?from=resnet50-imagenet&namespace={TEAM}", "aside ul li"),
    View("new-copy", f"/new?from=resnet50-imagenet&namespace={TEAM}&plan=copy", "aside pre", is_whole=True),
    View("job", JOB, "[data-line]", is_whole=True),
    View("job-logs", f"{JOB}?tab=logs", "[data-line]"),
    View("job-metrics", f"{JOB}?tab=metrics", "canvas", is_whole=True),
    View("job-pods", f"{JOB}?tab=pods", f"{PANEL} table"),
    View("job-events", f"{JOB}?tab=events", f"{PANEL} table"),
    View("job-spec", f"{JOB}?tab=spec", PANEL),
    View("job-checkpoints", f"{JOB}?tab=checkpoints", PANEL),
    View("job-failed", f"/jobs/{TEAM}/bert-large-finetune", "[data-line]", is_whole=True),
    View("job-restarted", f"/jobs/{OTHER}/t5-summarise?tab=metrics", "canvas", is_whole=True),
    View("job-waiting", f"/jobs/{TEAM}/unet-segmentation?tab=events", f"{PANEL} table"),
    View("job-missing", f"/jobs/{TEAM}/nothing", "main h2"),
    View("nodes", "/nodes", "main [role=progressbar]", is_whole=True),
    View("runtimes", "/runtimes", "main li"),
    View("runtime", "/runtimes/horovod-runtime", "main dl", is_whole=True),
    View("admin-tenants", f"/admin/tenants?namespace={TEAM}", "main table", is_whole=True),
    View("admin-users", "/admin/users", "main table"),
    View("admin-tokens", "/admin/tokens", "main table"),
    View("admin-audit", "/admin/audit", "main table"),
)  # fmt: skip
OF_README = (
    (VIEWS[1], "jobs"),
    (View("job", f"{JOB}?tab=metrics", "canvas"), "job"),
)


def main(names: list[str]) -> int:
    known = {each.name for each in VIEWS} | {README}
    if unknown := set(names) - known:
        print(f"screenshots: there is no view {', '.join(sorted(unknown))}; there are "
              f"{', '.join(sorted(known))}.", file=sys.stderr)  # fmt: skip
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="astrago-pictures-") as folder,
        _a_server(Path(folder) / "data") as (address, token),
        sync_playwright() as playwright,
    ):
        client = Client(address, token)
        try:
            shown.fill(client, Path(folder))
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            missing = _take_all(browser, address, token, names)
            browser.close()
        finally:
            shown.end(client)
    return 1 if missing else 0


def _take_all(browser: Browser, address: str, token: str, names: list[str]) -> int:
    """How many could not be taken."""
    if names == [README]:
        with _windows(browser, address, token, LOOKS[0]) as pages:
            images = ROOT / "docs" / "images"
            return sum(_take(pages, view, images / f"{name}.png") for view, name in OF_README)
    wanted = [each for each in VIEWS if not names or each.name in names]
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing = 0
    for look in LOOKS:
        with _windows(browser, address, token, look) as pages:
            for view in wanted:
                missing += _take(pages, view, FOLDER / f"{view.name}-{look}.png")
        print(look, flush=True)
    return missing


def _take(pages: Sequence[Page], view: View, path: Path) -> bool:
    """Whether it is missing; that must not cost the others."""
    page = pages[view.is_signed_in]
    page.goto(view.path)
    try:
        page.locator(view.ready).first.wait_for()
        view.act(page)
    except Exception as error:
        print(f"{path.name}: {str(error).splitlines()[0]}", file=sys.stderr)
        return True
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(MOMENT_MS)
    size = page.viewport_size
    assert size is not None
    if view.is_whole:
        # A taller window, not a longer picture: what sticks to its end stays there.
        whole = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": size["width"], "height": max(whole, size["height"])})
        page.wait_for_timeout(MOMENT_MS)
    page.screenshot(path=path)
    page.set_viewport_size(size)
    return False


@contextmanager
def _windows(browser: Browser, address: str, token: str, look: Look) -> Iterator[tuple[Page, Page]]:
    """One without a token, and one with."""
    context = browser.new_context(
        base_url=address,
        locale=LANGUAGES[look.language],
        timezone_id="Asia/Seoul",
        color_scheme="dark" if look.colour == "dark" else "light",
        viewport={"width": look.width, "height": look.height},
        has_touch=look.width < 500,
    )
    context.set_default_timeout(20_000)
    stranger, person = context.new_page(), context.new_page()
    person.add_init_script(
        f"sessionStorage.setItem('astrago.token', '{token}');"
        f"localStorage.setItem('astrago.new.namespace', '{TEAM}')"
    )
    yield stranger, person
    context.close()


@contextmanager
def _a_server(data: Path) -> Iterator[tuple[str, str]]:
    """Its address, and the token of its administrator."""
    asyncio.run(shown.remember_older(data))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ASTRAGO_")
    }
    with (data.parent / "server.log").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.screenshots", SERVE, str(data)],
            cwd=ROOT,
            env={
                **environment,
                "ASTRAGO_AUTH": "tokens",
                "ASTRAGO_SIGNUP": "open",
                "ASTRAGO_LOCAL_USERS": "trusted",
            },
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError((data.parent / "server.log").read_text()[-3000:])
        yield address, (data / "admin-token").read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        process.stdout.close()


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVE]:
        shown.serve(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
