"""docs/ui-mockups is what the form of a new job is now."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from playwright.sync_api import expect
from scripts.mockups import FOLDER, PANELS, TITLE, draw_all, index

from tests.server.serving import a_process

LABELS = (
    "분산 학습 타입", "분산학습 노드 개수", "자원 프리셋", "이미지 주소", "볼륨 마운트", "커맨드", "환경변수",
    "설정 저장", "초기화", "노드 2개 × GPU 1개, CPU 4, 32Gi",
)  # fmt: skip
IN_HOROVOD = (*(each for each in LABELS if "노드 개수" not in each), "런처 CPU 한도", "워커 개수")
SVG = "{http://www.w3.org/2000/svg}"


def _texts(svg: str) -> Iterator[str]:
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        yield text.text or ""


def _said(svg: str) -> str:
    """All texts as one: where a line breaks depends on the fonts of a machine."""
    return re.sub(r"\s+", "", "".join(_texts(svg)))


@pytest.fixture(scope="module")
def drawn(browser, tmp_path_factory) -> dict[str, str]:
    with a_process(tmp_path_factory.mktemp("mockups") / "data") as server:
        return draw_all(browser, server.address)


@pytest.mark.req("M64", "M83", "M140", "M141")
@pytest.mark.parametrize(
    ("name", "labels"), [("training-operator", LABELS), ("horovod", IN_HOROVOD)]
)
def test_a_drawing_has_the_labels_of_the_mock_up(name, labels):
    texts = set(_texts((FOLDER / f"{name}.svg").read_text(encoding="utf-8")))
    assert set(labels) <= texts


@pytest.mark.parametrize("name", PANELS)
def test_a_drawing_holds_boxes_texts_and_icons_alone(name):
    root = ET.fromstring((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
    kinds = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert kinds == {"svg", "title", "rect", "text", "path"}


@pytest.mark.parametrize("name", PANELS)
def test_a_drawing_says_what_the_form_says_now(name, drawn):
    """After a change of the form's texts: make mockups."""
    kept = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert _said(kept) == _said(drawn[f"{name}.svg"])


@pytest.mark.req("M64", "M140")
def test_the_page_is_made_of_the_two_drawings():
    drawings = {f"{name}.svg": (FOLDER / f"{name}.svg").read_text("utf-8") for name in PANELS}
    assert (FOLDER / "index.html").read_text("utf-8") == index(drawings)


def test_the_page_needs_nothing_but_itself():
    found: list[tuple[str, list[tuple[str, str | None]]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, attrs))

    text = (FOLDER / "index.html").read_text("utf-8")
    Tags().feed(text)
    foreign = {"script", "link", "img", "iframe", "object", "image", "use"}
    assert not {tag for tag, _ in found} & foreign
    names = {name for _, attrs in found for name, _ in attrs}
    assert not names & {"src", "href", "xlink:href", "srcset", "onclick", "onload", "style"}
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.req("M83")
def test_the_type_chooses_the_panel_without_a_server(browser):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((FOLDER / "index.html").as_uri())
    expect(page).to_have_title(TITLE)
    first, other = (page.locator(f"div.{name}") for name in PANELS)
    expect(first).to_be_visible()
    expect(other).to_be_hidden()
    page.get_by_label("Horovod").check()
    expect(first).to_be_hidden()
    expect(other.get_by_text("런처 CPU 한도")).to_be_visible()
    context.close()
