"""What every runtime and every sample job of the catalogue must say, and what none may."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.debian import debian_program

from catalogue.inline import ROOT, RUNTIMES, SYSTEM, filled

# folder -> name, framework, image of the container `node`
RUNTIME_FACTS = {
    "pytorch-simple": (
        "pytorch-simple",
        "pytorch",
        "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
    ),
    "tensorflow-distributed": (
        "tensorflow-distributed",
        "tensorflow",
        "tensorflow/tensorflow:2.15.0-gpu",
    ),
    "pytorch": (
        "pytorch-runtime",
        "pytorch",
        "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
    ),
    "tensorflow": (
        "tensorflow-runtime",
        "tensorflow",
        "tensorflow/tensorflow:2.15.0-gpu",
    ),
    "horovod": ("horovod-runtime", "horovod", "horovod/horovod:0.28.1"),
}
FOLDERS = tuple(RUNTIME_FACTS)
ONE_JOB_FOLDERS = tuple(folder for folder in FOLDERS if folder != "horovod")
SECOND_GENERATION = ("pytorch", "tensorflow")
ANCESTOR = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def load(folder: str, name: str) -> dict[str, Any]:
    """The first document; the sample's script may follow."""
    return next(yaml.safe_load_all((RUNTIMES / folder / name).read_text()))


def job_set(folder: str) -> dict[str, Any]:
    return load(folder, "runtime.yaml")["spec"]["template"]["spec"]


def pods(folder: str) -> list[dict[str, Any]]:
    jobs = job_set(folder)["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"] for job in jobs]


def containers(folder: str) -> Iterator[dict[str, Any]]:
    for pod in pods(folder):
        yield from pod.get("initContainers", [])
        yield from pod["containers"]


