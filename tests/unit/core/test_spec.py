"""JobSpec: every rule with its message, all problems at once, and what the platform adds."""

from __future__ import annotations

from typing import Any

import pytest

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.spec import (
    Amount,
    JobSpec,
    check_job_spec,
    parse_job_spec,
)
from unit.core.builders import a_platform, a_request, a_spec

MIB = 1024 * 1024


def problems_of(**changes: Any) -> tuple[Problem, ...]:
    try:
        parse_job_spec(a_request(**changes))
    except InvalidRequest as error:
        return error.problems
    return ()


def found(problems: tuple[Problem, ...]) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in problems]


def test_the_smallest_request_is_valid() -> None:
    spec = parse_job_spec(a_request())
    assert spec.model_dump(exclude_defaults=True) == a_request()
    assert spec.nodes == 1


@pytest.mark.req("M37", "M52", "M53", "M70", "M106", "M107", "X19")
def test_a_request_may_hold_every_input_of_the_form() -> None:
    request = a_request(
        name="mnist",
        runtime="pytorch-simple",
        image="registry.example.org:5000/team/pytorch:2.2",
        nodes=2,
        processes_per_node="auto",
        resources={
            "cpu": {"request": "2", "limit": "4"},
            "memory": {"request": "8Gi", "limit": "16Gi"},
            "gpus": 1,
            "gpu_resource": "amd.com/gpu",
        },
        shared_memory="8Gi",
        env=[
            {"name": "EPOCHS", "value": "10"},
            {"name": "TOKEN", "secret": {"name": "hub", "key": "token"}},
            {"name": "MODE", "config_map": {"name": "settings", "key": "mode"}},
        ],
        volumes=[
            {"name": "data", "mount_path": "/data", "claim": "data-pvc", "read_only": True},
            {"name": "tmp", "mount_path": "/tmp", "empty_dir": {"medium": "Memory", "size": "1Gi"}},
            {"name": "cfg", "mount_path": "/cfg", "config_map": "cfg", "sub_path": "a/b"},
            {"name": "key", "mount_path": "/key", "secret": "key"},
            {"name": "host", "mount_path": "/host", "host_path": "/mnt/x"},
        ],
        code={"files": {"train.py": "x", "pkg/model.py": "y"}},
        args=["--epochs", "3"],
        working_dir="/workspace/scripts",
        max_restarts=3,
        ttl_seconds=60,
        active_deadline_seconds=3600,
        node_selector={"topology.kubernetes.io/zone": "a"},
        tolerations=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        labels={"team": "vision"},
        annotations={"example.org/note": "first try"},
        suspend=True,
    )
    spec = parse_job_spec(request)
    dumped = spec.model_dump(mode="json", exclude_unset=True)
    assert dumped == request


@pytest.mark.parametrize("field", sorted(JobSpec.model_fields))
def test_every_field_is_described(field: str) -> None:
    assert JobSpec.model_fields[field].description


def test_every_property_of_the_schema_is_described() -> None:
    schema = JobSpec.model_json_schema()
    models = [schema, *schema["$defs"].values()]
    bare = [
        (model["title"], name)
        for model in models
        for name, entry in model.get("properties", {}).items()
        if not entry.get("description")
    ]
    assert bare == []


@pytest.mark.parametrize("value", ["4", 4, {"limit": "4"}, {"limit": 4}])
def test_a_bare_amount_is_the_limit(value: Any) -> None:
    spec = a_spec(resources={"cpu": value})
    assert spec.resources.cpu == Amount(limit="4")


