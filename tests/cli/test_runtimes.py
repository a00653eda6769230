"""`astrago runtimes`: the list, one page, and the files as they are shipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from astrago_trainer import catalogue

from .conftest import Astrago

ROOT = Path(catalogue.__file__).parent / "runtimes"


@pytest.mark.req("M64")
def test_the_list_names_framework_nodes_image_and_purpose(astrago: Astrago) -> None:
    result = astrago("runtimes")
    assert (result.code, result.err) == (0, "")
    for entry in catalogue.runtimes():
        assert entry.name in result.out
        assert entry.image[:20] in result.out
        assert entry.summary[:30] in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert all(
        entry.image in astrago("runtimes", "-o", "wide").out for entry in catalogue.runtimes()
    )


def test_the_list_is_data_too(astrago: Astrago) -> None:
    listed = json.loads(astrago("runtimes", "-o", "json").out)
    assert [each["name"] for each in listed] == list(catalogue.names())
    assert set(listed[0]) == {"name", "framework", "nodes", "image", "summary"}
    assert yaml.safe_load(astrago("runtimes", "-o", "yaml").out) == listed


@pytest.mark.req("M75", "M78")
def test_a_page_says_what_a_job_gets_without_asking(astrago: Astrago) -> None:
    page = astrago("runtimes", "pytorch-runtime").out
    for part in (
        "pytorch-runtime · pytorch",
        "torch: Trainer sets PET_*",
        "at most 3 times",
        "restartPolicy Never",
        "86400 s",
        "git-clone  alpine/git:v2.36.2",
        "GIT_SYNC_BRANCH",
        "cpu 100m, memory 128Mi",
        "/git from git-clone-volume",
        "PYTHONUNBUFFERED",
        "git-clone-volume (emptyDir)",
    ):
        assert part in page
    assert "TTL         none" in astrago("runtimes", "pytorch-simple").out


@pytest.mark.parametrize("name", catalogue.names())
def test_pages_fit_80_columns_and_files_come_as_shipped(name: str, astrago: Astrago) -> None:
    page = astrago("runtimes", name)
    assert page.code == 0
    assert max(map(len, page.out.splitlines())) <= 80
    folder = ROOT / catalogue.get_runtime(name).folder
    assert astrago("runtimes", name, "-o", "yaml").out == (folder / "runtime.yaml").read_text()
    assert astrago("runtimes", name, "--sample").out == (folder / "trainjob.yaml").read_text()
    manifest = json.loads(astrago("runtimes", name, "-o", "json").out)
    assert manifest == catalogue.load_runtime(name)
    sample = json.loads(astrago("runtimes", name, "--sample", "-o", "json").out)
    assert sample == catalogue.sample_trainjob(name)


@pytest.mark.req("M80", "M81")
def test_the_script_of_a_sample_can_be_printed(astrago: Astrago) -> None:
    script = astrago("runtimes", "pytorch-runtime", "--script")
    assert script.out == (ROOT / "pytorch" / "train.py").read_text()


def test_an_unknown_name_is_an_error_with_the_known_ones(astrago: Astrago) -> None:
    for options in ([], ["-o", "yaml"], ["--sample"], ["--script"]):
        result = astrago("runtimes", "pytorch-simpel", *options)
        assert result.code == 1
        assert "Did you mean pytorch-simple?" in result.err
        assert not result.out


def test_the_manifest_can_be_piped_into_a_preview(astrago_program: Astrago, tmp_path: Path) -> None:
    manifest = astrago_program("runtimes", "pytorch-runtime", "-o", "yaml").out
    sample = astrago_program("runtimes", "pytorch-runtime", "--sample").out
    both = f"{manifest}---\n{sample}".encode()
    assert astrago_program("preview", "-f", "-", stdin=both).code == 0


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
@pytest.mark.parametrize("name", catalogue.names())
def test_a_sample_is_accepted_by_the_release_it_was_asked_for(
    name: str, version: str, astrago: Astrago, tmp_path: Path
) -> None:
    sample = astrago("runtimes", name, "--sample", "--trainer-version", version)
    (tmp_path / "trainjob.yaml").write_text(sample.out)
    words = ("--trainjob", tmp_path / "trainjob.yaml", "--trainer-version", version)
    shown = astrago("preview", "--runtime", name, *words)
    assert shown.code == 0, shown.out + shown.err
