"""What each part of the operator adds, in the versions that have it."""

from __future__ import annotations

import pytest

from astrago_trainer.core.merge import merge
from builders import a_container, a_job, a_runtime, a_trainjob, container_of, env_of, pod_of

VERSIONS = ("2.1", "2.2", "2.3")
MPI = {"numProcPerNode": 1, "mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh"}


def objects(runtime, trainjob, version="2.1"):
    outcome = merge(runtime, trainjob, version)
    assert outcome.problems == ()
    return outcome.objects


@pytest.mark.req("M123")
@pytest.mark.parametrize("version", VERSIONS)
def test_torch_sets_the_pet_variables(version):
    job_set = objects(a_runtime(), a_trainjob(trainer={"numNodes": 3}), version)[0]

    container = container_of(job_set)
    assert env_of(container) == {
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "1",
        "PET_NODE_RANK": None,
        "PET_MASTER_ADDR": "job-node-0-0.job",
        "PET_MASTER_PORT": "29500",
    }
    assert container["ports"] == [{"containerPort": 29500}]
    job_spec = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job_spec["parallelism"], job_spec["completions"]) == (3, 3)


@pytest.mark.req("M123")
@pytest.mark.parametrize(
    ("resources", "wanted", "expected"),
    [
        pytest.param({}, None, "1", id="nothing known"),
        pytest.param({"requests": {"cpu": "1500m"}}, None, "2", id="CPUs are rounded up"),
        pytest.param({"limits": {"cpu": "4"}}, None, "4", id="the limit counts without a request"),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "2"}}, None, "auto", id="a GPU leaves auto to torchrun"
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "0"}, "requests": {"cpu": "3"}},
            None,
            "3",
            id="no GPU is none",
        ),
        pytest.param(
            {"limits": {"nvidia.com/mig-1g.5gb": "1"}}, None, "1", id="a MIG slice is no GPU to it"
        ),
        pytest.param({"limits": {"nvidia.com/gpu": "2"}}, "cpu", "1", id="cpu never counts GPUs"),
        pytest.param({"limits": {"nvidia.com/gpu": "2"}}, "gpu", "gpu", id="gpu stays as it is"),
        pytest.param({"limits": {"nvidia.com/gpu": "2"}}, 4, "4", id="a number stays as it is"),
    ],
)
def test_processes_per_node_follow_from_the_resources(resources, wanted, expected):
    trainer = {
        "resourcesPerNode": resources,
        **({} if wanted is None else {"numProcPerNode": wanted}),
    }

    container = container_of(objects(a_runtime(), a_trainjob(trainer=trainer))[0])

    assert env_of(container)["PET_NPROC_PER_NODE"] == expected


def test_without_spec_trainer_nothing_is_set():
    assert "env" not in container_of(objects(a_runtime(), a_trainjob())[0])


def test_an_unnamed_port_of_the_runtime_is_overwritten():
    runtime = a_runtime(a_job(pod={"containers": [a_container(ports=[{"containerPort": 8080}])]}))

    assert container_of(objects(runtime, a_trainjob(trainer={}))[0])["ports"] == [
        {"containerPort": 29500}
    ]


@pytest.mark.req("M124")
def test_a_runtime_without_a_framework_gets_no_variables():
    job_set = objects(
        a_runtime(policy={"numNodes": 1}),
        a_trainjob(trainer={"numNodes": 2, "env": [{"name": "A"}]}),
    )[0]

    assert env_of(container_of(job_set)) == {"A": ""}
    assert job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == 2


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.1", {"limits": {"memory": "2Gi"}}),
        ("2.2", {"limits": {"memory": "2Gi"}}),
        ("2.3", {"limits": {"memory": "2Gi", "nvidia.com/gpu": "4"}, "requests": {"cpu": "1"}}),
    ],
)
def test_resources_replace_until_2_2_and_merge_in_2_3(version, expected):
    resources = {"limits": {"memory": "1Gi", "nvidia.com/gpu": "4"}, "requests": {"cpu": "1"}}
    runtime = a_runtime(a_job(pod={"containers": [a_container(resources=resources)]}))

    job_set = objects(
        runtime, a_trainjob(trainer={"resourcesPerNode": {"limits": {"memory": "2Gi"}}}), version
    )[0]

    assert container_of(job_set)["resources"] == expected
    # the operator of 2.3 still looks at the TrainJob's resources alone here, and sees no GPU
    assert env_of(container_of(job_set))["PET_NPROC_PER_NODE"] == "1"