def test_all_problems_are_told_at_once() -> None:
    problems = problems_of(
        user="User",
        namespace=None,
        framework="jax",
        nodes=0,
        numNodes=2,
        resources={"cpu": {"request": "8", "limit": "4"}, "gpus": -1},
        env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        volumes=[{"name": "v", "mount_path": "data", "claim": "c", "secret": "s"}],
        command="x",
        argv=["y"],
        labels={"trainer.astrago.io/user": "other"},
    )
    assert sorted(found(problems)) == [
        ("argv", "FieldValueForbidden"),
        ("env[1].name", "FieldValueDuplicate"),
        ("framework", "FieldValueNotSupported"),
        ("labels.trainer.astrago.io/user", "FieldValueForbidden"),
        ("namespace", "FieldValueRequired"),
        ("nodes", "FieldValueInvalid"),
        ("numNodes", "FieldValueForbidden"),
        ("resources.cpu.request", "FieldValueInvalid"),
        ("resources.gpus", "FieldValueInvalid"),
        ("user", "FieldValueInvalid"),
        ("volumes[0]", "FieldValueForbidden"),
        ("volumes[0].mount_path", "FieldValueInvalid"),
    ]


@pytest.mark.parametrize(
    ("changes", "path", "code", "message"),
    [
        pytest.param(
            {"framework": "jax"},
            "framework",
            "FieldValueNotSupported",
            "must be 'pytorch', 'tensorflow' or 'horovod'; found 'jax'.",
            id="unknown framework",
        ),
        pytest.param(
            {"nodes": "2"},
            "nodes",
            "FieldValueTypeInvalid",
            "must be a whole number; found '2'.",
            id="number as text",
        ),
        pytest.param(
            {"nodes": True},
            "nodes",
            "FieldValueTypeInvalid",
            "must be a whole number; found true.",
            id="true is no number",
        ),
        pytest.param(
            {"nodes": 10**5000},
            "nodes",
            "FieldValueInvalid",
            "must be at most 2147483647; found a number with more than 30 digits.",
            id="number with 5000 digits",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": 10}]},
            "env[0].value",
            "FieldValueTypeInvalid",
            "must be text; found a number.",
            id="number as a variable, not repeated",
        ),
        pytest.param(
            {"env": [{"name": "EPOCHS=10", "value": ""}]},
            "env[0].name",
            "FieldValueInvalid",
            "must be a name alone; found '=' in it, after 'EPOCHS'.",
            id="name=value in the name",
        ),
        pytest.param(
            {"env": [{"name": "A"}]},
            "env[0]",
            "FieldValueRequired",
            "exactly one of value, secret, config_map must be given; found none.",
            id="variable without a value",
        ),
        pytest.param(
            {"resources": {"memory": {"request": "32Gi", "limit": "16Gi"}}},
            "resources.memory.request",
            "FieldValueInvalid",
            "must not be more than the limit 16Gi; found 32Gi.",
            id="request above limit",
        ),
        pytest.param(
            {"resources": {"cpu": "four"}},
            "resources.cpu.limit",
            "FieldValueInvalid",
            "'four' is no quantity: a number with an optional suffix such as 500m, 2, 1.5Gi or 16G "
            "is expected.",
            id="no quantity",
        ),
        pytest.param(
            {"resources": {"cpu": "-1"}},
            "resources.cpu.limit",
            "FieldValueInvalid",
            "must not be negative; found '-1'.",
            id="negative quantity",
        ),
        pytest.param(
            {"shared_memory": "0"},
            "shared_memory",
            "FieldValueInvalid",
            "must be more than 0; found '0'.",
            id="no shared memory",
        ),
        pytest.param(
            {"shared_memory": "1e-9"},
            "shared_memory",
            "FieldValueInvalid",
            "must be at least 1 byte; found '1e-9'.",
            id="less shared memory than a byte",
        ),
        pytest.param(
            {"resources": {"cpu": 0}},
            "resources.cpu.limit",
            "FieldValueInvalid",
            "must be more than 0; found '0'.",
            id="no CPU",
        ),
        pytest.param(
            {"resources": {"memory": {"request": "0Gi"}}},
            "resources.memory.request",
            "FieldValueInvalid",
            "must be more than 0; found '0Gi'.",
            id="no memory",
        ),
        pytest.param(
            {"code": {"inline": "a\0b"}},
            "code.inline",
            "FieldValueInvalid",
            "must not hold a NUL character; found one at 1.",
            id="NUL",
        ),
        pytest.param(
            {"code": {"inline": "a\ud800"}},
            "code.inline",
            "FieldValueInvalid",
            "must be Unicode text; found half of a surrogate pair at 1.",
            id="lone surrogate",
        ),
        pytest.param(
            {"processes_per_node": "many"},
            "processes_per_node",
            "FieldValueNotSupported",
            "must be a number from 1 to 1024, or auto, cpu or gpu.",
            id="processes",
        ),
        pytest.param(
            {"code": None},
            "command",
            "FieldValueRequired",
            "there is nothing to run: neither code nor a command was given.",
            id="nothing to run",
        ),
        pytest.param(
            {"code": {"files": {"main.py": "x"}}},
            "code.entrypoint",
            "FieldValueInvalid",
            "must be one of the files; found 'train.py'.",
            id="entry point is missing",
        ),
        pytest.param(
            {"launcher": {"cpu": "1"}},
            "launcher",
            "FieldValueForbidden",
            "only horovod jobs have a launcher; found framework pytorch.",
            id="launcher without MPI",
        ),
        pytest.param(
            {"service_account": "admin"},
            "service_account",
            "FieldValueForbidden",
            "there is no such field.",
            id="service accounts are not for users",
        ),
    ],
)
def test_a_broken_rule_says_what_was_expected_and_found(
    changes: dict[str, Any], path: str, code: str, message: str
) -> None:
    (problem,) = problems_of(**changes)
    assert (problem.path, problem.code, problem.message) == (path, code, message)


