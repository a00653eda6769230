"""The administrator's file in the form: presets, images of the framework, limits."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE, a_window

expect.set_options(timeout=PATIENCE * 1000)

FILE = """
frameworks:
  pytorch:
    image: example.org/torch:stable
    images: ["example.org/torch:2.8", "example.org/torch:nightly"]
presets: [{name: custom, cpu: 2, memory: 3Gi}]
limits: {nodes: 4, gpus_per_node: 2}
defaults: {max_restarts: 5}
"""


@pytest.mark.req("X23", "M83")
def test_the_form_offers_what_the_administrator_decided(browser, tmp_path):
    file = tmp_path / "platform.yaml"
    file.write_text(FILE)
    with (
        a_process(tmp_path / "data", ASTRAGO_PLATFORM=str(file)) as server,
        a_window(browser, server.address) as site,
    ):
        page = site.open("/new")
        image = page.get_by_role("button", name="Container image")
        expect(image).to_contain_text("example.org/torch:stable (default)")
        image.click()
        page.get_by_role("option", name="example.org/torch:2.8").click()
        expect(image).to_contain_text("example.org/torch:2.8")
        expect(page.get_by_role("radio", name="Built-in")).to_be_checked()
        effective = page.get_by_role("listbox", name="Effective objects")
        line = effective.get_by_role("option", name="image: example.org/torch:2.8").first
        expect(line).to_be_attached()

        page.get_by_role("button", name="Resource preset").click()
        page.get_by_role("option", name=re.compile("^custom: .*2 CPU, 3Gi")).click()
        expect(page.locator('[id="field-resources.memory.limit"]')).to_have_value("3")
        expect(page.get_by_role("button", name="Resource preset")).to_contain_text("custom:")
        expect(page.get_by_text("Left empty: 5.")).to_be_visible()

        page.get_by_text("TensorFlow", exact=True).click()
        expect(image).to_have_count(0)  # nothing is offered for it, and the other's image has gone
        expect(page.get_by_text(re.compile("Image: tensorflow/"))).to_be_visible()
