"""The guide for backend teams, in two languages: its commands are typed into a shell beside a real local server."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.guide.following import follow
from tests.cluster.guide.pages import ROOT, Page, read_page
from tests.server.serving import a_process

from astrago_trainer.core.seeds import FlatBody, NestedBody

KOREAN = ROOT / "docs" / "backend-guide.md"
ENGLISH = ROOT / "docs" / "backend-guide.en.md"
BOTH = pytest.mark.parametrize("path", [KOREAN, ENGLISH], ids=["ko", "en"])
SHOWN_ADDRESS = "http://127.0.0.1:8000"


def _at(page: Page, address: str) -> Page:
    """The page with this server's address: another server may have the usual port."""
    steps = tuple(
        replace(step, commands=step.commands.replace(SHOWN_ADDRESS, address)) for step in page.steps
    )
    return replace(page, steps=steps)


def _blocks(path: Path) -> list[str]:
    return re.findall(
        r"^(?:<!--[^\n]*-->\n)?```\w+\n.*?^```$", path.read_text("utf-8"), re.M | re.S
    )


@pytest.mark.req("M21", "M23", "M25", "M27", "M28", "M37", "M52", "M57", "M140")
def test_every_command_for_one_machine_does_what_the_page_says(tmp_path):
    python = Path(sys.executable)
    # Every image stands for the environment of the tests: the page's code needs no framework.
    environments = f"*={python.parents[1]}"
    with a_process(tmp_path / "data", ASTRAGO_ENVIRONMENTS=environments) as server:
        page = _at(read_page(KOREAN), server.address)
        assert len([step for step in page.steps if not step.not_run]) >= 7
        # The commands write files where they are typed: a folder of their own, with the sample they name.
        (tmp_path / "here").mkdir()
        (tmp_path / "here" / "samples").symlink_to(ROOT / "samples")
        search = f"{python.parent}:{os.environ['PATH']}"
        follow(page, {"PATH": search}, tmp_path / "run", root=tmp_path / "here")
    assert [each.name for each in (tmp_path / "here").iterdir()] == ["samples"]


@BOTH
def test_what_is_not_run_needs_a_cluster_or_a_terminal(path):
    for step in read_page(path).steps:
        is_here = SHOWN_ADDRESS in step.commands and "kubectl" not in step.commands
        assert not (step.not_run and is_here), f"{path.name}:{step.line}"


@pytest.mark.req("M137")
def test_both_languages_have_the_same_blocks():
    assert _blocks(KOREAN) == _blocks(ENGLISH)


@pytest.mark.req("M137")
def test_both_languages_have_the_same_sections_and_tables():
    def shape(path: Path) -> list[tuple[str, int]]:
        """Headings by level, rows of tables by their number of cells; inside of blocks nothing counts."""
        text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S)
        lines = [line for line in text.splitlines() if line.startswith(("#", "|"))]
        return [
            ("#", len(line) - len(line.lstrip("#"))) if line[0] == "#" else ("|", line.count("|"))
            for line in lines
        ]

    assert shape(KOREAN) == shape(ENGLISH)


@BOTH
def test_links_within_the_page_lead_to_a_heading(path):
    text = path.read_text("utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    anchors = set(re.findall(r"\]\(#([^)\s]+)\)", text))
    assert anchors
    assert anchors <= headings


@BOTH
def test_every_field_of_both_bodies_is_mapped(path):
    text = path.read_text("utf-8")
    nested = [
        f"config.{each}"
        for each in ("num_nodes", "gpu_per_node", "cpu_per_node", "memory_per_node")
    ]
    fields = [*FlatBody.model_fields, *NestedBody.model_fields.keys() - {"config"}, *nested]
    missing = [each for each in fields if not re.search(rf"`{re.escape(each)}(?:\[\])?`", text)]
    assert missing == []