@pytest.mark.parametrize("field", ["command", "args"])
def test_an_empty_list_takes_the_runtimes_words_away(field):
    runtime = a_runtime(a_job(pod={"containers": [a_container(**{field: ["x"]})]}))

    kept = container_of(objects(runtime, a_trainjob(trainer={}))[0])
    cleared = container_of(objects(runtime, a_trainjob(trainer={field: []}))[0])

    assert kept[field] == ["x"]
    assert field not in cleared


@pytest.mark.parametrize("version", VERSIONS)
def test_mpi_makes_keys_and_a_host_file(version):
    policy = {"numNodes": 1, "mpi": {**MPI, "runLauncherAsNode": True}}
    runtime = a_runtime(a_job("launcher"), a_job("node", None), policy=policy)

    job_set, secret, hostfile = objects(
        runtime, a_trainjob(trainer={"numNodes": 3, "numProcPerNode": 2}), version
    )

    assert (secret["kind"], secret["type"], sorted(secret["data"])) == (
        "Secret",
        "kubernetes.io/ssh-auth",
        ["ssh-privatekey", "ssh-publickey"],
    )
    assert hostfile["data"]["hostfile"].splitlines() == [
        "job-launcher-0-0.job slots=2",
        "job-node-0-0.job slots=2",
        "job-node-0-1.job slots=2",
    ]
    assert env_of(container_of(job_set, 0))["OMPI_MCA_orte_set_default_slots"] == "2"
    assert [m["mountPath"] for m in container_of(job_set, 0)["volumeMounts"]] == [
        "/root/.ssh",
        "/etc/mpi",
    ]
    assert [v["name"] for v in pod_of(job_set, 1)["volumes"]] == ["mpi-ssh-auth"]


def test_mpi_takes_the_gpus_as_slots_where_the_runtime_says_one():
    policy = {"numNodes": 1, "mpi": MPI}
    runtime = a_runtime(a_job("launcher"), a_job("node", None), policy=policy)
    trainer = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}}

    hostfile = objects(runtime, a_trainjob(trainer=trainer))[2]

    assert hostfile["data"]["hostfile"] == "job-node-0-0.job slots=4\n"


def test_a_host_file_for_two_thousand_million_pods_is_refused_and_not_made():
    policy = {"numNodes": 1, "mpi": MPI}
    runtime = a_runtime(a_job("launcher"), a_job("node", None), policy=policy)

    outcome = merge(runtime, a_trainjob(trainer={"numNodes": 2**31 - 1}))

    assert [problem.code for problem in outcome.problems] == ["NotSupported"]


@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_jax_and_xgboost_get_their_variables_from_2_2_on(version):
    jax = objects(a_runtime(policy={"jax": {}}), a_trainjob(trainer={"numNodes": 2}), version)[0]
    trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}}
    xgboost = objects(a_runtime(policy={"xgboost": {}}), a_trainjob(trainer=trainer), version)[0]

    assert env_of(container_of(jax)) == {
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": None,
        "JAX_COORDINATOR_ADDRESS": "job-node-0-0.job:29500",
    }
    assert env_of(container_of(xgboost)) == {
        "DMLC_TRACKER_URI": "job-node-0-0.job",
        "DMLC_TRACKER_PORT": "29500",
        "DMLC_TASK_ID": None,
        "DMLC_NUM_WORKER": "8",
    }


def test_env_injection_reaches_init_containers_in_2_3():
    policy = {
        "torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["check"]}]}}
    }
    runtime = a_runtime(a_job(pod={"initContainers": [a_container("check")]}), policy=policy)

    job_set = objects(runtime, a_trainjob(trainer={}), "2.3")[0]

    assert env_of(pod_of(job_set)["initContainers"][0])["PET_MASTER_ADDR"] == "job-node-0-0.job"


