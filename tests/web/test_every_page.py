"""What holds for each of these pages: whole in Korean, no serious finding of axe, nothing wider than a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from scripts.page import WEB

from tests.server.serving import Process, a_process
from tests.web.site import PATIENCE, Site, a_window

expect.set_options(timeout=PATIENCE * 1000)

PAGES = (
    "/jobs",
    "/jobs?q=nothing",
    "/nodes",
    "/runtimes",
    "/runtimes/horovod-runtime",
    "/admin/tenants",
    "/admin/users",
    "/admin/tokens",
    "/admin/audit",
)
_TEXT = re.compile(r'^  (\w+):\s*\n?\s*"((?:[^"\\]|\\.)*)",$', re.MULTILINE)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[tuple[Process, str]]:
    data = tmp_path_factory.mktemp("pages") / "data"
    with a_process(data, ASTRAGO_AUTH="tokens") as process:
        yield process, (data / "admin-token").read_text().strip()


@pytest.fixture(scope="module", autouse=True)
def _things(place, browser) -> None:
    with a_window(browser, place[0].address) as site:
        site.token = place[1]
        site.api("POST", "/tenants", {"namespace": "team", "title": "Team"})
        site.api("POST", "/users", {"name": "ann"})
        site.api("PUT", "/tenants/team/members/ann", {"role": "member"})
        name = "a-job-with-a-name-too-long-for-a-phone"
        site.submit(name=name, nodes=1, code={"inline": "raise SystemExit('no')"})


def _open(site: Site, place: tuple[Process, str], path: str) -> Page:
    site.page.add_init_script(f"sessionStorage.setItem('astrago.token', '{place[1]}')")
    page = site.open(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("main").get_by_role("status").filter(has_text="…")).to_have_count(0)
    return page


@pytest.mark.parametrize("path", PAGES)
def test_nothing_serious_for_axe_and_nothing_wider_than_a_phone(browser, place, path):
    # Colours that are on their way from light to dark would be judged by where they are just now.
    with a_window(browser, place[0].address, reduced_motion="reduce") as site:
        page = _open(site, place, path)
        assert site.axe() == []
        page.emulate_media(color_scheme="dark")
        assert site.axe() == []
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
        assert site.axe() == []


def test_in_korean_no_english_is_left(browser, place):
    english = {
        text
        for name in ("admin", "common", "jobs", "nodes", "phase", "runtimes")
        for key, text in _catalogue("en", name).items()
        if text != _catalogue("ko", name)[key]
    }
    assert len(english) > 200
    with a_window(browser, place[0].address, locale="ko-KR") as site:
        for path in PAGES:
            lines = set(_open(site, place, path).locator("body").inner_text().splitlines())
            assert lines & english == set(), path


def _catalogue(language: str, name: str) -> dict[str, str]:
    text = (WEB / "src" / "i18n" / language / f"{name}.ts").read_text(encoding="utf-8")
    return dict(_TEXT.findall(text))
