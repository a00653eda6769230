"""The page opens, is live, speaks two languages, and keeps to itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)

WAITS = "import pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.05)\n"


def _row(page: Page, name: str):
    return page.get_by_role("row", name=name)


def test_a_job_comes_and_changes_its_state_before_the_eyes(site, tmp_path):
    page = site.open()
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    go = tmp_path / "go"
    site.submit(name="hello", nodes=1, code={"inline": WAITS.format(str(go))})
    expect(_row(page, "hello")).to_contain_text("Running")
    go.touch()
    expect(_row(page, "hello")).to_contain_text("Complete")
    site.expected = ("status of 404",)  # a row may ask for the loss of a job that is gone by then
    site.api("DELETE", "/namespaces/team/jobs/hello")
    expect(_row(page, "hello")).to_have_count(0)


def test_filters_are_part_of_the_address(site):
    site.submit(name="alpha", nodes=1)
    site.submit(name="beta", nodes=1)
    page = site.open("/jobs?q=alp")
    expect(_row(page, "alpha")).to_be_visible()
    expect(_row(page, "beta")).to_have_count(0)
    page.get_by_role("searchbox").fill("bet")
    expect(_row(page, "beta")).to_be_visible()
    expect(_row(page, "alpha")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/jobs\?q=bet$"))


@pytest.mark.parametrize(
    ("link", "heading", "path"),
    [
        ("New job", "New job", "/new"),
        ("Nodes", "Nodes", "/nodes"),
        ("Runtimes", "Runtimes", "/runtimes"),
        ("Administration", "Administration", "/admin"),
    ],
)
def test_every_page_is_reached_by_a_link_and_by_its_address(site, link, heading, path):
    page = site.open()
    navigation = page.get_by_role("navigation", name="Main navigation")
    navigation.get_by_role("link", name=link, exact=True).click()
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
    expect(page).to_have_url(f"{site.address}{path}")
    page.reload()
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()


def test_an_address_that_names_nothing_says_so(site):
    page = site.open("/jobs/a/b/c")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()


def test_language_and_colours_are_chosen_and_remembered(site):
    page = site.open()
    page.get_by_role("button", name="Language: English").click()
    page.get_by_role("menuitemradio", name="한국어").click()
    expect(page.get_by_role("heading", level=1, name="작업")).to_be_visible()
    page.get_by_role("button", name=re.compile("^화면 모드")).click()
    page.get_by_role("menuitemradio", name="어둡게").click()
    page.reload()
    expect(page.get_by_role("heading", level=1, name="작업")).to_be_visible()
    html = page.locator("html")
    expect(html).to_have_attribute("lang", "ko")
    expect(html).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_a_lost_connection_is_shown_and_comes_back_by_itself(site, server, tmp_path):
    site.expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET")
    page = site.open()
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    server.kill()
    note = page.get_by_text("Connection lost")
    expect(note).to_be_visible()
    port = site.address.rpartition(":")[2]
    with a_process(tmp_path / "data", port=port):
        expect(note).to_have_count(0)
        site.submit(name="after", nodes=1)
        expect(_row(page, "after")).to_be_visible()


def test_nobody_enters_without_a_token_and_a_session_ends(guarded):
    guarded.expected = ("status of 401",)
    page = guarded.open("/nodes")
    token = page.get_by_label("Token")
    token.fill("astrago_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("does not know this token")).to_be_visible()
    token.fill(guarded.token)
    token.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Nodes")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1, name="Nodes")).to_be_visible()
    page.get_by_role("button", name="Account: admin").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_token_that_is_revoked_ends_the_session(guarded):
    guarded.expected = ("status of 401",)
    mine = guarded.api("POST", "/tokens", {"label": "browser"})
    page = guarded.open()
    page.get_by_label("Token").fill(mine["secret"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    guarded.api("DELETE", f"/tokens/{mine['id']}")
    page.get_by_role("searchbox").fill("x")
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_a_phone_has_the_whole_navigation_behind_one_button(site):
    site.page.set_viewport_size({"width": 360, "height": 740})
    site.submit(name="a-job-with-a-name-that-is-too-long-for-a-phone", nodes=1)
    page = site.open()
    expect(_row(page, "a-job")).to_be_visible()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Runtimes").click()
    expect(page.get_by_role("heading", level=1, name="Runtimes")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nothing_serious_for_axe_in_both_colours(site):
    site.submit(name="hello", nodes=1)
    page = site.open()
    expect(_row(page, "hello")).to_be_visible()
    # Colours that are on their way from light to dark would be judged by where they are just now.
    page.emulate_media(reduced_motion="reduce")
    assert site.axe() == []
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert site.axe() == []
