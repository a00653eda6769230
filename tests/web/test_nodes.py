"""Nodes: what they are, how full they are, and who is on them."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.site import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)


def test_a_job_is_seen_on_its_node_while_it_runs(site, tmp_path):
    go = tmp_path / "go"
    waits = (
        f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
    )
    page = site.open("/nodes")
    table = page.get_by_role("table", name="Nodes")
    for column in ("Name", "Instance type", "Architecture", "OS image", "GPU", "Capacity type"):
        expect(table.get_by_role("columnheader", name=column, exact=True)).to_be_visible()
    (node,) = site.api("GET", "/nodes")["items"]
    mine = table.get_by_role("row").filter(has_text=node["name"])
    expect(mine).to_contain_text("Ready")
    expect(mine).to_contain_text(node["architecture"])
    expect(mine.get_by_role("progressbar", name="CPU in use")).to_have_attribute(
        "aria-valuenow", "0"
    )
    site.submit(name="sits-here", nodes=2, code={"inline": waits})
    link = mine.get_by_role("link", name="sits-here")
    expect(link).to_be_visible()
    expect(mine).to_contain_text("2 pods")
    expect(mine).to_contain_text(re.compile(r"0\.2 of [\d.]+, [\d.]+ free"))
    go.touch()
    expect(link).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("listitem").filter(has_text=node["name"])).to_be_visible()
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