def test_an_unknown_field_is_offered_the_right_spelling() -> None:
    (problem,) = problems_of(Max_Restarts=3)
    assert problem.remedy == "Did you mean max_restarts?"


@pytest.mark.req("M39", "M127")
def test_a_reserved_variable_is_refused_with_the_reason() -> None:
    problems = problems_of(
        framework="tensorflow",
        env=[{"name": "TF_CONFIG", "value": "{}"}, {"name": "RANK", "value": "0"}],
    )
    assert found(problems) == [("env[0].name", "FieldValueForbidden")]


@pytest.mark.req("X12")
@pytest.mark.parametrize("port", ["0", "80", "65536", "x", "99999999999", "²"])
def test_a_tensorflow_port_must_be_a_port(port: str) -> None:
    problems = problems_of(framework="tensorflow", env=[{"name": "TF_PORT", "value": port}])
    assert found(problems) == [("env[0].value", "FieldValueInvalid")]


class TestSizes:
    """Limits of Linux and Kubernetes, to the byte (T16)."""

    @pytest.mark.parametrize("text", ["x" * MIB, "é" * (MIB // 2)], ids=["ascii", "two bytes"])
    def test_a_script_may_fill_a_configmap(self, text: str) -> None:
        assert problems_of(code={"inline": text}) == ()

    def test_one_byte_more_is_refused_with_size_and_remedy(self) -> None:
        (problem,) = problems_of(code={"inline": "x" * (MIB + 1)})
        assert problem == Problem(
            "code.inline",
            "FieldValueTooLong",
            "must have at most 1048576 bytes (1 MiB, what a ConfigMap holds); found 1048577.",
            "Put the code into a git repository and give its address in code.git.",
        )

    def test_files_are_counted_together(self) -> None:
        half = "x" * (MIB // 2)
        files = {"train.py": half, "b.py": half}
        assert problems_of(code={"files": files}) == ()
        (problem,) = problems_of(code={"files": {**files, "c.py": "x"}})
        assert (problem.path, problem.code) == ("code.files", "FieldValueTooLong")

    @pytest.mark.parametrize(("size", "count"), [(131_071, 0), (131_072, 1)])
    @pytest.mark.parametrize("field", ["command", "argv", "args"])
    def test_one_argument_has_a_limit(self, field: str, size: int, count: int) -> None:
        text = "x" * size
        problems = problems_of(**{field: text if field == "command" else [text]})
        assert [problem.code for problem in problems] == ["FieldValueTooLong"] * count

    @pytest.mark.parametrize(("size", "count"), [(131_069, 0), (131_070, 1)])
    def test_a_variable_counts_with_its_name(self, size: int, count: int) -> None:
        problems = problems_of(env=[{"name": "A", "value": "x" * size}])
        assert found(problems) == [("env[0].value", "FieldValueTooLong")] * count


class TestPaths:
    """Mount paths, sub-paths and files stay where they belong (T9)."""

    @pytest.mark.parametrize(
        "path",
        ["data", "", "/data/../etc", "/..", "/a:b", "/a\nb", "/", "//", "/proc", "/dev/", "/sys"],
    )
    def test_a_bad_mount_path_is_refused(self, path: str) -> None:
        problems = problems_of(volumes=[{"name": "v", "claim": "c", "mount_path": path}])
        assert [problem.path for problem in problems] == ["volumes[0].mount_path"]

    @pytest.mark.parametrize("path", ["/data", "/workspace", "/dev/shm", "/a..b", "/tmp/x y"])
    def test_a_good_mount_path_is_taken(self, path: str) -> None:
        assert problems_of(volumes=[{"name": "v", "claim": "c", "mount_path": path}]) == ()

    @pytest.mark.parametrize(
        "path", ["/etc", "..", "a/../b", "a//b", "a/", "./a", "", "a\\b", "a\tb", "..a", "x" * 256]
    )
    def test_a_bad_relative_path_is_refused(self, path: str) -> None:
        volume = {"name": "v", "claim": "c", "mount_path": "/v", "sub_path": path}
        assert found(problems_of(volumes=[volume])) == [
            ("volumes[0].sub_path", "FieldValueInvalid")
        ]
        problems = problems_of(code={"files": {"train.py": "x", path: "y"}})
        assert [problem.code for problem in problems] == ["FieldValueInvalid"]

    def test_a_file_cannot_be_a_folder(self) -> None:
        problems = problems_of(code={"files": {"train.py": "", "a": "x", "a/b": "y"}})
        assert found(problems) == [("code.files.a/b", "FieldValueInvalid")]

    @pytest.mark.parametrize("name", ["a b.py", "$(x).py", "a;b.py", "-x.py", "ü.py", "a'b.py"])
    def test_an_entry_point_holds_nothing_a_shell_reads(self, name: str) -> None:
        problems = problems_of(code={"files": {name: "x"}, "entrypoint": name})
        assert found(problems) == [("code.entrypoint", "FieldValueInvalid")]


class TestDuplicates:
    def test_variables_volumes_and_mount_paths_differ(self) -> None:
        problems = problems_of(
            env=[{"name": "A", "value": "1"}, {"name": "A", "value": "1"}],
            volumes=[
                {"name": "v", "claim": "c", "mount_path": "/data"},
                {"name": "v", "claim": "c", "mount_path": "//data/"},
            ],
        )
        assert found(problems) == [
            ("env[1].name", "FieldValueDuplicate"),
            ("volumes[1].name", "FieldValueDuplicate"),
            ("volumes[1].mount_path", "FieldValueDuplicate"),
        ]

    @pytest.mark.req("M46", "M106")
    def test_places_of_the_platform_are_taken(self) -> None:
        problems = problems_of(
            shared_memory="1Gi",
            volumes=[
                {"name": "train-script", "claim": "c", "mount_path": "/workspace/scripts/"},
                {"name": "dshm", "claim": "c", "mount_path": "/dev/shm"},
            ],
        )
        assert found(problems) == [
            ("volumes[0].name", "FieldValueDuplicate"),
            ("volumes[0].mount_path", "FieldValueDuplicate"),
            ("volumes[1].name", "FieldValueDuplicate"),
            ("volumes[1].mount_path", "FieldValueDuplicate"),
        ]

    def test_they_are_free_where_the_platform_does_not_need_them(self) -> None:
        volumes = [{"name": "train-script", "claim": "c", "mount_path": "/dev/shm"}]
        assert problems_of(code=None, command="x", volumes=volumes) == ()


class TestGit:
    """Addresses git must never see (T13)."""

    @pytest.mark.req("M70")
    @pytest.mark.parametrize(
        "url",
        [
            "https://github.com/xiilab/astrago-trainer.git",
            "https://git.example.org:8443/a/b",
            "ssh://git@example.org/a/b.git",
            "git@github.com:a/b.git",
            "https://[::1]/a.git",
        ],
    )
    def test_repositories_are_taken(self, url: str) -> None:
        assert a_spec(code={"git": {"url": url}}).code.git.url == url  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "--upload-pack=touch /tmp/x",
            "ext::sh -c touch% /tmp/x",
            "https://a b/c",
            "https://h/a\nb",
            "/etc/passwd",
            "-x@h:p",
            "git@-h:p",
            "git@h:-p",
            "https://h/a?token=1",
            "https://h/a#b",
        ],
    )
    def test_what_git_would_read_otherwise_is_refused(self, url: str) -> None:
        problems = problems_of(code={"git": {"url": url}})
        assert found(problems) == [("code.git.url", "FieldValueInvalid")]

    @pytest.mark.parametrize(
        "url",
        ["https://user:s3cret@h/a", "https://s3cret@h/a", "ssh://git:s3cret@h/a"],
    )
    def test_a_token_in_the_address_is_refused_and_not_repeated(self, url: str) -> None:
        (problem,) = problems_of(code={"git": {"url": url}})
        assert (problem.path, problem.code) == ("code.git.url", "FieldValueForbidden")
        assert "s3cret" not in str(problem)

    @pytest.mark.parametrize("branch", ["main", "release/1.0", "v2.1.0", "feature_x"])
    def test_branches_are_taken(self, branch: str) -> None:
        assert problems_of(code={"git": {"url": "https://h/a", "branch": branch}}) == ()

    @pytest.mark.parametrize(
        "branch", ["", "-b", "a b", "a..b", "a~1", "a:b", "a.lock", "/a", "a/", "a\n", "a@{1}"]
    )
    def test_what_is_no_branch_is_refused(self, branch: str) -> None:
        problems = problems_of(code={"git": {"url": "https://h/a", "branch": branch}})
        assert found(problems) == [("code.git.branch", "FieldValueInvalid")]


class TestImages:
    @pytest.mark.req("X23")
    @pytest.mark.parametrize(
        "image",
        [
            "busybox",
            "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
            "localhost:5000/a/b_c:latest",
            "ghcr.io/a/b@sha256:" + "0" * 64,
            "REG.example.org/a:1",
        ],
    )
    def test_images_are_taken(self, image: str) -> None:
        assert a_spec(image=image).image == image

    @pytest.mark.parametrize(
        "image", ["", "A", "a b", "a:b:c", "a@sha256:0", "…", "a//b", "a:", "-a", " a", "a\n", "/a"]
    )
    def test_what_is_no_image_is_refused(self, image: str) -> None:
        assert found(problems_of(image=image)) == [("image", "FieldValueInvalid")]

    def test_trainers_limit_for_images_holds(self) -> None:
        assert found(problems_of(image="a" * 501)) == [("image", "FieldValueTooLong")]


class TestLabels:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            pytest.param("a b", "x", id="space in the key"),
            pytest.param("", "x", id="empty key"),
            pytest.param("Example.org/x", "x", id="upper-case prefix"),
            pytest.param("/x", "x", id="empty prefix"),
            pytest.param("k" * 64, "x", id="long key"),
            pytest.param("k", "-x", id="value begins with a dash"),
            pytest.param("k", "v" * 64, id="long value"),
            pytest.param("k", "a b", id="space in the value"),
        ],
    )
    @pytest.mark.parametrize("field", ["labels", "node_selector"])
    def test_kubernetes_rules_hold(self, field: str, key: str, value: str) -> None:
        problems = problems_of(**{field: {key: value}})
        assert [problem.code for problem in problems] == ["FieldValueInvalid"]
        assert problems[0].path.startswith(field)

    def test_annotations_may_hold_any_text(self) -> None:
        assert problems_of(annotations={"example.org/a": "x y\n{}"}) == ()

    def test_annotations_have_a_size(self) -> None:
        problems = problems_of(annotations={"a": "x" * 262_144})
        assert found(problems) == [("annotations", "FieldValueTooLong")]


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param({"operator": "Exists"}, id="everything"),
        pytest.param({"key": "", "operator": "Exists"}, id="empty key"),
        pytest.param({"key": "a", "operator": "Exists", "value": "x"}, id="value with Exists"),
        pytest.param({"key": "a", "effect": "Never"}, id="unknown effect"),
        pytest.param({"key": "a", "effect": "NoSchedule", "seconds": 3}, id="seconds"),
    ],
)
def test_a_toleration_must_name_a_taint_and_make_sense(toleration: dict[str, Any]) -> None:
    problems = problems_of(tolerations=[toleration])
    assert len(problems) == 1
    assert problems[0].path.startswith("tolerations[0].")


