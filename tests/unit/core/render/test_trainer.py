"""`spec.trainer`: command, processes, image, variables, resources."""

from __future__ import annotations

from typing import Any

import pytest

from astrago_trainer.core.platform import Platform, SystemScripts
from unit.core.builders import (
    PYTORCH_IMAGE,
    PYTORCH_PRELUDE,
    a_job_template,
    a_platform,
    a_runtime,
    a_spec,
)
from unit.core.render.common import COMMAND, Json, a_render, trainer_of


class TestProcesses:
    """X7: plain python is one process; launchers decide for themselves."""

    @pytest.mark.req("X7")
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param({}, 1, id="posted script"),
            pytest.param({"command": "python train.py"}, 1, id="python"),
            pytest.param({"command": "cd x && torchrun train.py"}, None, id="torchrun"),
            pytest.param({"command": "/opt/bin/torchrun x"}, None, id="torchrun with a path"),
            pytest.param({"command": "python -m torch.distributed.run x"}, None, id="module"),
            pytest.param({"command": "accelerate launch x.py"}, None, id="accelerate"),
            pytest.param({"command": "deepspeed x.py"}, None, id="deepspeed"),
            pytest.param({"argv": ["torchrun", "x.py"]}, None, id="torchrun without a shell"),
            pytest.param({"argv": ["python", "torchrun.py"]}, 1, id="a file of that name"),
            pytest.param({"command": "my-torchrun-like x"}, 1, id="another word"),
            pytest.param({"command": "torchrun x", "processes_per_node": 2}, 2, id="asked for"),
        ],
    )
    def test_the_number_says_the_truth(self, changes: Json, expected: int | None) -> None:
        assert trainer_of(a_render(**changes)).get("numProcPerNode") == expected

    def test_a_number_that_plain_python_does_not_reach_is_a_warning(self) -> None:
        rendered = a_render(processes_per_node=4)
        assert [(p.path, p.severity) for p in rendered.problems] == [
            ("processes_per_node", "warning")
        ]


class TestLauncher:
    """A posted script with a number of processes is started by ours, where the pod has it."""

    def platform(self, **changes: Any) -> Platform:
        scripts = SystemScripts(
            name="pytorch-pet-setup",
            volume="pytorch-pet-setup",
            sourced="setup_pytorch_env.sh",
            data={"setup_pytorch_env.sh": "", "launch.py": ""},
            framework="pytorch",
            launcher="launch.py",
        )
        own = {"pytorch-runtime": "source /shared/setup_pytorch_env.sh"}
        return a_platform(system_scripts=(scripts,), preludes=own, **changes)

    @pytest.mark.req("X7")
    @pytest.mark.parametrize("processes", [1, 4, "auto", "gpu"])
    def test_it_starts_as_many_as_were_asked_for(self, processes: int | str) -> None:
        rendered = a_render(
            processes_per_node=processes, args=["--x", "a b"], platform=self.platform()
        )
        trainer = trainer_of(rendered)
        assert trainer["command"] == [
            "bash",
            "-c",
            "source /shared/setup_pytorch_env.sh\n\n"
            'python /shared/launch.py -- /workspace/scripts/train.py "$@"',
        ]
        assert trainer["args"] == ["bash", "--x", "a b"]
        assert trainer["numProcPerNode"] == processes
        assert rendered.problems == ()

    @pytest.mark.req("M19", "M45")
    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            pytest.param({}, COMMAND, id="the form of M19"),
            pytest.param({"command": "python x.py"}, "python x.py", id="a command of the user's"),
            pytest.param({"argv": ["python", "x.py"]}, 'exec -- "$@"', id="words of the user's"),
        ],
    )
    def test_nothing_else_is_changed(self, changes: Json, text: str) -> None:
        processes = {"processes_per_node": 2} if changes else {}
        trainer = trainer_of(a_render(**changes, **processes, platform=self.platform()))
        assert trainer["command"][2] == f"source /shared/setup_pytorch_env.sh\n\n{text}"

    def test_a_runtime_without_it_says_that_one_process_runs(self) -> None:
        rendered = a_render(
            processes_per_node=2, runtime=a_runtime("pytorch-runtime"), platform=self.platform()
        )
        assert "launch.py" not in trainer_of(rendered)["command"][2]
        assert [problem.path for problem in rendered.problems] == ["processes_per_node"]


