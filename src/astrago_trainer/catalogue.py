"""The runtimes that come with the package: manifest, sample and script of each, and the scripts of
the platform.

A folder with a `runtime.yaml` is a runtime; the comment at its head says what it is for. Files are
read when asked for, once; nothing is written, and nothing is asked of a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.manifests import one_of_kind, parse_documents

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from astrago_trainer.core.platform import Platform, SystemScripts, TrainerVersion

_FRAMEWORK_WORDS = ("torch", "tensorflow", "horovod")
RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"

# Where a shipped manifest has its name; a test holds every one of them to it.
_NAME = re.compile(r"^metadata:\n  name: (\S+)$", re.MULTILINE)
_HEAD = re.compile(r"(?:#.*\n)+")
_ENOUGH = 50
_SENTENCE = re.compile(r"\S.*?\.(?=\s|$)")


@dataclass(frozen=True, slots=True)
class RuntimeEntry:
    """One runtime of the catalogue, as a list shows it."""

    name: str
    framework: str
    summary: str
    """What it is for, in a sentence or two."""
    about: str
    """All that its manifest says about itself."""
    nodes: int
    image: str
    """Of the training container."""
    folder: str
    has_script: bool


def runtimes() -> tuple[RuntimeEntry, ...]:
    """All of them, by name."""
    return tuple(_entry(name) for name in names())


def names() -> tuple[str, ...]:
    """Their names alone, without reading more than the heads."""
    return tuple(sorted(_folders()))


def get_runtime(name: str) -> RuntimeEntry:
    """One of them; raises InvalidRequest that names the nearest."""
    check_name(name)
    return _entry(name)


def entry_of(
    manifest: Mapping[str, Any], about: str, folder: str = "", *, has_script: bool = False
) -> RuntimeEntry:
    """A runtime from anywhere, as a list shows it."""
    return RuntimeEntry(
        name=manifest["metadata"]["name"],
        framework=manifest["metadata"].get("labels", {}).get(FRAMEWORK_LABEL, ""),
        summary=_summary(about),
        about=about,
        nodes=(manifest["spec"].get("mlPolicy") or {}).get("numNodes") or 1,
        image=_image(manifest),
        folder=folder,
        has_script=has_script,
    )


def load_runtime(name: str) -> dict[str, Any]:
    """The manifest; raises InvalidRequest that names the nearest. The caller may change it."""
    check_name(name)
    return dict(one_of_kind(_documents(name, "runtime.yaml"), RUNTIME_KINDS, "runtime"))


def runtime_text(name: str) -> str:
    """The manifest as it is shipped, comments and all."""
    return _text(name, "runtime.yaml")


def sample_trainjob(name: str, version: TrainerVersion = "2.1") -> dict[str, Any]:
    """A TrainJob that runs on it."""
    documents = parse_documents(sample_text(name, version).encode(), f"{name}/trainjob.yaml")
    return dict(one_of_kind(documents, ("TrainJob",), "TrainJob"))


def sample_text(name: str, version: TrainerVersion = "2.1") -> str:
    """The sample as it is shipped, for 2.1; for a later release with the changes to pods in its dialect."""
    text = _text(name, "trainjob.yaml")
    if version == "2.1":
        return text
    head = f"# The sample of {name} for Trainer {version}.\n"
    text = re.sub(r"\A(?:#.*\n)*", lambda _: head, text)
    text = re.sub(r"^  podTemplateOverrides:\n((?:    .*\n)+)", _patches, text, flags=re.MULTILINE)
    assert "podTemplateOverrides" not in text, name
    return text


def _patches(overrides: re.Match[str]) -> str:
    """`podTemplateOverrides` as `runtimePatches`: the same pods, further down."""
    from astrago_trainer.core.render.pods import MANAGER

    lines = [
        "  runtimePatches:",
        f"    - manager: {MANAGER}",
        "      trainingRuntimeSpec:",
        "        template:",
        "          spec:",
        "            replicatedJobs:",
    ]
    entries = re.findall(
        r"    - targetJobs:\n((?:        - name: .*\n)+)((?:      .*\n)+)", overrides[1]
    )
    pods = [(name, pod) for names, pod in entries for name in re.findall(r"name: (\S+)", names)]
    for target, pod in pods:
        lines += [
            f"              - name: {target}",
            "                template:",
            "                  spec:",
            "                    template:",
        ]
        lines += [f"                {line}" for line in pod.splitlines()]
    return "\n".join(lines) + "\n"


def script(name: str) -> str:
    """The `train.py` of the sample."""
    return _text(name, "train.py")


def sample_job() -> dict[str, Any]:
    """A request to begin with: it runs wherever Python does, on two small nodes, and really trains."""
    return {
        "framework": "pytorch",
        "nodes": 2,
        "resources": {"cpu": "500m", "memory": "256Mi"},
        "env": [{"name": "EPOCHS", "value": "20"}],
        "code": {"inline": (_root() / "sample" / "train.py").read_text("utf-8")},
    }


def system_scripts() -> Mapping[str, str]:
    """File name -> text of the platform's own scripts."""
    return _system_scripts()


