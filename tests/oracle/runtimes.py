"""Random runtimes: the shapes that are shipped with Trainer, bent in every direction that its code
looks at.
"""

from __future__ import annotations

from tests.oracle.values import IMAGES, RESERVED_ENV, Die, Json

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
QUEUE = "scheduling.volcano.sh/queue-name"
INITIALIZERS = ("dataset-initializer", "model-initializer")

_NAMES = {
    "torch": ("torch-distributed", "our-torch", "torch-with-cache"),
    "torchtune": (
        "torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-llama3.3-70b",
        "torchtune-qwen2.5-1.5b",
        "torchtune-llama3.2-1b", "torchtune-llama3.2-1b-v2", "torchtune-gemma-2b",
    ),
    "mpi": ("deepspeed-distributed", "mlx-distributed"),
    "plain": ("plain", "tensorflow-distributed"),
    "jax": ("jax-distributed",),
    "xgboost": ("xgboost-distributed",),
}  # fmt: skip
_FLAVOURS = ("torch",) * 6 + ("torchtune",) * 3 + ("mpi",) * 5 + ("plain",) * 4
_LATER_FLAVOURS = ("jax",) * 2 + ("xgboost",) * 3
_TUNE_COMMAND = (
    "tune", "run", "output_dir=/workspace/output", "tokenizer.path=/workspace/model/tok",
    "tokenizer.merges_file=/m",
    "checkpointer.checkpoint_dir=/workspace/model", "dataset=alpaca", "output_dir",
    "x=output_dir=1",
)  # fmt: skip
_POD_FIELDS = frozenset({"containers", "initContainers", "volumes"})
_JOB_FIELDS = frozenset({"template"})
_JOB_SET_FIELDS = frozenset({"replicatedJobs"})
_CONTAINER_FIELDS = frozenset(
    {"name", "image", "command", "args", "env", "ports", "resources", "volumeMounts"}
)


def make_flavour(die: Die) -> str:
    """Which of the controller's plugins the runtime is for; all that the version has."""
    return die.pick(_FLAVOURS if die.version == "2.1" else _FLAVOURS + _LATER_FLAVOURS)