def by_name(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [item for item in items if item["name"] == name]
    return found


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


# Runtimes


@pytest.mark.req("M63", "M64")
def test_every_runtime_has_its_files():
    found = {
        path.parent.name: sorted(file.name for file in path.parent.iterdir() if file.is_file())
        for path in RUNTIMES.glob("*/runtime.yaml")
    }
    assert found == {
        folder: [
            "runtime.yaml",
            "train.py",
            *(["trainjob-gpu.yaml"] if folder in SECOND_GENERATION else []),
            "trainjob.yaml",
        ]
        for folder in FOLDERS
    }


@pytest.mark.req("M29", "M63", "M75", "M76")
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_runtime_has_its_name_its_framework_and_its_image(folder):
    name, framework, image = RUNTIME_FACTS[folder]
    runtime = load(folder, "runtime.yaml")
    assert runtime["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    assert runtime["kind"] == "ClusterTrainingRuntime"
    assert runtime["metadata"] == {
        "name": name,
        "labels": {"trainer.kubeflow.org/framework": framework},
    }
    assert {by_name(pod["containers"], "node")["image"] for pod in pods(folder)} == {image}


@pytest.mark.req("M75", "M76", "M120")
@pytest.mark.parametrize(
    ("folder", "policy"),
    [
        ("pytorch-simple", {"numNodes": 1, "torch": {}}),
        ("pytorch", {"numNodes": 1, "torch": {}}),
        ("tensorflow-distributed", {"numNodes": 1}),
        ("tensorflow", {"numNodes": 1}),
        (
            "horovod",
            {
                "numNodes": 1,
                "mpi": {
                    "mpiImplementation": "OpenMPI",
                    "numProcPerNode": 1,
                    "runLauncherAsNode": True,
                    "sshAuthMountPath": "/root/.ssh",
                },
            },
        ),
    ],
)
def test_a_runtime_has_the_policy_of_its_framework(folder, policy):
    assert load(folder, "runtime.yaml")["spec"]["mlPolicy"] == policy


@pytest.mark.req("M75", "M76", "M105", "M128", "M133")
@pytest.mark.parametrize("folder", ONE_JOB_FOLDERS)
def test_a_framework_with_equal_nodes_has_one_job_called_node(folder):
    spec = job_set(folder)
    assert spec["successPolicy"] == {"operator": "All"}
    (job,) = spec["replicatedJobs"]
    assert (job["name"], job["replicas"]) == ("node", 1)
    assert job["template"]["metadata"]["labels"] == ANCESTOR
    assert [container["name"] for container in pods(folder)[0]["containers"]] == ["node"]


@pytest.mark.req("M114", "M133")
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_failure_restarts_the_whole_group_three_times(folder):
    spec = job_set(folder)
    assert spec["failurePolicy"]["maxRestarts"] == 3
    assert {job["template"]["spec"]["backoffLimit"] for job in spec["replicatedJobs"]} == {0}
    assert {pod["restartPolicy"] for pod in pods(folder)} == {"Never"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_node_that_falls_silent_loses_its_pods_after_half_a_minute(folder):
    waits = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    for pod in pods(folder):
        assert pod["tolerations"] == [{"key": key, **waits} for key in keys]


@pytest.mark.req("M67", "M84", "M134")
@pytest.mark.parametrize("folder", FOLDERS)
def test_time_to_live_is_on_the_job_of_the_second_generation_and_never_on_the_job_set(folder):
    assert "ttlSecondsAfterFinished" not in job_set(folder)
    (seconds,) = {
        job["template"]["spec"].get("ttlSecondsAfterFinished")
        for job in job_set(folder)["replicatedJobs"]
    }
    assert seconds == (86400 if folder in SECOND_GENERATION else None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_pod_gets_a_token_of_the_cluster_a_folder_of_the_host_or_privileges(folder):
    for pod in pods(folder):
        assert pod["automountServiceAccountToken"] is False
        assert {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"}.isdisjoint(pod)
        for volume in pod.get("volumes", []):
            assert set(volume) == {"name", "emptyDir"}
    assert all("securityContext" not in container for container in containers(folder))


@pytest.mark.req("M63", "M78")
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_image_has_a_fixed_tag(folder):
    for container in containers(folder):
        assert re.fullmatch(r"[a-z0-9/]+:v?\d[\w.-]*", container["image"])


@pytest.mark.req("M78")
@pytest.mark.parametrize("folder", FOLDERS)
def test_init_containers_fit_a_quota_and_training_containers_have_no_limit(folder):
    small = {"cpu": "100m", "memory": "128Mi"}
    for pod in pods(folder):
        for container in pod.get("initContainers", []):
            assert container["resources"] == {"requests": small, "limits": small}
            assert container["imagePullPolicy"] == "IfNotPresent"
        assert all("resources" not in container for container in pod["containers"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_python_prints_at_once(folder):
    for pod in pods(folder):
        assert env_of(by_name(pod["containers"], "node"))["PYTHONUNBUFFERED"] == "1"


@pytest.mark.req("M70", "M75", "M78", "M85", "M129")
@pytest.mark.parametrize("folder", SECOND_GENERATION)
def test_the_second_generation_clones_into_a_volume(folder):
    (pod,) = pods(folder)
    assert {"name": "git-clone-volume", "emptyDir": {}} in pod["volumes"]
    clone = by_name(pod["initContainers"], "git-clone")
    assert clone["image"] == "alpine/git:v2.36.2"
    assert clone["volumeMounts"] == [{"name": "git-clone-volume", "mountPath": "/git"}]
    # Plain values, for a job overrides them; and no repository of anybody by default.
    assert env_of(clone) == {
        "GIT_SYNC_REPO": "",
        "GIT_SYNC_BRANCH": "",
        "GIT_SYNC_ROOT": "/git",
        "GIT_SYNC_TIMEOUT": "600",
    }


@pytest.mark.req("M39", "M76", "M77", "M129")
@pytest.mark.parametrize(
    ("folder", "init_containers"),
    [
        ("tensorflow-distributed", ["tf-config-generator"]),
        ("tensorflow", ["tf-config-generator", "git-clone"]),
    ],
)
def test_tensorflow_gets_its_cluster_from_an_init_container(folder, init_containers):
    (pod,) = pods(folder)
    namespace = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    mount = {"name": "shared-env", "mountPath": "/shared-env"}
    assert {"name": "shared-env", "emptyDir": {}} in pod["volumes"]
    assert [container["name"] for container in pod["initContainers"]] == init_containers
    generator = pod["initContainers"][0]
    assert generator["volumeMounts"] == [mount]
    assert env_of(generator) == {
        "NUM_WORKERS": "",
        "PET_NNODES": "",
        "TF_PORT": "2222",
        "NAMESPACE": namespace,
    }
    node = by_name(pod["containers"], "node")
    assert node["volumeMounts"] == [mount]
    assert env_of(node)["NAMESPACE"] == namespace


def test_horovod_ends_with_its_launcher_which_waits_for_sshd():
    spec = job_set("horovod")
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    node, launcher = spec["replicatedJobs"]
    assert (node["name"], launcher["name"]) == ("node", "launcher")
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert launcher["template"]["metadata"]["labels"] == ANCESTOR
    assert "metadata" not in node["template"]
    worker = by_name(pods("horovod")[0]["containers"], "node")
    assert worker["readinessProbe"]["tcpSocket"] == {"port": 2222}
    assert " -p 2222 " in worker["command"][2]
    agent = env_of(by_name(pods("horovod")[1]["containers"], "node"))["OMPI_MCA_plm_rsh_agent"]
    assert agent.startswith("ssh -i /ssh-key/id_rsa -p 2222 ")


# Samples


@pytest.mark.req("M15", "M16", "M18", "M30", "M79")
@pytest.mark.parametrize(
    ("folder", "name", "nodes"),
    [
        ("pytorch-simple", "pytorch-distributed-configmap", 2),
        ("tensorflow-distributed", "tensorflow-distributed-configmap", 2),
        ("pytorch", "pytorch-distributed-simple", 2),
        ("tensorflow", "tensorflow-distributed-simple", 3),
        ("horovod", "horovod-distributed", 2),
    ],
)
def test_a_sample_job_uses_its_runtime(folder, name, nodes):
    job = load(folder, "trainjob.yaml")
    assert job["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    assert job["kind"] == "TrainJob"
    # S2 asks for its jobs in kubeflow-system; S0 and everyone else name the namespace themselves.
    where = {"namespace": "kubeflow-system"} if folder in SECOND_GENERATION else {}
    assert job["metadata"] == {"name": name, **where}
    assert job["spec"]["runtimeRef"] == {"name": RUNTIME_FACTS[folder][0]}
    assert job["spec"]["trainer"]["numNodes"] == nodes


@pytest.mark.req("M35", "M60")
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_job_runs_without_a_gpu(folder):
    resources = load(folder, "trainjob.yaml")["spec"]["trainer"]["resourcesPerNode"]
    assert {key: set(values) for key, values in resources.items()} == {
        "limits": {"cpu", "memory"},
        "requests": {"cpu", "memory"},
    }


@pytest.mark.req("M105", "M126", "M128")
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_job_overrides_only_what_its_runtime_has_and_no_env_of_node(folder):
    jobs = {job["name"] for job in job_set(folder)["replicatedJobs"]}
    inits = {item["name"] for pod in pods(folder) for item in pod.get("initContainers", [])}
    (override,) = load(folder, "trainjob.yaml")["spec"]["podTemplateOverrides"]
    assert {target["name"] for target in override["targetJobs"]} == jobs
    assert {item["name"] for item in override["spec"].get("initContainers", [])} <= inits
    (node,) = override["spec"]["containers"]
    assert node["name"] == "node"
    assert "env" not in node


@pytest.mark.req("M11", "M12", "M18", "M19", "M40", "M46")
@pytest.mark.parametrize(
    ("folder", "volume", "config_map", "command"),
    [
        (
            "pytorch-simple",
            "pytorch-pet-setup",
            "pytorch-pet-setup",
            "source /shared/setup_pytorch_env.sh\n\npython /workspace/scripts/train.py",
        ),
        (
            "tensorflow-distributed",
            "tf-config-generator",
            "tensorflow-tf-config-generator",
            "source /shared/generate_tf_config.sh\n\npython3 /workspace/scripts/train.py",
        ),
    ],
)
def test_the_first_generation_mounts_setup_and_code_from_config_maps(
    folder, volume, config_map, command
):
    spec = load(folder, "trainjob.yaml")["spec"]
    assert spec["trainer"]["command"] == ["bash", "-c", command]
    override = spec["podTemplateOverrides"][0]["spec"]
    assert override["volumes"] == [
        {"name": volume, "configMap": {"name": config_map, "defaultMode": 0o755}},
        {"name": "train-script", "configMap": {"name": "train-script", "defaultMode": 0o755}},
    ]
    assert override["containers"][0]["volumeMounts"] == [
        {"name": volume, "mountPath": "/shared", "readOnly": True},
        {"name": "train-script", "mountPath": "/workspace/scripts", "readOnly": True},
    ]


@pytest.mark.req("M20")
def test_the_first_tensorflow_sample_gives_both_numbers_of_workers():
    env = env_of(load("tensorflow-distributed", "trainjob.yaml")["spec"]["trainer"])
    assert env == {"NUM_WORKERS": "2", "PET_NNODES": "2"}


@pytest.mark.req("M45", "M47", "M48", "M66", "M79", "M85")
@pytest.mark.parametrize(
    ("folder", "command"),
    [
        (
            "pytorch",
            "source /shared/setup_pytorch_env.sh\n\npython /workspace/scripts/train.py",
        ),
        (
            "tensorflow",
            'source /shared-env/tf_config.env\necho "TF_CONFIG: $TF_CONFIG"\n\n'
            "python3 /workspace/scripts/train.py",
        ),
    ],
)
@pytest.mark.parametrize("sample", ["trainjob.yaml", "trainjob-gpu.yaml"])
def test_the_second_generation_brings_its_script_in_the_same_file(folder, command, sample):
    job, script = yaml.safe_load_all((RUNTIMES / folder / sample).read_text())
    assert job["spec"]["trainer"]["command"] == ["bash", "-c", command]
    assert script["kind"] == "ConfigMap"
    assert script["metadata"]["namespace"] == job["metadata"]["namespace"]
    assert script["data"] == {"train.py": (RUNTIMES / folder / "train.py").read_text()}
    override = job["spec"]["podTemplateOverrides"][0]["spec"]
    volume = by_name(override["volumes"], "train-script")
    assert volume["configMap"] == {"name": script["metadata"]["name"], "defaultMode": 0o755}
    mounts = {each["name"]: each["mountPath"] for each in override["containers"][0]["volumeMounts"]}
    assert mounts["train-script"] == "/workspace/scripts"
    assert mounts["git-clone-volume"] == "/test"


@pytest.mark.req("M70", "M77", "M79")
def test_the_second_generation_sets_repository_branch_workers_and_port_on_init_containers():
    git = {"GIT_SYNC_REPO": "", "GIT_SYNC_BRANCH": ""}  # a person's own; the sample needs none
    expected = {
        "pytorch": {"git-clone": git},
        "tensorflow": {
            "tf-config-generator": {"NUM_WORKERS": "3", "TF_PORT": "2333"},
            "git-clone": git,
        },
    }
    for folder, inits in expected.items():
        override = load(folder, "trainjob.yaml")["spec"]["podTemplateOverrides"][0]["spec"]
        found = {item["name"]: env_of(item) for item in override["initContainers"]}
        assert found == inits


@pytest.mark.req("M46", "M79")
def test_the_tensorflow_sample_has_a_place_for_data_and_wants_no_claim():
    override = load("tensorflow", "trainjob.yaml")["spec"]["podTemplateOverrides"][0]["spec"]
    assert by_name(override["volumes"], "datasets") == {"name": "datasets", "emptyDir": {}}
    assert {"name": "datasets", "mountPath": "/datasets"} in (
        override["containers"][0]["volumeMounts"]
    )


@pytest.mark.req("M34", "M35", "M60")
@pytest.mark.parametrize("folder", SECOND_GENERATION)
def test_the_gpu_variant_differs_in_name_gpus_and_size_only(folder):
    plain = load(folder, "trainjob.yaml")
    gpu = load(folder, "trainjob-gpu.yaml")
    assert gpu["metadata"].pop("name") == plain["metadata"].pop("name") + "-gpu"
    assert gpu["spec"]["trainer"].pop("env") == [{"name": "SAMPLES", "value": "60000"}]
    resources = gpu["spec"]["trainer"].pop("resourcesPerNode")
    plain["spec"]["trainer"].pop("resourcesPerNode")
    assert gpu == plain
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"


@pytest.mark.req("M85")
@pytest.mark.parametrize("folder", SECOND_GENERATION)
def test_the_script_a_sample_runs_is_in_this_repository(folder):
    assert (RUNTIMES.parents[2] / "runtimes" / folder / "train.py").is_file()


def test_both_generations_train_with_the_same_script():
    for first, second in (("pytorch-simple", "pytorch"), ("tensorflow-distributed", "tensorflow")):
        assert (RUNTIMES / first / "train.py").read_text() == (
            RUNTIMES / second / "train.py"
        ).read_text()


# Scripts


@pytest.mark.parametrize(
    "path",
    [*sorted(RUNTIMES.glob("*/*.yaml")), *sorted(ROOT.glob("samples/fsdp/*.yaml"))],
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_a_script_inside_a_yaml_file_is_the_file_it_is_a_copy_of(path):
    # To write them anew: make manifests
    assert path.read_text() == filled(path.read_text())


@pytest.mark.req("M77", "M78")
@pytest.mark.parametrize(
    ("folder", "container", "script"),
    [
        ("tensorflow-distributed", "tf-config-generator", "write_tf_config.sh"),
        ("tensorflow", "tf-config-generator", "write_tf_config.sh"),
        ("tensorflow", "git-clone", "git_clone.sh"),
        ("pytorch", "git-clone", "git_clone.sh"),
        ("pytorch", "setup", "write_pytorch_setup.sh"),
    ],
)
def test_an_init_container_runs_its_script_byte_for_byte(folder, container, script):
    command = by_name(pods(folder)[0]["initContainers"], container)["command"]
    assert command == ["sh", "-c", (SYSTEM / script).read_text()]


@pytest.mark.req("M47", "M75")
def test_the_scripts_of_pytorch_come_into_shared():
    (pod,) = pods("pytorch")
    assert {"name": "setup", "emptyDir": {}} in pod["volumes"]
    init = by_name(pod["initContainers"], "setup")
    assert init["volumeMounts"] == [{"name": "setup", "mountPath": "/shared"}]
    assert by_name(pod["containers"], "node")["volumeMounts"] == [
        {"name": "setup", "mountPath": "/shared", "readOnly": True}
    ]


@pytest.mark.parametrize(
    ("piece", "scripts"),
    [
        (
            "handover.sh",
            [
                "setup_pytorch_env.sh",
                "generate_tf_config.sh",
                "write_pytorch_setup.sh",
                "write_tf_config.sh",
            ],
        ),
        ("forward.py", ["write_pytorch_setup.sh", "write_tf_config.sh"]),
        ("setup_pytorch_env.sh", ["write_pytorch_setup.sh"]),
        ("tf_config.sh", ["generate_tf_config.sh", "write_tf_config.sh"]),
    ],
)
def test_a_shared_piece_is_the_same_in_every_script_that_is_delivered_alone(piece, scripts):
    # To write them anew: python tests/catalogue/inline.py
    text = (SYSTEM / piece).read_text()
    for script in scripts:
        assert text in (SYSTEM / script).read_text()


@pytest.mark.parametrize("folder", FOLDERS)
def test_kubernetes_leaves_every_command_as_it_is(folder):
    # Kubernetes reads $$ as $, and $(NAME) as a variable where there is one.
    commands = [item.get("command", []) for item in containers(folder)]
    commands.append(load(folder, "trainjob.yaml")["spec"]["trainer"]["command"])
    for text in (text for command in commands for text in command):
        assert "$$" not in text
        assert not re.search(r"\$\([A-Za-z_.-][\w.-]*\)", text)


@pytest.mark.parametrize("script", sorted(SYSTEM.glob("*.sh")), ids=lambda path: path.name)
def test_a_script_parses_in_the_shell_it_is_for(script):
    done = subprocess.run([dialect(script), "-n", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "script",  # tf_config.sh is a piece of two of them
    sorted(set(SYSTEM.glob("*.sh")) - {SYSTEM / "tf_config.sh"}),
    ids=lambda path: path.name,
)
def test_shellcheck_has_nothing_to_say(script):
    done = subprocess.run(
        [debian_program("shellcheck"), f"--shell={dialect(script)}", script],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")


def dialect(script: Path) -> str:
    """What is sourced by training shells is for bash; what init containers run, for any shell."""
    return "dash" if script.name.startswith(("write_", "git_", "tf_")) else "bash"
