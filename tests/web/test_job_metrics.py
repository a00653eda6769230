"""Numbers of several ranks on the page of a job: their mean, each, or one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE, Site

expect.set_options(timeout=PATIENCE * 1000)

# Rank 1 prints ten more than rank 0, and fails when it is told to; what comes then is the second attempt.
STORY = """
import os, pathlib, time
folder, rank = pathlib.Path({folder!r}), int(os.environ["PET_NODE_RANK"])
is_first = not (folder / "failed").exists()
for step in (1, 2, 3):
    print(f"step {{step}}/3 loss={{step + 10 * rank}}", flush=True)
while is_first:
    if rank == 1 and (folder / "fail").exists():
        (folder / "failed").touch()
        os._exit(3)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with a_process(tmp_path_factory.mktemp("metrics") / "data") as process:
        yield process


def _choose(page: Page, now: str, other: str) -> None:
    page.get_by_role("button", name=f"{now} Ranks").click()
    page.get_by_role("option", name=other, exact=True).click()


def _plot(page: Page, words: str) -> Locator:
    return page.get_by_role("img", name=re.compile(words))


def test_ranks_are_seen_as_their_mean_each_or_one(site: Site, tmp_path) -> None:
    code = {"inline": STORY.format(folder=str(tmp_path))}
    site.submit(name="ranks", nodes=2, max_restarts=1, code=code)
    page = site.open("/jobs/team/ranks?tab=metrics")
    expect(_plot(page, "Plot of loss: 3 points, first 6, last 8")).to_be_visible()
    (tmp_path / "fail").touch()
    plot = _plot(page, "Plot of loss: 6 points, first 6, last 8.*Attempt 2 begins at step 1")
    expect(plot).to_be_visible()

    _choose(page, "Mean of 2 ranks", "Each rank")
    expect(page).to_have_url(re.compile("ranks=each"))
    plot = _plot(page, "a line for each rank.*Rank 0: 6 points, last 3.*Rank 1: 6 points, last 13")
    expect(plot).to_have_attribute("aria-label", re.compile("Attempt 2 begins at step 1"))
    legend = page.get_by_role("list", name="Ranks")
    expect(legend.get_by_role("listitem")).to_have_text(["Rank 03", "Rank 113"])
    dashes = legend.locator("line").evaluate_all(
        "lines => lines.map(each => each.getAttribute('stroke-dasharray'))"
    )
    assert len(set(dashes)) == 2, "a line is known without its colour"
    plot.locator(".u-over").hover(position={"x": 2, "y": 50})
    expect(page.get_by_text("At step 1", exact=True)).to_be_visible()
    expect(legend.get_by_role("listitem")).to_have_text(["Rank 01", "Rank 111"])
    page.get_by_text("As a table").click()
    table = page.get_by_role("table", name="loss")
    expect(table.get_by_role("columnheader").first).to_have_text("Rank")
    expect(table.get_by_role("row")).to_have_count(13)

    page.get_by_role("button", name="Log scale").click()
    expect(page).to_have_url(re.compile("scale=log"))
    plot.locator(".u-over").hover(position={"x": 100, "y": 50})
    page.mouse.down()
    plot.locator(".u-over").hover(position={"x": 300, "y": 50})
    page.mouse.up()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)

    _choose(page, "Each rank", "Rank 1")
    expect(_plot(page, "Plot of loss: 6 points, first 11, last 13")).to_be_visible()
    page.reload()
    expect(_plot(page, "Plot of loss: 6 points, first 11, last 13")).to_be_visible()
    expect(page.get_by_role("list", name="Ranks")).to_have_count(0)

    page.goto("/jobs/team/ranks?tab=metrics&ranks=9")
    expect(page.get_by_role("heading", name="No numbers of this rank")).to_be_visible()
    _choose(page, "Rank 9", "Mean of 2 ranks")
    expect(_plot(page, "Plot of loss: 6 points, first 6")).to_be_visible()


def test_one_rank_has_no_choice_of_ranks(site: Site) -> None:
    site.submit(name="alone", nodes=1, code={"inline": "print('step 1 loss=0.5')"})
    page = site.open("/jobs/team/alone?tab=metrics")
    expect(_plot(page, "Plot of loss: 1 points")).to_be_visible()
    expect(page.get_by_role("button", name="Horizontal axis")).to_be_visible()
    expect(page.get_by_role("button", name="Ranks")).to_have_count(0)


def test_eight_ranks_are_accessible_fit_a_phone_and_speak_korean(site: Site) -> None:
    code = (
        "import os\nrank = int(os.environ['PET_NODE_RANK'])\n"
        "for step in range(1, 40): print(f'step {step}/39 loss={(rank + 3) / step} accuracy={step / 40}')\n"
    )
    site.submit(name="eight", nodes=8, code={"inline": code})
    address = "/jobs/team/eight?tab=metrics&ranks=each"
    page = site.open(address)
    expect(page.get_by_role("list", name="Ranks").first.get_by_role("listitem")).to_have_count(8)
    page.get_by_role("button", name="Language: English").click()
    page.get_by_role("menuitemradio", name="한국어").click()
    for width, scheme in ((1280, "light"), (390, "dark"), (390, "light"), (1280, "dark")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(address)
        expect(page.get_by_role("button", name="랭크별")).to_be_visible()
        expect(page.get_by_text("불러오는 중…")).to_have_count(0)
        assert site.axe() == [], (width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
