"""Ten thousand jobs: the first paint, and scrolling without a frame that stutters.

Times on a machine that others use too say little about the page. So the first paint is the best of a few, and a frame
is judged by the processor time of its task, which nobody else can lengthen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE, a_window

expect.set_options(timeout=PATIENCE * 1000)

JOBS = 10_000
LOADS = 3
FIRST_PAINT_MS = 1500
LONGEST_FRAME_MS = 100

# The moment at which the first row is on the screen: two frames after it is in the document.
_WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("[role=row] a")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.firstRow = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
_FRAME = "const frame = () => new Promise((next) => requestAnimationFrame(next)); const end = Date.now() + 60_000;"
_UNTIL_PAINTED = f"""async () => {{
  {_FRAME}
  while (!window.firstRow && Date.now() < end) await frame();
  return window.firstRow ?? Infinity;
}}"""
_TO_THE_END = f"""async () => {{
  {_FRAME}
  while (!document.querySelector("[aria-rowindex='{JOBS + 1}']") && Date.now() < end) {{
    scrollTo(0, document.documentElement.scrollHeight);
    await frame();
  }}
}}"""
_SCROLL = """async (until) => {
  const frame = () => new Promise((next) => requestAnimationFrame(next));
  const begin = scrollY;
  for (let steps = 0; scrollY < begin + until && steps < 2000; steps++) { scrollBy(0, 400); await frame(); }
  return scrollY - begin;
}"""


def test_ten_thousand_jobs_are_there_at_once_and_scroll_smoothly(browser, tmp_path):
    data = tmp_path / "data"
    # In a process of its own: this one has the browser's event loop.
    subprocess.run([sys.executable, "-m", "tests.web.fill", str(data), str(JOBS)], check=True)
    with a_process(data) as process, a_window(browser, process.address) as site:
        site.page.add_init_script(_WATCH)
        paints = [_first_paint(site.open()) for _ in range(LOADS)]
        assert min(paints) < FIRST_PAINT_MS, paints
        page = site.page
        expect(page.get_by_role("link", name="job-9999", exact=True)).to_be_visible()
        assert page.get_by_role("row").count() < 60  # what is not seen is not there
        scrolled, frames = _frames_while_scrolling(browser, page, tmp_path / "trace.json")
        assert scrolled > 30_000
        assert max(frames) < LONGEST_FRAME_MS, sorted(frames)[-5:]
        # It goes on to the very first job, page after page.
        page.evaluate(_TO_THE_END)
        expect(page.get_by_role("link", name="job-0", exact=True)).to_be_visible()
        assert page.get_by_role("row").count() < 60


def _first_paint(page: Page) -> float:
    found: float = page.evaluate(_UNTIL_PAINTED)
    return found


def _frames_while_scrolling(browser: Browser, page: Page, path: Path) -> tuple[float, list[float]]:
    """Pixels, and the milliseconds of every task of the page's main thread meanwhile."""
    browser.start_tracing(page=page, path=path, categories=["toplevel", "devtools.timeline"])
    scrolled: float = page.evaluate(_SCROLL, 40_000)
    browser.stop_tracing()
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    threads = {
        (each["pid"], each["tid"])
        for each in events
        if each.get("name") == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        each["tdur"] / 1000
        for each in events
        if (each["pid"], each["tid"]) in threads
        and "tdur" in each
        and each["name"].endswith("RunTask")
    ]
    assert len(tasks) > 100, "the trace has no tasks with their processor time"
    return scrolled, tasks