@pytest.mark.parametrize(
    ("args", "gpus", "expected"),
    [
        pytest.param(
            [],
            "1",
            ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device"],
            id="one",
        ),
        pytest.param(
            ["model.lora_attn_modules=[q]"],
            "2",
            ["lora_finetune_distributed", "--config", "llama3_2/1B_lora"],
            id="LoRA on two GPUs",
        ),
        pytest.param(
            ["model.quantize_base=True", "model.use_dora=True"],
            "2",
            ["full_finetune_distributed", "--config", "llama3_2/1B_full"],
            id="DoRA is no QLoRA",
        ),
    ],
)
def test_torchtune_completes_its_command(args, gpus, expected):
    fixed = ["tune", "run", "output_dir=/out", "batch=2", "tokenizer.path=/tok"]
    runtime = a_runtime(
        a_job(pod={"containers": [a_container(command=fixed)]}), name="torchtune-llama3.2-1b"
    )
    trainjob = a_trainjob(
        trainer={
            "command": ["tune", "run"],
            "args": args,
            "numNodes": 1,
            "numProcPerNode": "auto",
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": gpus}},
        }
    )
    trainjob["spec"]["runtimeRef"]["name"] = "torchtune-llama3.2-1b"

    command = container_of(objects(runtime, trainjob)[0])["command"]

    rendezvous = [] if gpus == "1" else ["--rdzv_endpoint=job-node-0-0.job:29500"]
    assert command == [
        "tune",
        "run",
        *rendezvous,
        *expected,
        "output_dir=/out",
        "tokenizer.path=/tok",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_initializers_take_uri_env_and_secret(version):
    mount = {"volumeMounts": [{"name": "initializer", "mountPath": "/workspace"}]}
    job = a_job(
        "dataset-initializer",
        "dataset-initializer",
        pod={"containers": [a_container("dataset-initializer", **mount)]},
    )
    wanted = {
        "storageUri": "hf://x",
        "env": [{"name": "A", "value": "1"}],
        "secretRef": {"name": "s"},
    }

    job_set = objects(
        a_runtime(job, a_job()), a_trainjob(trainer={}, initializer={"dataset": wanted}), version
    )[0]

    container = container_of(job_set)
    assert env_of(container) == {"STORAGE_URI": "hf://x", "A": "1"}
    assert container["envFrom"] == [{"secretRef": {"name": "s"}}]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.1", {"cpu": "2", "memory": "3Gi"}),
        ("2.2", {"cpu": "6"}),
        ("2.3", {"cpu": "6", "memory": "3Gi"}),
    ],
)
def test_a_gang_counts_all_pods_and_what_the_version_knows_of_their_resources(version, expected):
    resources = {"requests": {"cpu": "1", "memory": "1.5Gi"}}
    runtime = a_runtime(
        a_job(pod={"containers": [a_container(resources=resources)]}),
        podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 30}},
    )
    trainer = {"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "3"}}}

    job_set, group = objects(runtime, a_trainjob(trainer=trainer), version)

    assert group["spec"] == {"minMember": 2, "minResources": expected, "scheduleTimeoutSeconds": 30}
    labels = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"][
        "labels"
    ]
    assert labels == {"scheduling.x-k8s.io/pod-group": "job"}


def test_suspend_is_passed_on_and_left_out_when_nobody_says():
    assert objects(a_runtime(), a_trainjob(suspend=True))[0]["spec"]["suspend"] is True
    assert "suspend" not in objects(a_runtime(), a_trainjob())[0]["spec"]


def test_flux_is_said_to_be_out_of_reach():
    outcome = merge(a_runtime(policy={"flux": {}}), a_trainjob(trainer={}), "2.2")

    assert [problem.code for problem in outcome.problems] == ["NotSupported"]


def test_a_null_in_a_list_is_the_zero_value_of_its_type():
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [None]}}]
    runtime = a_runtime(
        a_job(pod={"containers": [a_container(args=[None], restartPolicyRules=rules)]})
    )

    container = container_of(objects(runtime, a_trainjob())[0])

    assert container["args"] == [""]
    assert container["restartPolicyRules"][0]["exitCodes"]["values"] == [0]
