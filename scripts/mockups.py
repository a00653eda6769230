"""`make mockups`: docs/ui-mockups, drawn from the form of a new job as Chromium shows it.

The boxes and texts of the Korean form become rectangles and texts of an SVG, one for each panel, and `index.html` has
both behind a switch. Nothing else is in them: no picture, no script, no font, no address of another host.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from tests.server.serving import a_process
from tests.web.chromium import FLAGS, chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "ui-mockups"
TITLE = "분산 학습 설정"
WIDTH = 840
"""Of the window: below 64rem the form has the page to itself."""
PANELS = {
    "training-operator": ("PyTorch", "PyTorch / TensorFlow (Training Operator)"),
    "horovod": ("Horovod", "Horovod (MPI Operator)"),
}
"""Name of the file -> the type that is chosen in the form, and what the switch calls it."""
FONTS = "system-ui, 'Noto Sans KR', 'Noto Sans CJK KR', sans-serif"
IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"

# Every box with a colour or a border, every line of text, every icon, in the order in which they are painted.
_READ = """
() => {
  const roots = [...document.querySelectorAll("main form > div")];
  const first = roots[0].getBoundingClientRect();
  const [left, top] = [first.left - 20, first.top - 20];
  const seen = [];
  const clear = (colour) => /^rgba\\(.*, 0\\)$/.test(colour) || colour === "transparent";
  const line = (text, box, style, width) => seen.push({
    kind: "text", text, x: box.left - left, y: box.top - top, width, height: box.height,
    size: parseFloat(style.fontSize), weight: style.fontWeight, colour: style.color,
    mono: style.fontFamily.includes("mono"),
  });
  const lines = (node, style) => {
    const range = document.createRange();
    let now = null;
    const end = () => { if (now && now.text.trim()) line(now.text, now.box, style, now.right - now.box.left); };
    for (let at = 0; at < node.length; at += 1) {
      range.setStart(node, at); range.setEnd(node, at + 1);
      const box = range.getClientRects()[0];
      if (!box) continue;
      if (!now || Math.abs(box.top - now.box.top) > 2) { end(); now = { text: "", box, right: box.right }; }
      now.text += node.data[at]; now.right = Math.max(now.right, box.right);
    }
    end();
  };
  const walk = (element) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (style.display === "contents") { inside(element, style); return; }
    if (style.visibility === "hidden" || style.display === "none" || box.width < 2 || box.height < 2) return;
    if (style.clipPath !== "none" || style.opacity === "0") return;
    const place = { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
    if (element.localName === "svg") {
      const view = element.getAttribute("viewBox");
      const look = { fill: style.fill, stroke: style.stroke, strokeWidth: style.strokeWidth };
      const paths = [...element.querySelectorAll("path")].map((each) => each.getAttribute("d"));
      seen.push({ kind: "icon", ...place, view, paths, ...look });
      return;
    }
    const border = parseFloat(style.borderTopWidth) && !clear(style.borderTopColor) ? style.borderTopColor : "";
    const fill = clear(style.backgroundColor) ? "" : style.backgroundColor;
    const radius = parseFloat(style.borderTopLeftRadius) || 0;
    if (border || fill) seen.push({ kind: "box", ...place, fill, border, radius });
    const bar = getComputedStyle(element, "::before");
    if (bar.position === "absolute" && !clear(bar.backgroundColor)) seen.push({
      kind: "box", x: place.x + parseFloat(bar.left), y: place.y + parseFloat(bar.top) + parseFloat(bar.marginTop),
      width: parseFloat(bar.width), height: parseFloat(bar.height), radius: parseFloat(bar.borderTopLeftRadius) || 0,
      fill: bar.backgroundColor, border: "", opacity: bar.opacity,
    });
    if (element.matches("input:not([type=range]):not([type=radio]):not([type=checkbox]), textarea")) {
      const text = element.value || element.placeholder;
      const inner = { left: box.left + parseFloat(style.paddingLeft) + 1, top: box.top + 1, height: box.height - 2 };
      const look = element.value ? style : getComputedStyle(element, "::placeholder");
      if (text) line(text, inner, look, null);
      return;
    }
    inside(element, style);
  };
  const inside = (element, style) => {
    const isClosed = element.localName === "details" && !element.open;
    for (const child of (element.shadowRoot ?? element).childNodes) {
      if (child.nodeType === Node.TEXT_NODE) lines(child, style);
      else if (child.nodeType === Node.ELEMENT_NODE && !(isClosed && child.localName !== "summary")) walk(child);
    }
  };
  roots.forEach(walk);
  return { marks: seen, height: Math.max(...roots.map((each) => each.getBoundingClientRect().bottom)) - top + 20 };
}
"""


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="astrago-mockups-") as folder,
        a_process(Path(folder) / "data") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        drawings = draw_all(browser, server.address)
        browser.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in drawings.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER.relative_to(ROOT) / name)
    return 0


def draw_all(browser: Browser, address: str) -> dict[str, str]:
    """The content of each file by its name."""
    drawings = {f"{name}.svg": _draw_panel(browser, address, name) for name in PANELS}
    return {**drawings, "index.html": index(drawings)}


def index(drawings: Mapping[str, str]) -> str:
    """Both panels behind a switch that needs neither a server nor a script."""
    names = list(PANELS)
    switch = "\n".join(
        f'  <label><input type="radio" name="type" id="{name}"{" checked" if name == names[0] else ""}> '
        f"{escape(PANELS[name][1])}</label>"
        for name in names
    )
    panels = "\n".join(f'<div class="{name}">\n{drawings[f"{name}.svg"]}</div>' for name in names)
    hidden = ",\n".join(f"body:not(:has(#{name}:checked)) .{name}" for name in names)
    return f"""<!doctype html>