@pytest.mark.parametrize("data", [None, [], "x", 3, True], ids=repr)
def test_what_is_no_object_is_refused(data: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job_spec(data)
    assert [(p.path, p.code) for p in caught.value.problems] == [("", "FieldValueTypeInvalid")]


def test_a_field_name_that_is_no_text_does_not_hide_the_others() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job_spec(a_request(nodes=0) | {"\ud800": 1, 3: 4})  # type: ignore[dict-item]
    assert [problem.path for problem in caught.value.problems] == ["", "", "nodes"]


class TestPlatform:
    """What depends on the installation."""

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            pytest.param({"nodes": 1001}, "nodes", id="nodes"),
            pytest.param({"resources": {"gpus": 65}}, "resources.gpus", id="GPUs"),
            pytest.param({"resources": {"cpu": "4097"}}, "resources.cpu.limit", id="CPU"),
            pytest.param({"resources": {"memory": "1e9Gi"}}, None, id="no quantity"),
            pytest.param(
                {"resources": {"memory": {"request": "65Ti"}}},
                "resources.memory.request",
                id="memory",
            ),
        ],
    )
    def test_ceilings_hold(self, changes: dict[str, Any], path: str | None) -> None:
        if path is None:
            assert [p.code for p in problems_of(**changes)] == ["FieldValueInvalid"]
            return
        (problem,) = check_job_spec(a_spec(**changes), a_platform())
        assert (problem.path, problem.code, problem.severity) == (
            path,
            "FieldValueInvalid",
            "error",
        )

    def test_an_administrator_can_lower_them(self) -> None:
        assert check_job_spec(a_spec(nodes=8), a_platform(max_nodes=8)) == ()
        (problem,) = check_job_spec(a_spec(nodes=9), a_platform(max_nodes=8))
        assert problem.message == "must be at most 8 on this platform; found 9."

    @pytest.mark.req("M50")
    @pytest.mark.parametrize(
        ("path", "prefixes", "is_allowed"),
        [
            pytest.param("/mnt/x", (), False, id="off by default"),
            pytest.param("/mnt/x", ("/mnt",), True, id="below"),
            pytest.param("/mnt", ("/mnt/",), True, id="the prefix itself"),
            pytest.param("/mnt2", ("/mnt",), False, id="another folder"),
            pytest.param("//mnt//x/", ("/mnt",), True, id="odd spelling"),
            pytest.param("/etc", ("/",), True, id="everything allowed"),
        ],
    )
    def test_host_paths_need_permission(
        self, path: str, prefixes: tuple[str, ...], is_allowed: bool
    ) -> None:
        spec = a_spec(volumes=[{"name": "h", "mount_path": "/h", "host_path": path}])
        problems = check_job_spec(spec, a_platform(allowed_host_paths=prefixes))
        expected = [] if is_allowed else [("volumes[0].host_path", "FieldValueForbidden")]
        assert found(problems) == expected

    @pytest.mark.parametrize("scheme", ["http", "git", "file", "ftp"])
    def test_git_uses_https_or_ssh(self, scheme: str) -> None:
        spec = a_spec(code={"git": {"url": f"{scheme}://example.org/a"}})
        (problem,) = check_job_spec(spec, a_platform())
        assert problem.message == f"must use https or ssh; found {scheme}."

    @pytest.mark.req("M120")
    def test_a_deadline_needs_trainer_2_2(self) -> None:
        spec = a_spec(active_deadline_seconds=60)
        assert found(check_job_spec(spec, a_platform())) == [
            ("active_deadline_seconds", "FieldValueForbidden")
        ]
        assert check_job_spec(spec, a_platform(trainer_version="2.2")) == ()

    @pytest.mark.req("M120")
    @pytest.mark.parametrize("version", ["2.2", "2.3"])
    @pytest.mark.parametrize(
        ("value", "severity"), [("auto", "warning"), ("cpu", "error"), ("gpu", "error")]
    )
    def test_words_for_processes_need_trainer_2_1(
        self, version: str, value: str, severity: str
    ) -> None:
        spec = a_spec(processes_per_node=value)
        assert check_job_spec(spec, a_platform()) == ()
        (problem,) = check_job_spec(spec, a_platform(trainer_version=version))
        assert (problem.path, problem.severity) == ("processes_per_node", severity)

    def test_mpi_counts_processes(self) -> None:
        spec = a_spec(framework="horovod", processes_per_node="auto")
        assert found(check_job_spec(spec, a_platform(trainer_version="2.3"))) == [
            ("processes_per_node", "FieldValueNotSupported")
        ]

    def test_tensorflow_is_told_that_processes_are_not_used(self) -> None:
        spec = a_spec(framework="tensorflow", processes_per_node=4)
        (problem,) = check_job_spec(spec, a_platform())
        assert (problem.path, problem.severity) == ("processes_per_node", "warning")

    @pytest.mark.req("M106")
    @pytest.mark.parametrize(
        ("volumes", "severity", "told"),
        [
            ([], "warning", "no volume is there"),
            ([{"name": "b", "mount_path": "/c/x", "claim": "b"}], "warning", "no volume is there"),
            ([{"name": "a", "mount_path": "/c", "empty_dir": {}}], "warning", "a is an empty_dir"),
            ([{"name": "a", "mount_path": "/c/", "claim": "a"}], None, ""),
            (
                [
                    {"name": "a", "mount_path": "/c", "claim": "a"},
                    {"name": "b", "mount_path": "/c/run", "claim": "b", "read_only": True},
                ],
                "error",
                "volume b is read-only",
            ),
        ],
    )
    def test_checkpoints_belong_on_a_volume_that_lasts(self, volumes, severity, told) -> None:
        found = check_job_spec(a_spec(checkpoints="/c/run", volumes=volumes), a_platform())
        assert [(p.path, p.severity) for p in found] == (
            [("checkpoints", severity)] if severity else []
        )
        assert told in "".join(p.message for p in found)

    def test_shared_memory_that_does_not_fit_is_a_warning(self) -> None:
        spec = a_spec(shared_memory="32Gi", resources={"memory": "16Gi"})
        (problem,) = check_job_spec(spec, a_platform())
        assert (problem.path, problem.severity) == ("shared_memory", "warning")
