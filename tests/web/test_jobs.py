"""The list of jobs: live, filtered by its address, walked by keys, changed in bulk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.server.hostile import BROWSER
from tests.server.serving import Process, a_process
from tests.web.site import PATIENCE, Site, a_window

expect.set_options(timeout=PATIENCE * 1000)

LEARNS = """
import pathlib, time
for step in range(1, 11):
    print(f"step {{step}}/10 loss {{1 / step:.4f}}", flush=True)
    while step == 5 and not pathlib.Path({go!r}).exists(): time.sleep(0.05)
"""
WAITS = "import time\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Process]:
    with a_process(tmp_path_factory.mktemp("jobs") / "data") as process:
        yield process


@pytest.fixture
def shared(browser, place) -> Iterator[Site]:
    """A window on a server that other tests of this module use, too: names tell whose a job is."""
    with a_window(browser, place.address) as found:
        yield found


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def test_progress_and_loss_move_and_the_reason_is_said_in_words(shared, tmp_path):
    go = tmp_path / "go"
    shared.submit(name="learns", nodes=1, code={"inline": LEARNS.format(go=str(go))})
    page = shared.open("/jobs?q=learns")
    mine = row(page, "learns")
    expect(mine).to_contain_text("the training runs on all nodes")
    expect(mine.get_by_role("progressbar", name="Progress of learns")).to_have_attribute(
        "aria-valuenow", "50"
    )
    expect(mine.get_by_title("Newest loss")).to_contain_text("0.2")
    expect(mine.locator("svg path[d^='M1']")).to_have_count(1)
    for word in ("PyTorch", "1 × CPU", "ann"):
        expect(mine).to_contain_text(word)
    go.touch()
    expect(mine).to_contain_text("Complete")
    expect(mine.get_by_title("Newest loss")).to_contain_text("0.1")
    shared.submit(name="learns-not", nodes=1, code={"inline": "raise SystemExit('no data')"})
    expect(row(page, "learns-not")).to_contain_text("no data")


def test_filters_are_links_and_survive_a_reload(shared):
    shared.submit(name="fine-filter", nodes=1, user="bob")
    shared.submit(name="bad-filter", nodes=1, code={"inline": "raise SystemExit(3)"})
    page = shared.open("/jobs?q=filter")
    expect(row(page, "fine-filter")).to_contain_text("Complete")
    expect(row(page, "bad-filter")).to_contain_text("Failed")
    page.get_by_role("button", name="State", exact=False).first.click()
    page.get_by_role("option", name="Failed").click()
    expect(row(page, "fine-filter")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"\?q=filter&phase=Failed$"))
    page.reload()
    expect(row(page, "bad-filter")).to_be_visible()
    expect(row(page, "fine-filter")).to_have_count(0)
    page.get_by_role("button", name="Clear the filter").click()
    row(page, "fine-filter").get_by_role("link", name="bob").click()
    expect(page).to_have_url(re.compile(r"/jobs\?owner=bob$"))
    expect(row(page, "bad-filter")).to_have_count(0)
    expect(row(page, "fine-filter")).to_be_visible()
    page.goto("/jobs?q=nothing-is-called-so")
    expect(page.get_by_role("heading", name="No job matches the filter")).to_be_visible()


def test_the_list_is_walked_by_keys(shared):
    for number in range(3):
        shared.submit(name=f"key-{number}", nodes=1)
    page = shared.open("/jobs?q=key-")
    expect(row(page, "key-0")).to_be_visible()
    link = {number: page.get_by_role("link", name=f"key-{number}") for number in range(3)}
    page.keyboard.press("j")
    expect(link[2]).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(link[1]).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select key-1")).to_be_checked()
    expect(page.get_by_text("1 job selected")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("1 job selected")).to_have_count(0)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_).to_contain_text("next and previous job")
    page.keyboard.press("Escape")
    expect(help_).to_have_count(0)
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    search.press("End")
    search.type("1")
    expect(row(page, "key-2")).to_have_count(0)
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/team/key-1$"))


def test_shortcuts_can_be_turned_off(shared):
    shared.submit(name="quiet", nodes=1)
    page = shared.open("/jobs?q=quiet")
    expect(row(page, "quiet")).to_be_visible()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_text("Shortcuts are on").click()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select quiet")).not_to_be_checked()


def test_several_are_suspended_and_deleted_at_one_word(shared):
    for number in range(3):
        shared.submit(name=f"bulk-{number}", nodes=1, code={"inline": WAITS})
    page = shared.open("/jobs?q=bulk-")
    for number in range(3):
        expect(row(page, f"bulk-{number}")).to_contain_text("Running")
    page.get_by_role("checkbox", name="Select bulk-0").check()
    page.get_by_role("checkbox", name="Select bulk-2").click(modifiers=["Shift"])
    bar = page.get_by_role("region", name="Selected jobs")
    expect(bar).to_contain_text("3 jobs selected")
    bar.get_by_role("button", name="Suspend").click()
    asked = page.get_by_role("alertdialog", name="Suspend 3 jobs?")
    expect(asked).to_contain_text("team/bulk-1")
    asked.get_by_role("button", name="Suspend").click()
    for number in range(3):
        expect(row(page, f"bulk-{number}")).to_contain_text("Suspended")
    expect(bar).to_have_count(0)
    page.get_by_role("checkbox", name="Select bulk-0").check()
    page.get_by_role("checkbox", name="Select bulk-1").check()
    bar.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("alertdialog", name="Delete 2 jobs?")
    expect(asked).to_contain_text("cannot be brought back")
    expect(asked).not_to_contain_text("bulk-2")
    shared.expected = ("status of 404",)  # a row may ask for the loss of a job that is gone by then
    asked.get_by_role("button", name="Delete").click()
    expect(row(page, "bulk-0")).to_have_count(0)
    expect(row(page, "bulk-1")).to_have_count(0)
    expect(row(page, "bulk-2")).to_be_visible()
    left = shared.api("GET", "/namespaces/team/jobs?q=bulk-")["items"]
    assert "bulk-2" in [each["name"] for each in left]


def test_what_a_training_says_stays_text(shared):
    """The reason of a failure has its last lines: as they are, and nothing more than text."""
    says = [each for each in BROWSER if "\n" not in each and len(each) < 60][:12]
    for number, text in enumerate(says):
        code = f"raise SystemExit({json.dumps(text)})"
        shared.submit(name=f"hostile-{number}", nodes=1, code={"inline": code})
    page = shared.open("/jobs?q=hostile-")
    for number, text in enumerate(says):
        expect(row(page, f"hostile-{number}")).to_contain_text("Failed")
        expect(row(page, f"hostile-{number}")).to_contain_text(text)


def test_nobody_has_a_job_yet_and_one_click_starts_one_that_learns(site):
    page = site.open()
    page.get_by_role("button", name="Start a sample job").click()
    expect(page).to_have_url(re.compile(r"/jobs/[^/]+/[^/?]+"))
    (job,) = site.api("GET", "/namespaces/-/jobs")["items"]
    page.goto("/jobs")
    expect(row(page, job["name"])).to_contain_text("Complete", timeout=120_000)
    expect(row(page, job["name"]).get_by_title("Newest loss")).to_contain_text("0")