class TestCommand:
    @pytest.mark.req("M45")
    @pytest.mark.parametrize(
        "command",
        [
            "echo 'a' \"b\" `c` \\ ; exit 3 # done",
            'if [ "$RANK" = 0 ]; then\n  python a.py "${ARGS[@]}"\nfi\n',
            "echo $(date) ${HOME} $HOME $? $! $",
            "  leading and trailing  ",
        ],
    )
    def test_the_users_text_is_not_changed(self, command: str) -> None:
        assert trainer_of(a_render(command=command))["command"] == [
            "bash",
            "-c",
            f"{PYTORCH_PRELUDE}\n{command}",
        ]

    @pytest.mark.req("M45")
    @pytest.mark.parametrize(
        ("command", "written"),
        [
            pytest.param("echo $$", "echo $$$$", id="process number"),
            pytest.param("echo $(EPOCHS)", "echo $$(EPOCHS)", id="variable of a service"),
            pytest.param("echo $(epochs)", "echo $$(epochs)", id="variable of the request"),
            pytest.param("echo $(own)", "echo $$(own)", id="variable of the runtime"),
            pytest.param("echo $(other)", "echo $(other)", id="a command"),
            pytest.param("echo $(echo $$)", "echo $(echo $$)", id="inside another"),
        ],
    )
    def test_what_kubernetes_would_replace_is_escaped(self, command: str, written: str) -> None:
        container = {"name": "node", "env": [{"name": "own", "value": "1"}]}
        rendered = a_render(
            command=command,
            env=[{"name": "epochs", "value": "1"}],
            runtime=a_runtime("pytorch-simple", a_job_template(containers=[container])),
        )
        assert trainer_of(rendered)["command"][2].endswith(f"\n\n{written}")

    @pytest.mark.req("M19")
    @pytest.mark.parametrize(
        ("changes", "text", "arguments"),
        [
            pytest.param({}, COMMAND, None, id="train.py"),
            pytest.param(
                {"args": ["--x", "a b", "$(id)"]},
                f'{COMMAND} "$@"',
                ["bash", "--x", "a b", "$(id)"],
                id="arguments",
            ),
            pytest.param(
                {"code": {"files": {"pkg/main.py": ""}, "entrypoint": "pkg/main.py"}},
                "python /workspace/scripts/pkg/main.py",
                None,
                id="another file",
            ),
            pytest.param(
                {"argv": ["python", "-c", "print('$x')"]},
                'exec -- "$@"',
                ["bash", "python", "-c", "print('$x')"],
                id="without a shell",
            ),
        ],
    )
    def test_users_values_are_arguments_and_never_shell(
        self, changes: Json, text: str, arguments: list[str] | None
    ) -> None:
        trainer = trainer_of(a_render(**changes))
        assert trainer["command"][2] == f"{PYTORCH_PRELUDE}\n{text}"
        assert trainer.get("args") == arguments

    def test_arguments_of_the_runtime_do_not_stay(self) -> None:
        container = {"name": "node", "args": ["--from-the-runtime"]}
        runtime = a_runtime("pytorch-simple", a_job_template(containers=[container]))
        assert trainer_of(a_render(runtime=runtime))["args"] == []

    def test_a_folder_to_run_in_travels_as_a_variable(self) -> None:
        trainer = trainer_of(a_render(working_dir="/data/a b; rm -rf $HOME"))
        assert trainer["command"][2] == (
            f'{PYTORCH_PRELUDE}cd -- "$ASTRAGO_WORKING_DIR" || exit 1\n\n{COMMAND}'
        )
        assert trainer["env"] == [
            {"name": "ASTRAGO_WORKING_DIR", "value": "/data/a b; rm -rf $HOME"}
        ]

    def test_the_places_of_checkpoints_travel_as_variables(self) -> None:
        trainer = trainer_of(
            a_render(checkpoints="/data/run 7", resume_from="/data/$(HOME)/step-3")
        )
        attempt = {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}
        assert trainer["env"] == [
            {"name": "ASTRAGO_CHECKPOINT_DIR", "value": "/data/run 7"},
            {"name": "ASTRAGO_RESUME_FROM", "value": "/data/$$(HOME)/step-3"},
            {"name": "ASTRAGO_ATTEMPT", "valueFrom": {"fieldRef": attempt}},
        ]
        assert trainer["command"][2] == (
            f'{PYTORCH_PRELUDE}mkdir -p -- "$ASTRAGO_CHECKPOINT_DIR" || exit 1\n\n{COMMAND}'
        )

    def test_values_of_variables_are_not_expanded(self) -> None:
        env = [{"name": "A", "value": "pa$$word"}, {"name": "B", "value": "$(A)/x$y"}]
        assert trainer_of(a_render(env=env))["env"] == [
            {"name": "A", "value": "pa$$$$word"},
            {"name": "B", "value": "$$(A)/x$y"},
        ]

    def test_secrets_and_configmaps_are_referred_to(self) -> None:
        env = [
            {"name": "TOKEN", "secret": {"name": "hub", "key": "token"}},
            {"name": "MODE", "config_map": {"name": "settings", "key": "mode"}},
        ]
        assert trainer_of(a_render(env=env))["env"] == [
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        ]

    def test_no_prelude_no_blank_line(self) -> None:
        rendered = a_render(command="x", platform=Platform())
        assert trainer_of(rendered)["command"] == ["bash", "-c", "x"]


