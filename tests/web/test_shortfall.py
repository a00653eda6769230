"""A job larger than the machine: the form says so before, the job's page after, in both languages."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.server.serving import a_process
from tests.web.site import PATIENCE, a_window

expect.set_options(timeout=PATIENCE * 1000)

LARGE = {"cpu": "4", "memory": "128Mi", "gpus": 1}
SMALL = {"ASTRAGO_LOCAL_CPUS": "1", "ASTRAGO_LOCAL_GPUS": "0"}


@pytest.mark.parametrize(
    ("language", "asked", "follows"),
    [
        ("en", "Asked for 4 CPU, 128 MiB, 1 GPU per node on 2 nodes", "The job runs on CPU."),
        ("ko", "요청: 노드 2대, 노드당 4 CPU, 128 MiB, GPU 1개", "CPU로 실행합니다."),
    ],
)
def test_what_it_will_not_get_is_shown(browser, tmp_path, language, asked, follows):
    with (
        a_process(tmp_path / "data", **SMALL) as process,
        a_window(browser, process.address) as site,
    ):
        site.page.add_init_script(f"localStorage.setItem('astrago.language', '{language}')")
        site.submit(name="large", resources=LARGE)
        page = site.open("/jobs/team/large")
        told = page.get_by_text(asked)
        expect(told).to_be_visible()
        expect(told).to_contain_text(follows)
        site.open("/new?from=large&namespace=team")
        expect(page.locator("#problems").get_by_text(asked)).to_contain_text(follows)
