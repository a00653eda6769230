"""Which environment stands in for an image."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.engines.local.plan import Code
from astrago_trainer.environments.choosing import Chosen, images_here, write_added
from astrago_trainer.environments.folders import Environment, environment_of
from astrago_trainer.environments.known import KNOWN, known_for

HERE = str(Path(sys.executable).parent)
TORCH = Code({"train.py": "import torch"})
PLAIN = Code({"train.py": "print(1)"})
IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"


def an_environment(folder: Path, module: str) -> str:
    place = folder / "lib" / "python3.11" / "site-packages" / module
    place.mkdir(parents=True)
    (place / "__init__.py").touch()
    return str(folder)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (IMAGE, "torch"),
        ("public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312", "torch"),
        ("tensorflow/tensorflow:2.15.0-gpu", "tensorflow"),
        ("horovod/horovod:0.28.1", "horovod"),
        ("registry.example/Torch1.12.1-Horovod-cuda11.3", "horovod"),
        ("busybox:1.36", None),
    ],
)
def test_the_table_knows_the_images_of_the_frameworks(image, name):
    assert (found.name if (found := known_for(image)) else None) == name


def test_titles_name_the_pinned_versions():
    assert KNOWN["torch"].title == "torch 2.15"
    assert KNOWN["tensorflow"].title == "tensorflow-cpu 2.15"
    assert environment_of("python", ("a", "b")).title.endswith("with 2 requirements")


def test_code_without_packages_runs_at_once_with_our_own_python(wheels):
    assert Chosen({}, ()).programs_for(IMAGE, PLAIN).folder == HERE


def test_a_missing_environment_is_installed_by_the_job(wheels):
    found = Chosen({}, ()).programs_for(IMAGE, TORCH)
    assert found.folder == str(environment_of("torch").programs)
    assert found.install is not None
    assert found.install["command"][-1] == "torch"
    assert found.install["env"]["ASTRAGO_CACHE"]


def test_an_installed_one_is_used_as_it_is(wheels):
    environment = environment_of("torch")
    environment.folder.mkdir(parents=True)
    environment.mark_ready(5)
    assert Chosen({}, ()).programs_for(IMAGE, TORCH).install is None


def test_half_an_environment_is_not_used(wheels):
    environment = environment_of("torch")
    (environment.folder / "bin").mkdir(parents=True)
    assert Chosen({}, ()).programs_for(IMAGE, TORCH).install is not None


def test_the_active_environment_is_used_when_it_has_the_framework(wheels, tmp_path, monkeypatch):
    active = an_environment(tmp_path / "mine", "torch")
    monkeypatch.setenv("VIRTUAL_ENV", active)
    assert images_here().programs_for(IMAGE, TORCH).folder == f"{active}/bin"
    tensorflow = images_here().programs_for("tensorflow/tensorflow:2.15.0", Code(has_other=True))
    assert tensorflow.install is not None


def test_an_unknown_image_gets_the_framework_that_the_code_imports(wheels):
    code = Code({"train.py": "import tensorflow as tf"})
    assert "tensorflow" in Chosen({}, ()).programs_for("registry.example/mine:1", code).folder


def test_named_folders_come_first(wheels, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    (mine / "bin").mkdir(parents=True)
    monkeypatch.setenv("ASTRAGO_ENVIRONMENTS", f"pytorch/*={mine}")
    write_added({"registry.example/*": "/added/bin"})
    images = images_here()
    assert images.programs_for(IMAGE, PLAIN).folder == str(mine / "bin")
    assert images.programs_for("registry.example/a:1", TORCH).folder == "/added/bin"


def test_all_that_is_wrong_in_the_variable_is_named_at_once(wheels, tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_ENVIRONMENTS", f"pytorch/*;*={tmp_path / 'nowhere'}")
    with pytest.raises(InvalidRequest) as refused:
        images_here()
    assert "PATTERN=FOLDER" in str(refused.value)
    assert "nowhere" in str(refused.value)


def test_a_damaged_list_is_named(wheels, tmp_path):
    path = tmp_path / "config" / "astrago" / "environments.json"
    path.parent.mkdir(parents=True)
    path.write_text("[1")
    with pytest.raises(InvalidRequest, match="no list of environments"):
        images_here()


def test_requirements_give_an_environment_of_their_own(wheels):
    code = Code({"train.py": "import torch"}, requirements=("einops", "numpy>=2"))
    same = Code({"train.py": "import torch"}, requirements=("numpy>=2", "einops"))
    images = Chosen({}, ())
    assert images.programs_for(IMAGE, code).folder == images.programs_for(IMAGE, same).folder
    assert images.programs_for(IMAGE, code).folder != images.programs_for(IMAGE, TORCH).folder
    alone = Code({"train.py": "import einops"}, requirements=("einops",))
    assert "/python-" in images.programs_for(IMAGE, alone).folder


def test_a_changed_table_or_python_is_another_environment():
    assert Environment(KNOWN["torch"], "3.11").key != Environment(KNOWN["torch"], "3.12").key


def test_what_an_install_is_given_of_the_environment(wheels, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    found = Chosen({}, ()).programs_for(IMAGE, TORCH)
    assert "secret" not in json.dumps(found.install)