def make_runtime(die: Die, flavour: str) -> Json:
    """A runtime as the controller reads it: with the defaults of its CRD mostly filled in."""
    runtime: Json = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
    }
    metadata: Json = {"name": die.pick(_NAMES[flavour])}
    if die.chance(0.2):
        runtime["kind"] = "TrainingRuntime"
        metadata["namespace"] = "team-a"
    if die.chance(0.5):
        metadata["labels"] = die.labels(1) | {"trainer.kubeflow.org/framework": flavour}
    if die.chance(0.05):
        metadata["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    if die.chance(0.1):
        metadata["annotations"] = die.labels()
    spec: Json = {}
    policy = _pod_group_policy(die)
    die.critical_priority = "volcano" in policy
    spec["template"] = _template(die, flavour, policy)
    ml_policy = _ml_policy(die, flavour, spec["template"])
    if ml_policy is not None:
        spec["mlPolicy"] = ml_policy
    if policy or die.chance(0.03):
        spec["podGroupPolicy"] = policy
    return runtime | {"metadata": metadata, "spec": spec}


def job_names(template: Json) -> list[str]:
    """The names of the replicated jobs of a runtime's template."""
    jobs = template.get("spec", {}).get("replicatedJobs", [])
    return [job["name"] for job in jobs if "name" in job]


def container_names(template: Json, jobs: list[str]) -> tuple[list[str], list[str]]:
    """The names of the init containers and of the containers that these jobs of a template have."""
    init: list[str] = []
    main: list[str] = []
    for job in template.get("spec", {}).get("replicatedJobs", []):
        if job["name"] in jobs:
            pod = job["template"]["spec"]["template"]["spec"]
            init += [c["name"] for c in pod.get("initContainers", [])]
            main += [c["name"] for c in pod.get("containers", [])]
    return init, main


def _ml_policy(die: Die, flavour: str, template: Json) -> Json | None:
    policy: Json = {}
    if die.chance(0.6):
        policy["numNodes"] = die.pick((1, 1, 1, 2, 3, 4, 0, -1, 100))
    if flavour == "plain":
        return policy if die.chance(0.7) else None
    if flavour == "mpi":
        policy["mpi"] = _mpi(die)
    elif flavour in ("torch", "torchtune"):
        policy["torch"] = _torch(die, template)
    else:
        policy[flavour] = {}
    return policy


def _torch(die: Die, template: Json) -> Json:
    torch: Json = {}
    if die.version == "2.1":
        if die.chance(0.6):
            torch["numProcPerNode"] = die.pick(
                ("auto", "auto", "cpu", "gpu", 1, 2, 8, 0, -1, "4", "many", "")
            )
        if die.chance(0.04):
            torch["elasticPolicy"] = die.struct("trainer.v1alpha1.TorchElasticPolicy")
    elif die.version == "2.3" and die.chance(0.3):
        targets = []
        for job in die.some(job_names(template), 2):
            init, main = container_names(template, [job])
            names = die.some(init + main, 2) if die.chance(0.9) else ["ghost"]
            targets.append(
                {"jobName": job if die.chance(0.98) else "nowhere", "containerNames": names}
            )
        torch["envInjection"] = {"targets": targets} if die.chance(0.95) else {}
    return torch


def _mpi(die: Die) -> Json:
    mpi: Json = {
        "numProcPerNode": die.pick((1, 1, 1, 2, 4, 8, 0, -1)),
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": die.pick(("/root/.ssh", "/home/mpiuser/.ssh", "/data", "")),
        "runLauncherAsNode": die.chance(0.5),
    }
    if die.chance(0.04):
        mpi["mpiImplementation"] = die.pick(("Intel", "MPICH", ""))
    if die.chance(0.06):
        del mpi[die.pick(list(mpi))]
    return mpi


def _pod_group_policy(die: Die) -> Json:
    draw = die.random()
    if draw < 0.18:
        return {"coscheduling": {"scheduleTimeoutSeconds": die.pick((60, 60, 0, 300))}}
    if draw < 0.19:
        return {"coscheduling": {}}
    if draw < 0.3:
        return {"volcano": {}}
    if draw < 0.38:
        topology: Json = {
            "mode": die.pick(("hard", "soft", "")),
            "highestTierAllowed": die.pick((1, 2, 0)),
        }
        if die.chance(0.1):
            del topology[die.pick(list(topology))]
        return {"volcano": {"networkTopology": topology}}
    return {}


def _template(die: Die, flavour: str, policy: Json) -> Json:
    template: Json = {}
    if die.chance(0.5):
        template["metadata"] = die.metadata()
    if "volcano" in policy and die.chance(0.5):
        annotations = template.setdefault("metadata", {}).setdefault("annotations", {})
        annotations[QUEUE] = die.pick(("default", "gpu", "q-ü", "gpu", ""))
    spec = die.extras("jobset.v1alpha2.JobSetSpec", 2, _JOB_SET_FIELDS) if die.chance(0.6) else {}
    spec["replicatedJobs"] = _replicated_jobs(die, flavour)
    if die.chance(0.004):
        del spec["replicatedJobs"]
    if die.chance(0.996):
        template["spec"] = spec
    return template


def _replicated_jobs(die: Die, flavour: str) -> list[Json]:
    jobs: list[Json] = []
    has_initializers = die.chance(0.8 if flavour == "torchtune" else 0.3)
    if has_initializers:
        jobs += [_job(die, flavour, name) for name in INITIALIZERS if die.chance(0.85)]
    if flavour == "mpi" and die.chance(0.95):
        jobs.append(_job(die, flavour, "launcher"))
    if die.chance(0.96):
        jobs.append(_job(die, flavour, "node"))
    if die.chance(0.12):
        jobs.append(_job(die, flavour, die.pick(("monitor", "worker"))))
    if die.chance(0.15):
        die.shuffle(jobs)
    if jobs and die.chance(0.004):
        jobs.append(jobs[0])
    return jobs


def _job(die: Die, flavour: str, name: str) -> Json:
    step = name if name in INITIALIZERS else "trainer"
    is_step = name in (*INITIALIZERS, "launcher") or (name == "node" and flavour != "mpi")
    metadata = die.metadata() if die.chance(0.3) else {}
    if is_step != die.chance(0.04):
        metadata.setdefault("labels", {})[ANCESTOR] = (
            step if die.chance(0.98) else die.pick(("", "trainer", "other"))
        )
    template: Json = {"spec": _job_spec(die, flavour, name)}
    if metadata or die.chance(0.1):
        template["metadata"] = metadata
    job: Json = {"name": name, "template": template}
    if die.chance(0.35):
        job["replicas"] = die.pick((1, 1, 1, 0, 2, 3))
    if die.chance(0.1):
        job |= die.extras(
            "jobset.v1alpha2.ReplicatedJob", 2, frozenset({"name", "template", "replicas"})
        )
    return job


def _job_spec(die: Die, flavour: str, name: str) -> Json:
    spec = die.extras("batch.v1.JobSpec", 3, _JOB_FIELDS) if die.chance(0.5) else {}
    pod: Json = {"spec": _pod(die, flavour, name)}
    if die.chance(0.35):
        pod["metadata"] = die.metadata()
    spec["template"] = pod
    return spec


def _pod(die: Die, flavour: str, name: str) -> Json:
    main = name if name in INITIALIZERS else "node"
    if die.chance(0.05):
        main = die.pick(("trainer", "launcher", "worker"))
    pod = die.extras("core.v1.PodSpec", 4, _POD_FIELDS) if die.chance(0.7) else {}
    containers = [_container(die, flavour, main, job=name)]
    if die.chance(0.22):
        containers.append(_container(die, flavour, die.pick(("sidecar", "exporter"))))
    if die.chance(0.1):
        containers.insert(0, _container(die, flavour, "proxy"))
    if die.chance(0.006):
        containers.append(_container(die, flavour, main, job=name))
    pod["containers"] = containers
    if die.chance(0.003):
        pod["containers"] = []
    if die.chance(0.4):
        pod["initContainers"] = [
            _container(die, flavour, n, is_init=True)
            for n in die.some(("setup", "warm", "sshd", "late"), 3)
        ]
    if die.chance(0.45):
        pod["volumes"] = die.volumes()
    if flavour == "mpi" and die.chance(0.04):
        pod.setdefault("volumes", []).append(
            {"name": die.pick(("mpi-ssh-auth", "mpi-hostfile")), "emptyDir": {}}
        )
    return pod


def _container(die: Die, flavour: str, name: str, *, job: str = "", is_init: bool = False) -> Json:
    container: Json = {"name": name, "image": die.pick(IMAGES)}
    if flavour == "torchtune" and job and job not in INITIALIZERS:
        container["command"] = list(_TUNE_COMMAND[:2]) + die.some(_TUNE_COMMAND[2:], 5)
    elif die.chance(0.4):
        container["command"] = die.pick(
            (["python"], ["torchrun", "train.py"], [], ["sh", "-c", "echo $A"])
        )
    if die.chance(0.3):
        container["args"] = die.pick((["--epochs", "3"], [], ["train.py"]))
    if die.chance(0.5):
        container["env"] = die.env()
    if die.chance(0.07):
        container.setdefault("env", []).extend(
            die.env(2, RESERVED_ENV[die.pick(tuple(RESERVED_ENV))])
        )
    if die.chance(0.25):
        container["ports"] = _ports(die)
    if die.chance(0.45):
        container["resources"] = die.resources()
    if job in INITIALIZERS:
        if die.chance(0.88):
            mount = {"name": "initializer", "mountPath": f"/workspace/{job.partition('-')[0]}"}
            container["volumeMounts"] = [*(die.mounts(1) if die.chance(0.2) else []), mount]
    elif die.chance(0.3):
        container["volumeMounts"] = die.mounts()
    if die.chance(0.3):
        container |= die.extras("core.v1.Container", 3, _CONTAINER_FIELDS)
    if is_init and die.chance(0.35):
        container["restartPolicy"] = "Always"
    return container


def _ports(die: Die) -> list[Json]:
    ports: list[Json] = []
    for number in die.some((29500, 8080, 22, 29500 if die.chance(0.05) else 9000), 3):
        port: Json = {"containerPort": number}
        if die.chance(0.5):
            port["name"] = die.pick(("http", "ssh", "c10d", "metrics", ""))
        if die.chance(0.2):
            port["protocol"] = die.pick(("TCP", "UDP"))
        ports.append(port)
    return ports
