"""The files, scripts and manifests of the documents, as this repository has them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from astrago_trainer.core.preview import preview_pair
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.core.spec.check import check_job_spec
from catalogue.shells import plain_env, run
from tests.seeds.bodies import missing
from tests.seeds.documents import ROOT, fingerprint, tidy
from tests.seeds.steps import Step, read

Json = dict[str, Any]
INTEGRATION = ROOT / "kubeflow-training-integration"
STEPS = {step.id: step for name in ("S0", "S1", "S2", "S3", "S4") for step in read(name).steps}
FILES = {
    "pytorch/pytorch-pet-setup.yaml": "ConfigMap",
    "pytorch/pytorch-runtime-simple.yaml": "ClusterTrainingRuntime",
    "pytorch/pytorch-train-script-configmap.yaml": "ConfigMap",
    "pytorch/pytorch-distributed-with-configmap.yaml": "TrainJob",
    "tensorflow/tensorflow-tf-config-generator.yaml": "ConfigMap",
    "tensorflow/tensorflow-runtime.yaml": "ClusterTrainingRuntime",
    "tensorflow/tensorflow-train-script-configmap.yaml": "ConfigMap",
    "tensorflow/tensorflow-distributed-with-configmap.yaml": "TrainJob",
}
PET = {
    "PET_NODE_RANK": "1",
    "PET_NNODES": "2",
    "PET_MASTER_ADDR": "job-node-0-0.job",
    "PET_MASTER_PORT": "29500",
}
TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")
WORKER = {"HOSTNAME": "job-node-0-1", "JOB_COMPLETION_INDEX": "1", "NAMESPACE": "user-123"}


def load(path: Path) -> Json:
    """The first object of a file."""
    found: Json = next(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    return found


def data(id: str) -> Any:
    return deepcopy(STEPS[id].data)


def shared(file: str, folder: Path) -> Path:
    """The files of a System ConfigMap, as a pod sees them below /shared."""
    for name, text in load(INTEGRATION / file)["data"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def environment(lines: str, names: tuple[str, ...], env: dict[str, str]) -> dict[str, str | None]:
    """The variables that a process has after these lines of bash."""
    show = "python -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    done = run(["bash", "-c", f"{lines}\n{show}"], plain_env(**env))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found.get(name) for name in names}


def typed(first: str, last: str) -> list[Step]:
    """The steps from the first to the last, of one document."""
    ids = list(STEPS)
    return [STEPS[each] for each in ids[ids.index(first) : ids.index(last) + 1]]


def lines(first: str, last: str) -> str:
    return "\n".join(step.type for step in typed(first, last))


def pod_of(trainjob: Json, runtime: Json) -> Json:
    """The pods that come of the two, which nothing refuses."""
    preview = preview_pair(runtime, trainjob)
    assert not preview.is_refused, preview.problems
    (job,) = preview.objects[0]["spec"]["replicatedJobs"]
    found: Json = job["template"]["spec"]["template"]["spec"]
    return found


# --- layout


@pytest.mark.seeds("S0-03", "S0-04")
@pytest.mark.req("M9", "M140")
def test_the_eight_files_of_the_first_document_have_their_names_and_kinds():
    assert (INTEGRATION / "README.md").is_file()
    assert {name: load(INTEGRATION / name)["kind"] for name in FILES} == FILES


@pytest.mark.seeds("S2-02")
@pytest.mark.req("M64", "M140")
def test_the_layout_of_the_overview_is_ours():
    names = [
        "README.md",
        ".gitignore",
        "docs/backend-guide.md",
        *(f"docs/ui-mockups/{each}" for each in ("index.html", "horovod.svg", "training-operator.svg")),
        *(
            f"runtimes/{framework}/{each}"
            for framework in ("pytorch", "tensorflow")
            for each in ("runtime.yaml", "trainjob.yaml", "train.py")
        ),
        "scripts/merge_preview.py",
    ]  # fmt: skip

    assert [name for name in names if not (ROOT / name).is_file()] == []


# --- scripts that are sourced


@pytest.mark.seeds("S0-09", "S0-10", "S0-11", "S0-12", "S0-13")
@pytest.mark.seeds("S1-09", "S1-10", "S1-11", "S1-12", "S1-13")
@pytest.mark.parametrize(("first", "last"), [("S0-09", "S0-13"), ("S1-09", "S1-13")])
def test_our_setup_exports_what_the_lines_of_the_documents_export(first, last, tmp_path):
    script = shared("pytorch/pytorch-pet-setup.yaml", tmp_path) / "setup_pytorch_env.sh"

    expected = environment(lines(first, last), TORCH, PET)
    assert None not in expected.values()
    assert environment(f"source {script}", TORCH, PET) == expected


@pytest.mark.seeds("S0-14", "S0-15", "S0-17", "S0-18")
@pytest.mark.parametrize(
    ("file", "first", "last"),
    [
        ("pytorch/pytorch-distributed-with-configmap.yaml", "S0-14", "S0-15"),
        ("tensorflow/tensorflow-distributed-with-configmap.yaml", "S0-17", "S0-18"),
    ],
)
def test_the_sample_jobs_run_the_commands_of_the_document_and_no_others(file, first, last):
    shell, option, text = load(INTEGRATION / file)["spec"]["trainer"]["command"]

    assert (shell, option) == ("bash", "-c")
    found = [line.strip() for line in text.splitlines() if line.strip()]
    assert found == [step.type for step in typed(first, last)]


@pytest.mark.seeds("S0-16", "S2-15")
def test_tf_config_lists_all_workers_and_says_which_one_this_is(tmp_path):
    folder = shared("tensorflow/tensorflow-tf-config-generator.yaml", tmp_path)
    source = f"source {folder / 'generate_tf_config.sh'}"

    found = environment(source, ("TF_CONFIG",), {**WORKER, "PET_NNODES": "2"})["TF_CONFIG"]
    config = json.loads(found or "")
    assert config["task"] == {"type": "worker", "index": 1}
    hosts = [f"job-node-0-{index}.job.user-123.svc.cluster.local:2222" for index in (0, 1)]
    assert config["cluster"] == {"worker": hosts}
    other = environment(source, ("TF_CONFIG",), {**WORKER, "NUM_WORKERS": "2", "TF_PORT": "2333"})
    assert ":2333" in (other["TF_CONFIG"] or "")


@pytest.mark.seeds("S1-14", "S1-15")
def test_the_init_container_leaves_what_the_lines_of_the_document_read(tmp_path):
    runtime = load(INTEGRATION / "tensorflow/tensorflow-runtime.yaml")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    generator = next(
        each for each in pod["initContainers"] if each["name"] == "tf-config-generator"
    )
    file = tmp_path / "tf_config.env"
    env = plain_env(**WORKER, PET_NNODES="2", TF_CONFIG_FILE=str(file))
    made = run(generator["command"] + generator.get("args", []), env, cwd=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr

    text = lines("S1-14", "S1-15").replace("/shared-env/tf_config.env", str(file))
    shown = run(["bash", "-c", text], plain_env())

    assert (shown.returncode, shown.stderr) == (0, "")
    config = json.loads(shown.stdout.splitlines()[-1].removeprefix("TF_CONFIG: "))
    assert (len(config["cluster"]["worker"]), config["task"]["index"]) == (2, 1)
    for container in pod["containers"]:
        assert "/shared-env" in [each["mountPath"] for each in container["volumeMounts"]]


# --- parts of manifests


@pytest.mark.seeds("S0-19")
def test_the_tensorflow_job_has_the_number_of_workers_in_its_variables():
    job = load(INTEGRATION / "tensorflow/tensorflow-distributed-with-configmap.yaml")
    trainer = job["spec"]["trainer"]
    (variable,) = data("S0-19")["trainer"]["env"]

    assert variable in trainer["env"]
    assert variable["value"] == str(trainer["numNodes"])


@pytest.mark.seeds("S0-53", "S1-33")
@pytest.mark.parametrize("step", ["S0-53", "S1-33"])
def test_the_role_of_the_documents_is_the_one_we_install(step):
    text = (ROOT / "deploy/roles.yaml").read_text(encoding="utf-8")
    roles = {role["metadata"]["name"]: role for role in yaml.safe_load_all(text)}
    wanted = data(step)
    found = roles[wanted["metadata"]["name"]]

    assert {key: found[key] for key in ("apiVersion", "kind", "rules")} == {
        key: wanted[key] for key in ("apiVersion", "kind", "rules")
    }


@pytest.mark.seeds("S0-54", "S0-55", "S1-34", "S1-35")
@pytest.mark.parametrize("step", ["S0-54", "S0-55", "S1-34", "S1-35"])
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_resources_of_the_documents_reach_the_pods(step, framework):
    names = {"pytorch": "pytorch-runtime-simple", "tensorflow": "tensorflow-runtime"}
    folder = INTEGRATION / framework
    job = load(folder / f"{framework}-distributed-with-configmap.yaml")
    wanted = data(step)["resourcesPerNode"]
    job["spec"]["trainer"]["resourcesPerNode"] = wanted

    (node,) = pod_of(job, load(folder / f"{names[framework]}.yaml"))["containers"]

    assert node["resources"] == wanted


@pytest.mark.seeds("S1-36", "S1-37", "S1-38")
@pytest.mark.parametrize("step", ["S1-36", "S1-37", "S1-38"])
def test_volumes_of_the_documents_reach_the_pods(step):
    job = load(INTEGRATION / "pytorch/pytorch-distributed-with-configmap.yaml")
    (volume,) = data(step)
    (override,) = job["spec"]["podTemplateOverrides"]
    others = [each for each in override["spec"]["volumes"] if each["name"] != volume["name"]]
    override["spec"]["volumes"] = [*others, volume]

    pod = pod_of(job, load(INTEGRATION / "pytorch/pytorch-runtime-simple.yaml"))

    assert volume in pod["volumes"]


@pytest.mark.seeds("S1-38")
def test_a_folder_of_the_node_is_the_administrators_to_allow():
    from unit.core.builders import a_platform

    (volume,) = data("S1-38")
    path = volume["hostPath"]["path"]
    spec = parse_job_spec(
        {
            "user": "user123",
            "namespace": "user-123",
            "framework": "pytorch",
            "nodes": 2,
            "code": {"inline": "print()"},
            "volumes": [{"name": volume["name"], "mount_path": "/data", "host_path": path}],
        }
    )

    (problem,) = check_job_spec(spec, a_platform())
    assert (problem.path, problem.code) == ("volumes[0].host_path", "FieldValueForbidden")
    assert check_job_spec(spec, a_platform(allowed_host_paths=(path,))) == ()


# --- the overview


@pytest.mark.seeds("S2-01")
@pytest.mark.parametrize(
    ("framework", "image"),
    [
        ("pytorch", "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"),
        ("tensorflow", "tensorflow/tensorflow:2.15.0-gpu"),
    ],
)
def test_the_runtimes_have_the_images_of_the_overview(framework, image):
    folder = ROOT / "runtimes" / framework
    pod = pod_of(load(folder / "trainjob.yaml"), load(folder / "runtime.yaml"))

    assert [each["image"] for each in pod["containers"] if each["name"] == "node"] == [image]


@pytest.mark.seeds("S2-03")
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_merge_preview_runs_under_a_plain_python3(framework):
    """As a person types it: with the python3 of the machine, which has none of our packages."""
    folder = f"runtimes/{framework}"
    path = os.pathsep.join(
        each for each in os.environ["PATH"].split(os.pathsep) if ".venv" not in Path(each).parts
    )
    python = shutil.which("python3", path=path)
    assert python is not None
    done = subprocess.run(
        [python, "scripts/merge_preview.py", "--runtime", f"{folder}/runtime.yaml",
         "--trainjob", f"{folder}/trainjob.yaml"],
        cwd=ROOT, env={"PATH": path, "HOME": os.environ["HOME"]}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("JobSet ")
    assert "git-clone" in done.stdout


@pytest.mark.seeds("S2-12")
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_finished_work_goes_after_a_day(framework):
    runtime = load(ROOT / "runtimes" / framework / "runtime.yaml")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]

    assert job["template"]["spec"]["ttlSecondsAfterFinished"] == 86400


@pytest.mark.seeds("S2-13")
def test_the_number_of_nodes_one_level_too_high_is_refused_with_its_place():
    runtime = load(ROOT / "runtimes/pytorch/runtime.yaml")
    spec = data("S2-13")["spec"]
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": spec,
    }

    (problem,) = (each for each in preview_pair(runtime, job).problems if each.severity == "error")
    assert problem.path == "spec.numNodes"
    assert "spec.trainer.numNodes" in problem.remedy
    trainer = {**spec["trainer"], "numNodes": spec["numNodes"]}
    mended = {**job, "spec": {"runtimeRef": spec["runtimeRef"], "trainer": trainer}}
    (node, *_) = pod_of(mended, runtime)["containers"]
    assert node["resources"]["limits"] == spec["trainer"]["resourcesPerNode"]["limits"]


@pytest.mark.seeds("S2-14")
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_the_code_of_a_job_comes_from_the_repository_of_the_overview_where_it_is_set(framework):
    folder = ROOT / "runtimes" / framework
    job = load(folder / "trainjob.yaml")
    (override,) = job["spec"]["podTemplateOverrides"]
    (wanted,) = data("S2-14")["initContainers"]
    own = {each["name"]: each for each in override["spec"]["initContainers"]}[wanted["name"]]
    assert [each["name"] for each in own["env"]] == [each["name"] for each in wanted["env"]]
    own["env"] = wanted["env"]

    pod = pod_of(job, load(folder / "runtime.yaml"))

    (clone,) = (each for each in pod["initContainers"] if each["name"] == wanted["name"])
    for variable in wanted["env"]:
        assert variable in clone["env"]


# --- the workshop


@pytest.mark.seeds("S3-07")
def test_python3_says_which_one_it_is():
    done = subprocess.run(STEPS["S3-07"].type.split(), capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout.startswith("Python 3.")) == (0, True)


@pytest.mark.seeds("S3-23")
def test_the_legacy_job_is_the_documents_but_for_its_placeholder():
    ours, wanted = load(ROOT / "kustomize/base/pytorch-dist-job.yaml"), data("S3-23")
    for job in (ours, wanted):
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            (container,) = replica["template"]["spec"]["containers"]
            (script,) = container.pop("args")
            assert "python /workspace/code/training.py" in script

    assert fingerprint("data", ours) == fingerprint("data", wanted)


@pytest.mark.seeds("S3-24")
def test_the_legacy_overlay_patches_what_the_documents_patches():
    ours, wanted = load(ROOT / "kustomize/overlays/ddp/kustomization.yaml"), data("S3-24")

    assert ours["resources"] == wanted["resources"]
    assert [each["target"] for each in ours["patches"]] == [
        each["target"] for each in wanted["patches"]
    ]
    for own, theirs in zip(ours["patches"], wanted["patches"], strict=True):
        patch, *others = yaml.safe_load(own["patch"])
        (expected,) = yaml.safe_load(theirs["patch"])
        assert {each["op"] for each in others} == {"add"}, "the code, in place of the clone"
        assert (patch["op"], patch["path"]) == (expected["op"], expected["path"])
        *_, folder, train = (tidy(line) for line in expected["value"].splitlines())
        assert folder in patch["value"].splitlines()
        assert patch["value"].splitlines()[-1] == f"exec {train}"


@pytest.mark.seeds("S4-10")
def test_the_job_of_the_trainer_workshop_is_previewed_and_our_sample_has_all_of_it():
    job = data("S4-10")
    upstream = yaml.safe_load_all((ROOT / "tests/golden/seeds/m103-t5.yaml").read_text("utf-8"))
    runtime = next(each for each in upstream if each["kind"] == "ClusterTrainingRuntime")

    pod = pod_of({**job, "metadata": {**job["metadata"], "namespace": "default"}}, runtime)

    (node,) = pod["containers"]
    assert {"name": "dshm", "mountPath": "/dev/shm"} in node["volumeMounts"]
    assert node["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert pod["nodeSelector"]["topology.kubernetes.io/zone"] == "ap-northeast-2a"
    del job["spec"]["trainer"]["command"]
    assert list(missing(job, load(ROOT / "samples/fsdp/trainjob.yaml"))) == []
