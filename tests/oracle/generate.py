"""Random pairs of runtime and TrainJob, replayable by one number: `make_pair(seed, version)`.

Most pairs are legal, so that objects are compared and not only refusals. The TrainJob is drawn with
the runtime in view: its patches aim at jobs, containers, volumes and variables that exist there,
and sometimes just miss.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.odd import spoil
from tests.oracle.runtimes import (
    ANCESTOR,
    INITIALIZERS,
    QUEUE,
    container_names,
    job_names,
    make_flavour,
    make_runtime,
)
from tests.oracle.values import ENV_NAMES, IMAGES, RESERVED_ENV, TIMES, Die, Json

SEEDS = 2**63

_MANAGERS = (
    "trainer.kubeflow.org/kubeflow-sdk", "kueue.x-k8s.io/manager", "a.b/c/d",
    "example.com/with%20percent",
)  # fmt: skip
_LONG_HOST = ".".join(["h" * 62] * 4)
_BAD_MANAGERS = (
    "", "manager", "Example.com/x", "a.b/", "/x", "a_b.c/x", "example.com/space here", "ex.com/ü",
    "1/" + "y" * 300, f"{_LONG_HOST}/x", f"{_LONG_HOST}hh/x", f"{_LONG_HOST}hhh/x", "a..b/x", "a.b//",
)  # fmt: skip
_TUNE_ARGS = (
    "model.lora_attn_modules=[q_proj,v_proj]", "model.quantize_base=True",
    "model.quantize_base=False", "model.use_dora=True",
    "model.use_dora=False", "model.use_dora", "model.quantize_base= TRUE ", "model.quantize_base",
    "epochs=3", "batch_size=2",
)  # fmt: skip
_IMMUTABLE_ARGS = (
    "output_dir=/x",
    "tokenizer.path=/x",
    "checkpointer.checkpoint_dir",
    "tokenizer.merges_file=a=b",
)
_RESERVED_CONTAINERS = (*INITIALIZERS, "node")


def pairs(version: str) -> st.SearchStrategy[Json]:
    """Pairs as a hypothesis strategy; it shrinks the seed only, so make a failing pair small with
    `minimise`.
    """
    return st.integers(0, SEEDS - 1).map(lambda seed: make_pair(seed, version))


def make_pair(seed: int, version: str) -> Json:
    """The pair that `seed` stands for: `{"runtime": …, "trainJob": …}`."""
    die = Die(seed, version)
    flavour = make_flavour(die)
    runtime = make_runtime(die, flavour)
    pair = {"runtime": runtime, "trainJob": _train_job(die, flavour, runtime)}
    return spoil(die, pair) if die.chance(0.12) else pair


def _train_job(die: Die, flavour: str, runtime: Json) -> Json:
    metadata: Json = {
        "name": die.pick(("job-1", "llm-finetune", "a", "n" * 63)),
        "namespace": "team-a",
    }
    if die.chance(0.85):
        metadata["uid"] = "4b3c0ffe-0000-4000-8000-00000000beef"
    if die.chance(0.3):
        metadata["labels"] = die.labels()
    if die.chance(0.2):
        metadata |= {
            "annotations": die.labels(),
            "generation": 1,
            "creationTimestamp": die.pick(TIMES),
        }
    if die.chance(0.02):
        del metadata["namespace"]
    job: Json = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    job |= {"metadata": metadata, "spec": _spec(die, flavour, runtime)}
    if die.chance(0.03):
        job["status"] = {"jobsStatus": [{"name": "node", "ready": 1, "active": 0}]}
    return job


def _spec(die: Die, flavour: str, runtime: Json) -> Json:
    spec: Json = {"runtimeRef": _reference(die, runtime)}
    template = runtime["spec"]["template"]
    if die.chance(0.9):
        spec["trainer"] = _trainer(die, flavour) if die.chance(0.95) else {}
    initializer = _initializer(die, job_names(template))
    if initializer is not None:
        spec["initializer"] = initializer
    if die.version == "2.1" or die.chance(0.02):
        if die.chance(0.25):
            spec["labels"] = die.labels()
        if die.chance(0.25):
            spec["annotations"] = die.labels() | (
                {QUEUE: die.pick(("other", ""))} if die.chance(0.2) else {}
            )
        if die.chance(0.6):
            spec["podTemplateOverrides"] = [_override(die, template) for _ in range(die.size())]
    if die.version != "2.1" or die.chance(0.02):
        if die.chance(0.65):
            spec["runtimePatches"] = _patches(die, template)
        if die.chance(0.2):
            spec["activeDeadlineSeconds"] = die.pick((1, 600, 0))
    if die.chance(0.8):
        spec["suspend"] = die.chance(0.4)
    if die.chance(0.8):
        spec["managedBy"] = "trainer.kubeflow.org/trainjob-controller"
    if die.chance(0.02):
        spec["managedBy"] = "kueue.x-k8s.io/multikueue"
    return spec


def _reference(die: Die, runtime: Json) -> Json:
    reference: Json = {
        "name": runtime["metadata"]["name"],
        "apiGroup": "trainer.kubeflow.org",
        "kind": runtime["kind"],
    }
    if die.chance(0.012):
        reference["name"] = die.pick(("missing", ""))
    if die.chance(0.008):
        reference["kind"] = die.pick(("ClusterTrainingRuntime", "TrainingRuntime", "Runtime", ""))
    if die.chance(0.006):
        reference["apiGroup"] = die.pick(("example.com", ""))
    if die.chance(0.008):
        del reference[die.pick(("apiGroup", "kind"))]
    return reference


def _trainer(die: Die, flavour: str) -> Json:
    trainer: Json = {}
    if die.chance(0.5):
        trainer["image"] = die.pick((*IMAGES, ""))
    if flavour == "torchtune" and die.chance(0.85):
        trainer["command"] = ["tune", "run"]
        if die.chance(0.8):
            trainer["args"] = die.some(_TUNE_ARGS, 4) + (
                die.some(_IMMUTABLE_ARGS, 1) if die.chance(0.2) else []
            )
    elif die.chance(0.5):
        trainer["command"] = die.pick(
            (["python", "train.py"], ["torchrun"], [], ["tune", "run"], ["tune"])
        )
        if die.chance(0.4):
            trainer["args"] = die.pick((["--lr", "0.1"], [], ["model.lora_attn_modules=[q]"]))
    if die.chance(0.55):
        trainer["env"] = die.env(4)
    if die.chance(0.05):
        reserved = flavour if flavour in RESERVED_ENV else "torch"
        trainer.setdefault("env", []).extend(die.env(2, RESERVED_ENV[reserved]))
    if die.chance(0.75):
        trainer["numNodes"] = _num_nodes(die, flavour)
    if die.chance(0.5):
        trainer["resourcesPerNode"] = die.resources()
    if die.chance(0.75 if flavour == "torchtune" else 0.45):
        trainer["numProcPerNode"] = die.pick((1, 1, 2, 4, 8, 0, -1))
        if (die.version == "2.1" and flavour != "mpi") or die.chance(0.02):
            trainer["numProcPerNode"] = die.pick(
                (1, 1, 2, 4, 0, "auto", "cpu", "gpu", "auto", "3", "all")
            )
    return trainer


def _num_nodes(die: Die, flavour: str) -> int:
    if flavour == "torchtune" and die.chance(0.75):
        return 1
    return die.pick((1, 1, 2, 2, 3, 4, 0, -3, 100))


def _initializer(die: Die, jobs: list[str]) -> Json | None:
    initializer: Json = {}
    for step, job in (("dataset", "dataset-initializer"), ("model", "model-initializer")):
        if die.chance(0.6 if job in jobs else 0.025):
            initializer[step] = _initializer_step(die)
    return initializer if initializer or die.chance(0.05) else None


def _initializer_step(die: Die) -> Json:
    step: Json = {}
    if die.chance(0.75):
        step["storageUri"] = die.pick(("hf://org/data", "s3://bucket/x", "", "pvc://ü"))
    if die.chance(0.5):
        step["env"] = die.env()
    if die.chance(0.4):
        step["secretRef"] = (
            {"name": die.pick(("creds", "hf-token", ""))} if die.chance(0.95) else {}
        )
    return step


def _override(die: Die, template: Json) -> Json:
    """One entry of podTemplateOverrides (2.1)."""
    jobs = job_names(template)
    targets = die.some(jobs, 2) or jobs[-1:]
    if die.chance(0.02):
        targets = [*targets, "nod"]
    if die.chance(0.02):
        targets = [*targets, *targets]
    override: Json = {"targetJobs": [{"name": name} for name in targets]}
    if die.chance(0.02):
        override["targetJobs"] = die.pick(([], [{}]))
    if die.chance(0.4):
        override["metadata"] = die.metadata()
    if die.chance(0.85):
        override["spec"] = _pod_patch(die, container_names(template, targets))
    return override


def _patches(die: Die, template: Json) -> list[Json]:
    """The entries of runtimePatches (2.2 and later), one per manager mostly."""
    managers = die.sample(_MANAGERS, die.size())
    if die.chance(0.04):
        managers.append(die.pick(_BAD_MANAGERS))
    if managers and die.chance(0.01):
        managers.append(managers[0])
    return [_runtime_patch(die, manager, template) for manager in managers]


def _runtime_patch(die: Die, manager: str, template: Json) -> Json:
    patch: Json = {"manager": manager}
    if die.chance(0.3):
        patch["time"] = die.pick(TIMES)
    names = job_names(template)
    jobs = die.some(names, 2) or names[-1:]
    if die.chance(0.02):
        jobs = [*jobs, "nod"]
    template_patch: Json = {}
    if die.chance(0.3):
        template_patch["metadata"] = die.metadata()
        if die.chance(0.15):
            template_patch["metadata"].setdefault("annotations", {})[QUEUE] = die.pick(
                ("other", "")
            )
    if die.chance(0.95):
        template_patch["spec"] = {
            "replicatedJobs": [_job_patch(die, name, template) for name in jobs]
        }
        if die.chance(0.02):
            template_patch["spec"] = {}
    if die.chance(0.97):
        patch["trainingRuntimeSpec"] = {"template": template_patch} if die.chance(0.97) else {}
    return patch


def _job_patch(die: Die, name: str, template: Json) -> Json:
    job: Json = {}
    if die.chance(0.25):
        job["metadata"] = die.metadata()
        if die.chance(0.1):
            step = die.pick(("trainer", "dataset-initializer", "other", ""))
            job["metadata"].setdefault("labels", {})[ANCESTOR] = step
    pod: Json = {}
    if die.chance(0.35):
        pod["metadata"] = die.metadata()
    if die.chance(0.88):
        pod["spec"] = _pod_patch(die, container_names(template, [name]))
    if die.chance(0.97):
        job["spec"] = {"template": pod} if die.chance(0.98) else {}
    patch: Json = {"name": name}
    if die.chance(0.97):
        patch["template"] = job
    return patch


def _pod_patch(die: Die, names: tuple[list[str], list[str]]) -> Json:
    init, main = names
    patch: Json = {}
    if die.chance(0.25):
        patch["serviceAccountName"] = die.pick(("trainer", "robot", ""))
    if die.chance(0.3):
        patch["nodeSelector"] = die.labels()
    if die.chance(0.2):
        patch["affinity"] = die.struct("core.v1.Affinity", 2)
    if die.chance(0.25):
        patch["tolerations"] = die.items("core.v1.Toleration", "", 3)
    if die.chance(0.35):
        patch["volumes"] = die.volumes()
    if die.chance(0.4):
        patch["initContainers"] = _container_patches(die, init if die.chance(0.9) else init + main)
    if die.chance(0.5):
        patch["containers"] = _container_patches(die, main)
    if die.chance(0.15):
        patch["schedulingGates"] = die.items("core.v1.PodSchedulingGate", "name", 4)
    if die.chance(0.2):
        patch["imagePullSecrets"] = die.items("core.v1.LocalObjectReference", "name", 4)
    if die.version != "2.1" and die.chance(0.2):
        patch["securityContext"] = die.struct("core.v1.PodSecurityContext", 2)
    if die.version == "2.3" and die.chance(0.2):
        patch["terminationGracePeriodSeconds"] = die.pick((0, 5, 30, 600))
    return patch


def _container_patches(die: Die, names: list[str]) -> list[Json]:
    chosen = die.some(sorted(set(names)), 3)
    if die.chance(0.03):
        chosen.append("typo")
    patches: list[Json] = []
    for name in chosen:
        patch: Json = {"name": name}
        if die.chance(0.03 if name in _RESERVED_CONTAINERS else 0.6):
            patch["env"] = die.env(4, ENV_NAMES)
        if die.chance(0.5):
            patch["volumeMounts"] = die.mounts(3)
        if die.version != "2.1" and die.chance(0.3):
            patch["securityContext"] = die.struct("core.v1.SecurityContext", 2)
        patches.append(patch)
    if patches and die.chance(0.006):
        del patches[0]["name"]
    return patches