def default_platform(version: TrainerVersion = "2.1") -> Platform:
    """An installation as the package comes: shipped runtimes and their scripts."""
    from astrago_trainer.core.platform import Platform

    return Platform(
        trainer_version=version,
        system_scripts=_config_maps(),
        requirements_script=_system_scripts()["install_requirements.sh"],
        preludes={
            "pytorch-runtime": "source /shared/setup_pytorch_env.sh",
            "tensorflow-runtime": 'source /shared-env/tf_config.env\necho "TF_CONFIG: $TF_CONFIG"',
        },
    )


def check_name(name: str) -> None:
    """Raises InvalidRequest for a name the catalogue does not have."""
    if name not in names():
        raise InvalidRequest([unknown_runtime(name, names())])


def unknown_runtime(name: str, known: Sequence[str], where: str = "in the catalogue") -> Problem:
    """What is said of a name that `where` does not have; names the nearest."""
    from difflib import get_close_matches

    # A name with a framework in it means that framework, however near a name of another one is.
    mentioned = [each for each in _FRAMEWORK_WORDS if each in name]
    alike = [each for each in known if any(word in each for word in mentioned)]
    close = get_close_matches(name, alike if mentioned else known, 1)
    nearest = f"Did you mean {close[0]}? " if close else ""
    install = "An administrator adds those of the catalogue: astrago install --apply."
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    return Problem(
        path="runtime",
        code="unknown-runtime",
        message=f"there is no runtime {shown!r} {where}.",
        remedy=f"{nearest}It has {', '.join(known)}." if known else install,
    )


def _config_maps() -> tuple[SystemScripts, ...]:
    """The System ConfigMaps (M10): for every runtime that does not bring the scripts itself."""
    from astrago_trainer.core.platform import SystemScripts

    texts = _system_scripts()
    return (
        SystemScripts(
            name="pytorch-pet-setup",
            volume="pytorch-pet-setup",
            sourced="setup_pytorch_env.sh",
            data={
                name: texts[name] for name in ("setup_pytorch_env.sh", "forward.py", "launch.py")
            },
            framework="pytorch",
            launcher="launch.py",
        ),
        SystemScripts(
            name="tensorflow-tf-config-generator",
            volume="tf-config-generator",
            sourced="generate_tf_config.sh",
            data={name: texts[name] for name in ("generate_tf_config.sh", "forward.py")},
            framework="tensorflow",
        ),
    )


def _root() -> Traversable:
    return files("astrago_trainer") / "runtimes"


@cache
def _folders() -> Mapping[str, str]:
    """Name -> folder; only looks for the name, parsing waits until somebody wants the content."""
    found = {}
    for folder in _root().iterdir():
        manifest = folder / "runtime.yaml"
        if manifest.is_file() and (name := _NAME.search(manifest.read_text("utf-8"))):
            found[name[1]] = folder.name
    return found


@cache
def _entry(name: str) -> RuntimeEntry:
    folder = _folders()[name]
    return entry_of(
        load_runtime(name),
        _about(runtime_text(name)),
        folder,
        has_script=(_root() / folder / "train.py").is_file(),
    )


def _about(text: str) -> str:
    head = _HEAD.match(text)
    return " ".join(line.lstrip("# ") for line in head[0].splitlines()) if head else ""


def _summary(about: str) -> str:
    """The first sentence, and the next as long as it says too little."""
    summary = ""
    for sentence in _SENTENCE.findall(about):
        summary = f"{summary} {sentence}".strip()
        if len(summary) >= _ENOUGH:
            break
    return summary


def _image(manifest: Mapping[str, Any]) -> str:
    """Of the container that `spec.trainer` changes: `node`, in the job with the trainer's label."""
    jobs = manifest["spec"]["template"]["spec"]["replicatedJobs"]
    labelled = [job for job in jobs if job["template"].get("metadata", {}).get("labels")]
    for job in [*labelled, *jobs]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            if container["name"] == "node":
                return str(container.get("image", ""))
    return ""


def _documents(name: str, file: str) -> list[dict[str, Any]]:
    return parse_documents(_text(name, file).encode(), f"{name}/{file}")


@cache
def _text(name: str, file: str) -> str:
    check_name(name)
    path = _root() / _folders()[name] / file
    if not path.is_file():
        raise InvalidRequest(
            [Problem("runtime", "no-such-file", f"the runtime {name} comes without {file}.")]
        )
    return path.read_text("utf-8")


@cache
def _system_scripts() -> Mapping[str, str]:
    return {
        each.name: each.read_text("utf-8")
        for each in sorted((_root() / "system").iterdir(), key=lambda each: each.name)
        if each.is_file()
    }
