"""Administration: tenants, people, tokens that are shown once, and the audit of it all."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.server.hostile import BROWSER
from tests.web.site import PATIENCE, Site, a_window

expect.set_options(timeout=PATIENCE * 1000)


def enter(site: Site, path: str, token: str = "") -> Page:
    page = site.open(path)
    page.get_by_label("Token").fill(token or site.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Main navigation")).to_be_visible()
    return page


def test_a_tenant_a_user_a_role_and_a_token_are_made(guarded, browser):
    guarded.expected = ("status of 401", "status of 409", "status of 404")
    page = enter(guarded, "/admin")
    page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog", name="New tenant")
    dialog.get_by_label("Namespace").fill("team")
    dialog.get_by_label("Title").fill("<b>Team</b> &amp; friends")
    dialog.get_by_role("button", name="Create").click()
    tenants = page.get_by_role("table", name="Tenants")
    expect(tenants.get_by_role("row", name="team")).to_contain_text("<b>Team</b> &amp; friends")
    page.get_by_role("button", name="New tenant").click()
    dialog.get_by_label("Namespace").fill("team")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("is there already")
    expect(dialog.get_by_label("Namespace")).to_have_value("team")
    dialog.get_by_role("button", name="Cancel").click()

    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_role("button", name="New user").click()
    page.get_by_role("dialog").get_by_label("User").fill("vic")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(page.get_by_role("row", name="vic")).to_contain_text("none yet")

    for change, shown in (
        ("Disable", "Disabled"),
        ("Enable", "Has not signed in yet"),
    ):
        page.get_by_role("row", name="vic").get_by_role("button", name=change).click()
        page.get_by_role("alertdialog").get_by_role("button", name=change).click()
        expect(page.get_by_role("row", name="vic")).to_contain_text(shown)
    page.get_by_role("row", name="admin").get_by_role("button", name="Delete").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("the only administrator")
    page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()

    page.get_by_role("link", name="Tenants", exact=True).click()
    members = page.get_by_role("region", name="Members of team")
    members.get_by_label("User").fill("vic")
    members.get_by_role("button", name="Role", exact=False).last.click()
    page.get_by_role("option", name="Viewer").click()
    expect(members).to_contain_text("changes nothing")
    members.get_by_role("button", name="Add").click()
    expect(members.get_by_role("row", name="vic")).to_contain_text("Viewer")

    page.goto("/admin/tokens?user=vic")
    page.get_by_role("button", name="New token").click()
    page.get_by_role("dialog").get_by_label("Label").fill("laptop")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    shown = page.get_by_role("dialog", name="New token", exact=True)
    secret = shown.locator("code").inner_text()
    assert secret.startswith("astrago_")
    shown.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("row", name="laptop")).to_contain_text("Valid")
    assert secret not in page.content()
    page.reload()
    expect(page.get_by_role("row", name="laptop")).to_be_visible()
    assert secret not in page.content()

    with a_window(browser, guarded.address) as other:
        other.expected = ("status of 401",)
        guarded.submit(name="not-hers", nodes=1)
        _a_viewer_changes_nothing(other, secret)
        page.get_by_role("row", name="laptop").get_by_role("button", name="Revoke").click()
        asked = page.get_by_role("alertdialog", name="Revoke the token “laptop”?")
        asked.get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("row", name="laptop")).to_contain_text("Revoked")
        expect(other.page.get_by_text("Your session has ended")).to_be_visible()


def _a_viewer_changes_nothing(site: Site, token: str) -> None:
    page = enter(site, "/jobs", token)
    expect(page.get_by_role("link", name="not-hers")).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)
    page.get_by_role("button", name="Account: vic").click()
    page.get_by_role("link", name="Tokens").click()
    expect(page.get_by_role("row", name="laptop")).to_be_visible()
    sections = page.get_by_role("navigation", name="Sections of the administration")
    expect(sections.get_by_role("link")).to_have_count(2)
    page.goto("/jobs")
    expect(page.get_by_role("link", name="not-hers")).to_be_visible()


def test_the_audit_is_filtered_by_its_address(guarded):
    guarded.expected = ("status of 401",)
    guarded.api("POST", "/tenants", {"namespace": "alpha", "title": ""})
    guarded.api("POST", "/tenants", {"namespace": "beta", "title": ""})
    guarded.api("POST", "/users", {"name": "ann"})
    guarded.submit("alpha", name="audited", nodes=1)
    page = enter(guarded, "/admin/audit")
    table = page.get_by_role("table", name="Audit log")
    expect(table.get_by_role("row", name="job.submit")).to_contain_text("audited")
    page.get_by_role("button", name="Action").click()
    page.get_by_role("option", name="Tenants").click()
    expect(table.get_by_role("row", name="job.submit")).to_have_count(0)
    expect(table.get_by_role("row", name="tenant.create")).to_have_count(2)
    page.get_by_label("Namespace").fill("beta")
    expect(table.get_by_role("row", name="tenant.create")).to_have_count(1)
    page.reload()
    expect(table.get_by_role("row", name="tenant.create")).to_have_count(1)
    page.get_by_label("Who", exact=True).fill("nobody")
    expect(page.get_by_role("heading", name="No entry matches")).to_be_visible()


def test_labels_and_titles_stay_text(guarded):
    guarded.expected = ("status of 401",)
    texts = [each for each in BROWSER if each.isprintable() and each == each.strip()][:30]
    for number, text in enumerate(texts):
        guarded.api("POST", "/tokens", {"label": text[:200]})
        guarded.api("POST", "/tenants", {"namespace": f"team-{number}", "title": text[:200]})
    page = enter(guarded, "/admin/tokens")
    for text in texts:
        expect(page.get_by_role("cell", name=text[:200], exact=True).first).to_be_visible()
    page.goto("/admin/tenants")
    for text in texts:
        expect(page.get_by_role("cell", name=text[:200], exact=True).first).to_be_visible()


def test_an_owner_invites_and_the_guest_accepts_and_leaves(guarded, browser):
    guarded.expected = ("status of 401",)
    guarded.api("POST", "/tenants", {"namespace": "guild", "title": ""})
    for user in ("owner", "guest"):
        guarded.api("POST", "/users", {"name": user})
    guarded.api("PUT", "/tenants/guild/members/owner", {"role": "administrator"})
    owner, guest = [
        guarded.api("POST", "/tokens", {"user": each, "label": "web"})["secret"]
        for each in ("owner", "guest")
    ]
    page = enter(guarded, "/admin", owner)
    members = page.get_by_role("region", name="Members of guild")
    for user in ("guest", "nobody"):
        members.get_by_label("User").fill(user)
        members.get_by_role("button", name="Invite").click()
        expect(page.get_by_role("row", name=user)).to_contain_text("Member")
    page.get_by_role("row", name="nobody").get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("row", name="nobody")).to_have_count(0)

    with a_window(browser, guarded.address) as other:
        other.expected = ("status of 401",)
        page = enter(other, "/jobs", guest)
        expect(page.get_by_text("You are invited to a namespace.")).to_be_visible()
        page.get_by_role("link", name="Show invitations").click()
        page.get_by_role("row", name="guild").get_by_role("button", name="Accept").click()
        expect(page.get_by_text("You are invited to a namespace.")).to_have_count(0)
        mine = page.get_by_role("table", name="Your namespaces")
        expect(mine.get_by_role("row", name="guild")).to_contain_text("Member")
        mine.get_by_role("row", name="guild").get_by_role("button", name="Leave").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Leave").click()
        expect(mine).to_have_count(0)
