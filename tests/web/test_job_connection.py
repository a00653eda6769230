"""A log goes on after the server was away: nothing is lost, nothing comes twice."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE
from tests.web.test_job import _all_lines

expect.set_options(timeout=PATIENCE * 1000)

# Prints as many lines as the file says.
COUNTS = """
import pathlib, time
wanted, printed = pathlib.Path({path!r}), 0
while True:
    text = wanted.read_text() if wanted.exists() else "20"
    while printed < int(text or printed):
        printed += 1
        print(f"line number {{printed}}", flush=True)
    if printed >= 60: break
    time.sleep(0.05)
"""


def test_a_log_goes_on_after_the_server_was_away(site, server, tmp_path):
    site.expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET")
    wanted = tmp_path / "wanted"
    site.submit(name="long", nodes=1, code={"inline": COUNTS.format(path=str(wanted))})
    page = site.open("/jobs/team/long")
    log = page.get_by_role("region", name="Log of long")
    expect(log.get_by_text("line number 20", exact=True)).to_be_visible()
    server.kill()
    expect(page.get_by_text("connection lost, trying again")).to_be_visible()
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    wanted.with_suffix(".new").write_text("40")
    wanted.with_suffix(".new").rename(wanted)
    with a_process(tmp_path / "data", port=site.address.rpartition(":")[2]):
        expect(log.get_by_text("line number 40", exact=True)).to_be_visible()
        expect(page.get_by_text("Connection lost.")).to_have_count(0)
        wanted.with_suffix(".new").write_text("60")
        wanted.with_suffix(".new").rename(wanted)
        expect(log.get_by_text("line number 60", exact=True)).to_be_visible()
        shown = [each for each in _all_lines(page, "long") if each.startswith("line number")]
        assert shown == [f"line number {number}" for number in range(1, 61)]