class TestResources:
    @pytest.mark.req("M34", "M35", "M49", "M60", "X8")
    @pytest.mark.parametrize(
        ("resources", "expected"),
        [
            pytest.param(
                {"cpu": "4", "memory": "8Gi", "gpus": 0},
                {
                    "limits": {"cpu": "4", "memory": "8Gi"},
                    "requests": {"cpu": "4", "memory": "8Gi"},
                },
                id="limits are requested",
            ),
            pytest.param(
                {"cpu": {"request": "2"}},
                {"requests": {"cpu": "2"}},
                id="a request alone may burst",
            ),
            pytest.param(
                {"gpus": 2, "gpu_resource": "amd.com/gpu"},
                {"limits": {"amd.com/gpu": "2"}, "requests": {"amd.com/gpu": "2"}},
                id="another kind of GPU",
            ),
            pytest.param({}, None, id="nothing asked"),
        ],
    )
    def test_requests_are_always_set_and_no_gpu_is_no_key(
        self, resources: Json, expected: Json | None
    ) -> None:
        assert trainer_of(a_render(resources=resources)).get("resourcesPerNode") == expected

    @pytest.mark.req("M67")
    def test_what_the_request_leaves_open_is_the_runtimes(self) -> None:
        container = {
            "name": "node",
            "resources": {
                "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
                "requests": {"cpu": "1", "ephemeral-storage": "1Gi"},
            },
        }
        runtime = a_runtime("pytorch-simple", a_job_template(containers=[container]))
        rendered = a_render(resources={"cpu": "8"}, runtime=runtime)
        assert trainer_of(rendered)["resourcesPerNode"] == {
            "limits": {"cpu": "8", "memory": "4Gi"},
            "requests": {"cpu": "8", "ephemeral-storage": "1Gi"},
        }
        assert rendered.problems == ()

    def test_gpus_that_the_runtime_brings_are_a_warning_where_they_stay(self) -> None:
        container = {"name": "node", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        runtime = a_runtime("pytorch-simple", a_job_template(containers=[container]))
        for version, cpu, stays in (("2.1", "1", False), ("2.3", "1", True), ("2.1", None, True)):
            rendered = a_render(
                resources={} if cpu is None else {"cpu": cpu},
                runtime=runtime,
                platform=a_platform(trainer_version=version),
            )
            warnings = [p.path for p in rendered.problems if p.severity == "warning"]
            assert warnings == ["resources.gpus"] * stays


class TestImage:
    @pytest.mark.req("M21", "X1", "X23")
    @pytest.mark.parametrize(
        ("runtime", "image", "expected"),
        [
            pytest.param("pytorch-simple", None, PYTORCH_IMAGE, id="default runtime"),
            pytest.param("torch-distributed", None, None, id="another brings its own"),
            pytest.param("torch-distributed", "a/b:1", "a/b:1", id="asked for"),
        ],
    )
    def test_the_platforms_image_goes_with_its_runtime(
        self, runtime: str, image: str | None, expected: str | None
    ) -> None:
        rendered = a_render(image=image, runtime=a_runtime(runtime))
        assert trainer_of(rendered).get("image") == expected

    @pytest.mark.req("X1", "M44")
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"framework": "pytorch"}, "pytorch-simple"),
            ({"framework": "tensorflow"}, "tensorflow-distributed"),
            ({"framework": "horovod"}, "horovod-runtime"),
            ({"framework": "pytorch", "runtime": "mine"}, "mine"),
            ({"code": {"git": {"url": "https://h/a"}}}, "pytorch-runtime"),
            ({"code": {"git": {"url": "https://h/a"}}, "runtime": "mine"}, "mine"),
        ],
    )
    def test_a_framework_means_a_runtime(self, changes: Json, expected: str) -> None:
        spec = a_spec(**changes)
        has_git = spec.code is not None and spec.code.git is not None
        chosen = a_platform().runtime_for(
            spec.framework, runtime=spec.runtime, has_git_code=has_git
        )
        assert chosen == expected
