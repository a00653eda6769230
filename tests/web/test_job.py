"""The page of a job: its story from the first line to the last, read by people who wait for it."""

from __future__ import annotations

import json
import platform
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.server.hostile import STRINGS
from tests.server.serving import a_process
from tests.web.site import PATIENCE, Site

expect.set_options(timeout=PATIENCE * 1000)

# Waits for files of the test, so that nothing depends on time. In the first attempt rank 1 fails while rank 0 waits.
STORY = """
import os, pathlib, time
folder, rank = pathlib.Path({folder!r}), os.environ["PET_NODE_RANK"]
first = not (folder / "failed").exists()
def gate(name):
    while not (folder / name).exists(): time.sleep(0.05)
print(f"\\x1b[32mhello\\x1b[0m from rank {{rank}}", flush=True)
def steps(begin, end):
    for step in range(begin, end):
        print(f"step {{step}}/9 loss={{3 / step:.4f}}", flush=True)
steps(1, 4)
print("10%", end="\\r", flush=True)
print("100%", flush=True)
gate("kill")
if first:
    if rank == "1":
        (folder / "failed").touch()
        print("the last words of rank 1", flush=True)
        os._exit(3)
    gate("never")
steps(4, 10)
gate("end")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("job") / "data"


@pytest.fixture(scope="module")
def server(data):
    """One for the module: each test has its own jobs."""
    with a_process(data) as process:
        yield process


def _badge(page: Page, word: str) -> Locator:
    return page.locator("h1 + span").get_by_text(word, exact=True)


def _log(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=f"Log of {name}")


def _answering(body: object):
    """A route that does not ask the server."""
    return lambda route: route.fulfill(json=body)


def _finished(site: Site, name: str, **fields) -> str:
    """The address of a job that has ended."""
    site.submit(name=name, **fields)
    page = site.open(f"/jobs/team/{name}")
    expect(_badge(page, "Complete")).to_be_visible()
    return f"/jobs/team/{name}"


def test_a_job_is_watched_from_its_first_line_to_its_end(site, tmp_path):
    story = STORY.format(folder=str(tmp_path))
    site.submit(name="story", nodes=2, max_restarts=1, code={"inline": story})
    page = site.open("/jobs/team/story")
    expect(_badge(page, "Running")).to_be_visible()
    expect(page.get_by_text("the training runs on all nodes")).to_be_visible()
    log = _log(page, "story")
    for rank in (0, 1):
        row = log.locator("[data-line]").filter(has_text=re.compile(rf"rank {rank}.*step 3/9"))
        expect(row).to_have_count(1)
    expect(log.get_by_text("hello", exact=True).first).to_have_class(re.compile("green"))
    expect(log.locator("[data-line]").filter(has_text=re.compile(r"\d0%"))).to_have_count(
        2
    )  # no 10%
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute(
        "aria-valuenow", "33"
    )
    page.get_by_role("tab", name="Metrics").click()
    expect(page).to_have_url(re.compile("tab=metrics"))
    expect(page.get_by_role("img", name="Plot of loss: 3 points")).to_be_visible()

    (tmp_path / "kill").touch()
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_text("Attempt 2")).to_be_visible()
    expect(timeline).to_contain_text("exit code 3")
    plot = page.get_by_role("img", name="Plot of loss: 12 points")
    expect(plot).to_have_attribute("aria-label", re.compile("Attempt 2 begins at step 1"))
    page.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="loss").get_by_role("row")).to_have_count(13)
    page.get_by_role("tab", name="Logs").click()
    expect(log.get_by_text("Attempt 2", exact=True)).to_be_attached()
    expect(page.get_by_text("2 (1 of 1 restarts used)")).to_be_visible()

    page.get_by_role("button", name="Rank", exact=False).first.click()
    page.get_by_role("option", name="Rank 1").click()
    expect(page).to_have_url(re.compile("rank=1"))
    expect(log.locator("[data-line]").filter(has_text="hello from rank 1")).to_have_count(2)
    expect(log.locator("[data-line]").filter(has_text="hello from rank 0")).to_have_count(0)
    page.get_by_role("searchbox", name="Search the log").fill("last words")
    expect(page.get_by_role("status").get_by_text("1 of 1", exact=True)).to_be_visible()
    expect(log.locator("mark")).to_have_text("last words")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all attempts").click()
    assert download.value.suggested_filename == "story-rank-1.log"
    whole = download.value.path().read_text()
    assert whole.startswith("=== Attempt 1 ===\n")
    assert whole.index("last words") < whole.index("=== Attempt 2 ===\n")
    assert whole.count(" from rank 1\n") == 2

    page.get_by_role("button", name="Suspend").click()
    dialog = page.get_by_role("alertdialog")
    expect(dialog).to_contain_text("2 pods")
    dialog.get_by_role("button", name="Suspend").click()
    expect(_badge(page, "Suspended")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Resume").click()
    expect(_badge(page, "Running")).to_be_visible()
    (tmp_path / "end").touch()
    expect(_badge(page, "Complete")).to_be_visible()

    page.get_by_role("tab", name="Pods").click()
    pods = page.get_by_role("table", name="Pods of the newest attempt")
    expect(pods.get_by_role("row").nth(2)).to_contain_text("Succeeded")
    known = site.api("GET", "/namespaces/team/jobs/story/pods")["items"]
    for each in known:
        row = pods.get_by_role("row").filter(has_text=f"Rank {each['rank']}")
        expect(row.get_by_role("link", name=platform.node())).to_be_visible()
        expect(row).to_contain_text(each["address"])
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("searchbox", name="Filter the events").fill("suspension")
    expect(page.get_by_role("table", name="Events").get_by_role("row")).to_have_count(2)
    page.get_by_role("tab", name="Spec").click()
    expect(page.get_by_role("cell", name="max_restarts")).to_be_visible()
    page.get_by_role("tab", name="Effective pods").click()
    expect(page.get_by_role("option", name=re.compile("you.*parallelism: 2"))).to_be_visible()
    page.get_by_role("tab", name="Checkpoints").click()
    expect(page.get_by_role("heading", name="No checkpoints")).to_be_visible()

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alertdialog")).to_contain_text(
        "logs, metrics and events of all its runs"
    )
    site.expected = (
        "status of 404",
    )  # the page reads a job that changes, and this one may be gone then
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{site.address}/jobs")


def test_a_clone_leads_to_its_original_and_shows_what_differs_when_that_is_gone(site):
    site.submit(name="first", nodes=1, max_restarts=1, env=[{"name": "WORD", "value": "old"}])
    changes = {"name": "second", "max_restarts": 2, "env": [{"name": "WORD", "value": "new"}]}
    site.api("POST", "/namespaces/team/jobs/first:clone", changes)
    page = site.open("/jobs/team/second")
    expect(_badge(page, "Complete")).to_be_visible()
    facts = page.get_by_role("region", name="About the job")
    facts.get_by_role("link", name="first", exact=True).click()
    expect(page).to_have_url(f"{site.address}/jobs/team/first")
    expect(_badge(page, "Complete")).to_be_visible()
    expect(facts).not_to_contain_text("Cloned from")

    def differs() -> None:
        table = page.get_by_role("table", name="Compare")
        expect(table.get_by_role("row")).to_have_count(3)
        expect(table.get_by_role("row", name="max_restarts 2 1")).to_be_visible()
        expect(table.get_by_role("row", name="env[0].value new old")).to_be_visible()

    page.go_back()
    facts.get_by_role("link", name="What differs").click()
    differs()
    site.expected = ("status of 404",)  # the page asks whether the original is there
    site.api("DELETE", "/namespaces/team/jobs/first")
    page.goto("/jobs/team/first")
    expect(page.get_by_role("heading", name="Job not found")).to_be_visible()
    page.goto("/jobs/team/second?tab=spec&view=compare")
    expect(facts).to_contain_text("first, which was deleted")
    expect(page.get_by_text("It is compared as it was")).to_be_visible()
    differs()
    assert site.axe() == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_job_that_somebody_else_deletes_stays_on_the_screen(site):
    _finished(site, "shortlived", nodes=1, code={"inline": "print('still here')"})
    page = site.page
    expect(_log(page, "shortlived")).to_contain_text("still here")
    site.api("DELETE", "/namespaces/team/jobs/shortlived")
    expect(page.get_by_text("This job was deleted")).to_be_visible()
    expect(_log(page, "shortlived")).to_contain_text("still here")
    site.expected = ("status of 404",)
    page.reload()
    expect(page.get_by_role("heading", name="Job not found")).to_be_visible()


def test_what_was_read_before_a_deletion_does_not_hide_it(site):
    """The answer is under way while the job goes, and the news of that overtakes it."""
    path = "/namespaces/team/jobs/overtaken"
    _finished(site, "overtaken", nodes=1, code={"inline": "print('still here')"})
    page, elsewhere = site.page, site.page.context.new_page()
    elsewhere.goto("/jobs")
    row = elsewhere.get_by_role("row", name=re.compile("overtaken"))
    expect(row).to_be_visible()

    held = []
    job = site.api("GET", path)
    parts = {
        "explain": site.api("GET", f"{path}/explain"),
        "events": {"items": [], "next_after": None},
        "metrics": site.api("GET", f"{path}/metrics?points=1"),
    }
    page.route("**/jobs/overtaken", lambda route: held.append(route))
    for name, answer in parts.items():
        page.route(f"**/jobs/overtaken/{name}*", _answering(answer))
    with page.expect_request("**/jobs/overtaken"):
        site.api("DELETE", path)
    expect(page.get_by_text("This job was deleted")).to_be_visible()
    expect(row).to_have_count(0)
    with page.expect_response("**/jobs/overtaken/metrics*"):
        for each in held:
            each.fulfill(json=job)
    elsewhere.close()
    expect(_badge(page, "Complete")).to_be_visible()  # as it was when it was read
    expect(page.get_by_text("This job was deleted")).to_be_visible()


def test_hostile_strings_are_text(site):
    """In lines, in variables and in the message of a failure; at the end the fixture looks for dialogs and reports."""
    safe = [each for each in STRINGS if each.isprintable() and each.strip() == each != ""]
    assert len(safe) >= 200
    values = [each for each in STRINGS if "\0" not in each][:200]
    code = (
        f"import json, sys\nfor each in json.loads({json.dumps(json.dumps(STRINGS))}): print(each)\n"
        "print('<img src=x onerror=alert(1)>'); sys.exit(1)\n"
    )
    env = [{"name": f"V{number}", "value": each} for number, each in enumerate(values)]
    site.submit(name="hostile", nodes=1, code={"inline": code}, env=env)
    page = site.open("/jobs/team/hostile")
    expect(_badge(page, "Failed")).to_be_visible()
    expect(page.get_by_role("region", name="Message")).to_contain_text(
        "<img src=x onerror=alert(1)>"
    )
    expect(page.get_by_text("exit code 1").first).to_be_visible()
    shown = set(_all_lines(page, "hostile"))
    assert [each for each in safe if each not in shown] == []
    page.get_by_role("tab", name="Spec").click()
    table = page.get_by_role("table", name="Request")
    expect(table).to_be_visible()
    cells = set(table.locator("td:nth-child(2)").all_inner_texts())
    assert [
        each
        for each in values
        if each.isprintable() and each.strip() == each != "" and each not in cells
    ] == []
    for tab in ("Events", "Pods", "Metrics"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).to_be_visible()


def _all_lines(page: Page, name: str) -> list[str]:
    """The text of every line of a log, by scrolling through it."""
    found = _log(page, name).evaluate(
        """async (log) => {
          const found = new Map();
          const frame = () => new Promise(requestAnimationFrame);
          for (let top = 0; top <= log.scrollHeight; top += log.clientHeight / 2) {
            log.scrollTop = top;
            await frame(); await frame();
            for (const row of log.querySelectorAll("[data-line]")) {
              found.set(Number(row.dataset.line), row.lastElementChild.textContent);
            }
          }
          return [...found].sort((a, b) => a[0] - b[0]).map((each) => each[1]);
        }"""
    )
    return list(found)


def test_a_viewer_reads_everything_and_is_told_why_nothing_can_be_pressed(guarded):
    guarded.api("POST", "/tenants", {"namespace": "team", "title": ""})
    guarded.api("POST", "/users", {"name": "vera", "is_administrator": False})
    guarded.api("PUT", "/tenants/team/members/vera", {"role": "viewer"})
    token = guarded.api("POST", "/tokens", {"user": "vera"})["secret"]
    guarded.submit(name="seen", user="admin", nodes=1)
    guarded.expected = ("status of 401",)
    page = guarded.open("/jobs/team/seen")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(_badge(page, "Complete")).to_be_visible()
    expect(_log(page, "seen")).to_contain_text("hello")
    for verb in ("Suspend", "Restart", "Clone", "Delete"):
        button = page.get_by_role("button", name=f"{verb}: Only members of team")
        expect(button).to_have_attribute("aria-disabled", "true")
    button.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Only members of team")
    button.press("Enter")
    expect(page.get_by_role("region", name="Notifications")).to_contain_text("Only members")
    expect(page.get_by_role("alertdialog")).to_have_count(0)


TABS = ("", "?tab=metrics", "?tab=pods", "?tab=events", "?tab=spec", "?tab=checkpoints")
PRINTS = "for step in range(1, 20): print(f'step {step}/19 loss={1 / step}')"


def test_every_part_is_accessible_fits_a_phone_and_speaks_korean(site):
    address = _finished(site, "parts", nodes=2, code={"inline": PRINTS})
    page = site.page
    page.get_by_role("button", name="Language: English").click()
    page.get_by_role("menuitemradio", name="한국어").click()
    for number, tab in enumerate(TABS):
        page.emulate_media(color_scheme="dark" if number % 2 else "light")
        page.set_viewport_size({"width": 390 if number % 3 else 1280, "height": 844})
        page.goto(address + tab)
        expect(page.get_by_text("모든 노드가 정상적으로 끝났습니다")).to_be_visible()
        expect(page.get_by_text("불러오는 중…")).to_have_count(0)
        assert site.axe() == [], tab
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
    english = re.compile("Attempt|Rank |lines|Reason|Message|Pods|Search")
    expect(page.get_by_role("main").get_by_text(english)).to_have_count(0)
