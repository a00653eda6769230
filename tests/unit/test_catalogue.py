"""The shipped runtimes, as the package itself reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from astrago_trainer import catalogue
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.manifests import parse_documents

SEEDED = (
    "horovod-runtime",
    "pytorch-runtime",
    "pytorch-simple",
    "tensorflow-distributed",
    "tensorflow-runtime",
)


@pytest.fixture(autouse=True)
def fresh_catalogue() -> None:
    """Each test reads the files anew: what one has kept must not serve another."""
    for kept in (catalogue._folders, catalogue._entry, catalogue._text, catalogue._system_scripts):
        kept.cache_clear()


@pytest.mark.req("M64", "M75", "M76")
def test_it_lists_the_runtimes_of_both_generations() -> None:
    entries = {entry.name: entry for entry in catalogue.runtimes()}
    assert set(SEEDED) <= set(entries)
    assert entries["pytorch-runtime"].framework == "pytorch"
    assert entries["tensorflow-runtime"].framework == "tensorflow"
    assert entries["pytorch-runtime"].folder == "pytorch"
    assert all(entry.summary.endswith(".") for entry in entries.values())
    assert all(entry.image and entry.nodes >= 1 for entry in entries.values())


def test_names_come_sorted_and_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("listing names must not parse manifests")

    monkeypatch.setattr(catalogue, "parse_documents", refuse)
    assert list(catalogue.names()) == sorted(catalogue.names())


def test_a_manifest_is_read_once_for_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(text: bytes, source: str) -> list[dict[str, object]]:
        read.append(source)
        return parse_documents(text, source)

    monkeypatch.setattr(catalogue, "parse_documents", count)
    catalogue.runtimes()
    catalogue.runtimes()
    assert sorted(read) == sorted(f"{name}/runtime.yaml" for name in catalogue.names())


@pytest.mark.parametrize("name", SEEDED)
def test_the_name_that_is_searched_for_is_the_one_in_the_manifest(name: str) -> None:
    assert catalogue.load_runtime(name)["metadata"]["name"] == name


@pytest.mark.req("M64", "M79")
@pytest.mark.parametrize("name", SEEDED)
def test_each_has_a_sample_that_refers_to_it(name: str) -> None:
    sample = catalogue.sample_trainjob(name)
    assert sample["kind"] == "TrainJob"
    assert sample["spec"]["runtimeRef"]["name"] == name
    assert catalogue.sample_text(name).startswith("#")


@pytest.mark.req("M80")
def test_scripts_are_python() -> None:
    for entry in catalogue.runtimes():
        if entry.has_script:
            compile(catalogue.script(entry.name), "train.py", "exec")
    assert catalogue.get_runtime("pytorch-runtime").has_script


def test_a_caller_may_change_what_it_was_given() -> None:
    catalogue.load_runtime("pytorch-simple")["spec"].clear()
    assert catalogue.load_runtime("pytorch-simple")["spec"]


@pytest.mark.parametrize(
    "name", ["pytorch-simpel", "PYTORCH-SIMPLE", "nothing-like-it", "", "../x"]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        catalogue.load_runtime(name)
    (problem,) = caught.value.problems
    assert problem.code == "unknown-runtime"
    assert all(known in problem.remedy for known in SEEDED)
    assert ("Did you mean pytorch-simple?" in problem.remedy) == (name == "pytorch-simpel")


def test_a_missing_file_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "runtime.yaml").write_text(
        "kind: ClusterTrainingRuntime\nmetadata:\n  name: one\nspec: {}\n"
    )
    (tmp_path / "not-a-runtime").mkdir()
    monkeypatch.setattr(catalogue, "_root", lambda: tmp_path)
    assert catalogue.names() == ("one",)
    with pytest.raises(InvalidRequest, match=r"comes without train\.py"):
        catalogue.script("one")


@pytest.mark.req("M10", "M41")
def test_the_default_platform_has_the_scripts_for_all_runtimes_that_bring_none() -> None:
    platform = catalogue.default_platform("2.2")
    texts = catalogue.system_scripts()
    assert platform.trainer_version == "2.2"
    for runtime in ("pytorch-simple", "torch-distributed"):
        first = platform.scripts_for(runtime, "pytorch")
        assert first is not None
        assert first.data[first.sourced] == texts["setup_pytorch_env.sh"]
        assert first.data[first.launcher] == texts["launch.py"]
        assert first.data["forward.py"] == texts["forward.py"]
    second = platform.scripts_for("tensorflow-distributed", "tensorflow")
    assert second is not None
    assert second.data[second.sourced] == texts["generate_tf_config.sh"]
    assert second.data["forward.py"] == texts["forward.py"]
    assert second.launcher == ""
    assert platform.scripts_for("horovod-runtime", "horovod") is None
    assert platform.scripts_for("pytorch-runtime", "pytorch") is None
    assert platform.scripts_for("tensorflow-runtime", "tensorflow") is None
    assert platform.preludes == {
        "pytorch-runtime": "source /shared/setup_pytorch_env.sh",
        "tensorflow-runtime": 'source /shared-env/tf_config.env\necho "TF_CONFIG: $TF_CONFIG"',
    }
    for framework in platform.default_runtimes:
        assert platform.default_runtimes[framework] in catalogue.names()