<html lang="ko">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>
body {{ max-width: {WIDTH}px; margin: 0 auto; padding: 24px; font: 14px system-ui, sans-serif; }}
body {{ background: #f6f8fa; color: #17181c; }}
fieldset {{ display: flex; flex-wrap: wrap; gap: 8px 24px; border: 1px solid #d9dce3; border-radius: 8px; }}
svg {{ width: 100%; height: auto; }}
{hidden} {{ display: none; }}
</style>
</head>
<body>
<h1>{TITLE}</h1>
<fieldset>
  <legend>분산 학습 타입</legend>
{switch}
</fieldset>
{panels}
</body>
</html>
"""


def _draw_panel(browser: Browser, address: str, name: str) -> str:
    context = browser.new_context(
        base_url=address, locale="ko-KR", viewport={"width": WIDTH, "height": 1200}
    )
    try:
        page = context.new_page()
        # The defaults are those of a cluster (M141); the page takes them from the name of the engine.
        page.route("**/api/v1/whoami", _as_on_a_cluster)
        page.goto("/new")
        _fill_in(page, PANELS[name][0])
        page.evaluate("document.fonts.ready")
        found = page.evaluate(_READ)
    finally:
        context.close()
    return _svg(PANELS[name][1], found["marks"], found["height"])


def _as_on_a_cluster(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, json={**answer.json(), "engine": "kubernetes"})


def _fill_in(page: Page, framework: str) -> None:
    """What shows every field of the mission's table (M37)."""
    page.get_by_text(framework, exact=True).click()
    _field(page, "namespace").fill("user-123")
    page.get_by_text("이름으로 입력", exact=True).click()
    _field(page, "image").fill(IMAGE)
    page.get_by_text("셸 커맨드", exact=True).click()
    _field(page, "command").locator(".cm-content").click()
    page.keyboard.insert_text("python /workspace/scripts/train.py")
    page.get_by_role("button", name="변수 추가").click()
    _field(page, "env[0].name").fill("EPOCHS")
    _field(page, "env[0].value").fill("10")
    page.get_by_role("button", name="볼륨 추가").click()
    for path, value in (
        ("name", "dataset"),
        ("claim", "user123-dataset-pvc"),
        ("mount_path", "/data"),
    ):
        _field(page, f"volumes[0].{path}").fill(value)
    page.get_by_role("heading", name="커맨드", exact=True).click()  # no field has the keyboard
    # The plan has the last thing that was typed, so what the form says about its fields is up to date.
    plan = page.locator("main form aside")
    expect(plan.get_by_text("mountPath: /data").first).to_be_attached(timeout=60_000)
    expect(page.get_by_text("해결할 문제")).to_have_count(0)
    page.evaluate("document.querySelector('main form aside').style.display = 'none'")
    # In a window as tall as the form, the bar with the buttons is at its end.
    tall = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": tall})
    # The server has answered: nothing moves any more.
    page.wait_for_load_state("networkidle")


def _field(page: Page, path: str) -> Any:
    return page.locator(f'[id="field-{path}"]')


def _svg(title: str, marks: Iterable[Mapping[str, Any]], height: float) -> str:
    tall = round(height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" height="{tall}" '
        f'role="img" font-family={quoteattr(FONTS)}>',
        f"<title>{TITLE}: {escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{tall}" fill="#f6f8fa"/>',
    ]
    lines += [_MADE[each["kind"]](each) for each in marks]
    return "\n".join([*lines, "</svg>", ""])


def _box(mark: Mapping[str, Any]) -> str:
    border = f" stroke={quoteattr(mark['border'])}" if mark["border"] else ""
    shade = f' opacity="{mark["opacity"]}"' if "opacity" in mark else ""
    radius = min(mark["radius"], mark["width"] / 2, mark["height"] / 2)
    return (
        f'<rect x="{_at(mark["x"])}" y="{_at(mark["y"])}" width="{_at(mark["width"])}" '
        f'height="{_at(mark["height"])}" rx="{_at(radius)}" fill={quoteattr(mark["fill"] or "none")}{border}{shade}/>'
    )


def _text(mark: Mapping[str, Any]) -> str:
    family = ' font-family="ui-monospace, monospace"' if mark["mono"] else ""
    # The reader's fonts may be wider: a line keeps its length.
    length = (
        f' textLength="{_at(mark["width"])}" lengthAdjust="spacingAndGlyphs"'
        if mark["width"]
        else ""
    )
    return (
        f'<text x="{_at(mark["x"])}" y="{_at(mark["y"] + mark["height"] / 2 + mark["size"] * 0.36)}" '
        f'font-size="{_at(mark["size"])}" font-weight="{mark["weight"]}" fill={quoteattr(mark["colour"])}'
        f'{family}{length} xml:space="preserve">{escape(mark["text"])}</text>'
    )


def _icon(mark: Mapping[str, Any]) -> str:
    paths = "".join(f"<path d={quoteattr(path)}/>" for path in mark["paths"])
    return (
        f'<svg x="{_at(mark["x"])}" y="{_at(mark["y"])}" width="{_at(mark["width"])}" height="{_at(mark["height"])}" '
        f"viewBox={quoteattr(mark['view'] or '0 0 24 24')} fill={quoteattr(mark['fill'])} "
        f"stroke={quoteattr(mark['stroke'])} stroke-width={quoteattr(mark['strokeWidth'])} "
        f'stroke-linecap="round" stroke-linejoin="round">{paths}</svg>'
    )


_MADE = {"box": _box, "text": _text, "icon": _icon}


def _at(value: float) -> str:
    return f"{round(value, 1):g}"


if __name__ == "__main__":
    sys.exit(main())
