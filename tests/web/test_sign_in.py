"""Coming in and going out: by token, by sign-up, by an issuer; and being told why one is outside."""

from __future__ import annotations

import re
import time

from playwright.sync_api import expect

from tests.server.serving import a_process
from tests.web.issuer import CLIENT, an_issuer
from tests.web.site import PATIENCE, a_window

expect.set_options(timeout=PATIENCE * 1000)


def test_whoever_signs_out_is_told_and_comes_back_to_the_same_place(guarded):
    guarded.expected = ("status of 401",)
    page = guarded.open("/jobs?q=mine")
    token = page.get_by_label("Token")
    token.fill(guarded.token)
    token.press("Enter")
    expect(page.get_by_role("searchbox")).to_have_value("mine")
    page.get_by_role("button", name="Account: admin").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    assert guarded.axe() == []
    page.emulate_media(color_scheme="dark")
    assert guarded.axe() == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Token").fill(guarded.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("searchbox")).to_have_value("mine")


def test_somebody_new_signs_up_and_keeps_the_token(browser, tmp_path):
    variables = {"ASTRAGO_AUTH": "tokens", "ASTRAGO_SIGNUP": "open"}
    with (
        a_process(tmp_path / "data", **variables) as process,
        a_window(browser, process.address) as site,
    ):
        site.expected = ("status of 401", "status of 422")
        page = site.open("/")
        page.get_by_role("button", name="Sign up").click()
        page.get_by_label("User name").fill("Kim Dev")
        page.get_by_role("button", name="Sign up").click()
        expect(page.get_by_text(re.compile("must"))).to_be_visible()
        page.get_by_label("User name").fill("user123")
        page.get_by_role("button", name="Sign up").click()
        expect(page.get_by_role("heading", name="Welcome, user123")).to_be_visible()
        expect(page.get_by_text("user-123")).to_be_visible()
        secret = page.locator("code").inner_text()
        page.get_by_role("button", name="I have saved it").click()
        expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
        site.token = secret
        assert site.api("GET", "/whoami")["name"] == "user123"


def test_somebody_of_an_issuer_comes_in_makes_a_namespace_and_the_session_ends(browser, tmp_path):
    with an_issuer() as issuer:
        variables = {
            "ASTRAGO_AUTH": "tokens",
            "ASTRAGO_SIGNUP": "open",
            "ASTRAGO_OIDC_ISSUER": issuer.url,
            "ASTRAGO_OIDC_AUDIENCE": CLIENT,
        }
        with (
            a_process(tmp_path / "data", **variables) as process,
            a_window(browser, process.address) as site,
        ):
            site.neighbour = issuer.url
            site.expected = ("status of 401",)
            page = site.open("/jobs?owner=user123")
            door = page.get_by_role("button", name=re.compile("^Sign in with 127"))
            door.click()
            expect(page.get_by_role("heading", name="You have no namespace yet")).to_be_visible()
            expect(page).to_have_url(f"{site.address}/jobs?owner=user123")
            page.get_by_role("button", name="Make my namespace").click()
            expect(page.get_by_role("button", name="Account: user123")).to_be_visible()
            expect(page.get_by_role("searchbox")).to_be_visible()
            page.reload()
            expect(page.get_by_role("button", name="Account: user123")).to_be_visible()

            # A token for a few seconds: the page knows when its time is over, before the server says so.
            page.get_by_role("button", name="Account: user123").click()
            page.get_by_role("button", name="Sign out").click()
            issuer.claims = {"exp": int(time.time()) + 5}
            door.click()
            expect(page.get_by_text("Your session has expired")).to_be_visible()
            expect(page).to_have_url(f"{site.address}/jobs?owner=user123")

            # An answer that nobody asked for, and a token of another question.
            page.goto("/sign-in?code=x&state=y")
            expect(page.get_by_text("was not started in this tab")).to_be_visible()
            expect(page).to_have_url(f"{site.address}/sign-in")
            issuer.claims = {"nonce": "another"}
            door.click()
            expect(page.get_by_text("does not belong to this sign-in")).to_be_visible()
            assert page.evaluate("sessionStorage.getItem('astrago.token')") is None
