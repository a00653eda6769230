"""Writes the manifests that are made from others: `make manifests`.

The GPU variants of the samples, and `kubeflow-training-integration/`: the eight files of the backend
integration under their names. Their sources are `runtimes/*` and `runtimes/system/*`; a test holds
the files equal to what this makes. The overlays of `kustomize/` have copies of the samples, because
kustomize reads no file outside the folder of an overlay.
"""

from __future__ import annotations

import re
from pathlib import Path

from astrago_trainer import catalogue
from astrago_trainer.core.platform import Framework, SystemScripts

ROOT = Path(__file__).parents[1]
INTEGRATION = Path("kubeflow-training-integration")
MADE = "# Made by `make manifests`; change the source instead: "

_HEAD = re.compile(r"\A(?:#.*\n)+")
_RESOURCES = re.compile(r"    resourcesPerNode:.*\n(?:      .*\n)+")
_GPU_RESOURCES = """\
    resourcesPerNode:
      limits:
        cpu: "4"
        memory: 16Gi
        nvidia.com/gpu: "1"
      requests:
        cpu: "2"
        memory: 8Gi
        nvidia.com/gpu: "1" # equal to the limit
"""
_SAMPLES = """\
      - name: SAMPLES # as many pictures as MNIST has
        value: "60000"
"""


def files() -> dict[Path, str]:
    """Path in the checkout -> text."""
    runtimes = Path("src/astrago_trainer/runtimes")
    made = {
        runtimes / folder / "trainjob-gpu.yaml": _gpu_variant(
            catalogue.sample_text(f"{folder}-runtime"), f"runtimes/{folder}/trainjob.yaml"
        )
        for folder in ("pytorch", "tensorflow")
    }
    made |= _integration("pytorch", "pytorch-simple", "pytorch-runtime-simple", "user123")
    made |= _integration("tensorflow", "tensorflow-distributed", "tensorflow-runtime", "user456")
    made |= _copies("ddp", "samples/mnist-ddp.py")
    made |= _copies("fsdp", "samples/fsdp/t5-fsdp.py", "samples/fsdp/requirements.txt")
    return made


def _copies(overlay: str, *sources: str) -> dict[Path, str]:
    """The files that an overlay puts into its ConfigMap."""
    return {
        Path("kustomize/overlays", overlay, Path(source).name): (
            f"{MADE}{source}.\n{(ROOT / source).read_text(encoding='utf-8')}"
        )
        for source in sources
    }


def _integration(
    framework: Framework, runtime: str, runtime_file: str, user: str
) -> dict[Path, str]:
    """The files of one framework."""
    folder = INTEGRATION / framework
    scripts = catalogue.default_platform().scripts_for(runtime, framework)
    assert scripts is not None
    code = f"{user}-train-script"
    source = f"runtimes/{runtime}"
    job = _job(catalogue.sample_text(runtime), f"{source}/trainjob.yaml", scripts, code)
    gpu = _gpu_variant(job, f"{source}/trainjob.yaml")
    template = f"{framework}-distributed-with-configmap"
    return {
        folder / f"{scripts.name}.yaml": _config_map(
            scripts.name,
            scripts.data,
            f"{MADE}runtimes/system/.\n"
            "# System ConfigMap: the backend creates it in the user's namespace, once.\n",
        ),
        folder / f"{runtime_file}.yaml": (
            f"{MADE}{source}/runtime.yaml.\n{catalogue.runtime_text(runtime)}"
        ),
        folder / f"{framework}-train-script-configmap.yaml": _config_map(
            code,
            {"train.py": catalogue.script(runtime)},
            f"{MADE}{source}/train.py.\n"
            "# User ConfigMap: the backend makes it from the code of a user, here `"
            f"{user}`.\n",
        ),
        folder / f"{template}.yaml": job,
        folder / f"{template}-gpu.yaml": gpu,
    }


def _job(text: str, source: str, scripts: SystemScripts, code: str) -> str:
    head = (
        f"{MADE}{source}.\n"
        "# TrainJob template: the backend sets name, numNodes, the limits of resourcesPerNode (with\n"
        "# nvidia.com/gpu) and the configMap of the volume train-script. As it stands it runs without\n"
        f"# GPUs, with the ConfigMaps {scripts.name} and {code}.\n"
    )
    old, new = (
        "configMap:\n              name: train-script\n",
        f"configMap:\n              name: {code}\n",
    )
    assert text.count(old) == 1
    return _HEAD.sub(lambda _: head, text.replace(old, new))


def _gpu_variant(text: str, source: str) -> str:
    """The same job with a GPU on each node, and enough pictures to be worth one."""
    head = f"{MADE}{source}.\n# The same job with one GPU on each node.\n"
    text = _HEAD.sub(lambda _: head, text)
    text = re.sub(r"^(  name: \S+)$", r"\1-gpu", text, count=1, flags=re.MULTILINE)
    if "\n    env:" in text:
        text = text.replace("    resourcesPerNode:", f"{_SAMPLES}    resourcesPerNode:", 1)
    else:
        text = text.replace(
            "    resourcesPerNode:", f"    env:\n{_SAMPLES}    resourcesPerNode:", 1
        )
    return _RESOURCES.sub(lambda _: _GPU_RESOURCES, text, count=1)


def _config_map(name: str, data: dict[str, str], head: str) -> str:
    lines = [f"{head}apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name}", "data:"]
    for key, text in data.items():
        lines.append(f"  {key}: |")
        lines += [f"    {line}" if line else "" for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def main() -> None:
    for path, text in files().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
