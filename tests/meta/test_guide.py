"""The guide can be followed by a machine, and the machine that follows it notices when it is not true.

Here without a cluster; `make test-cluster` follows the pages for real (`tests/cluster/guide`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from tests.cluster.guide.following import follow
from tests.cluster.guide.pages import (
    GUIDE,
    ROOT,
    GuideError,
    Page,
    difference,
    guide_pages,
    read_page,
)

ENV = {"PATH": os.environ["PATH"]}


def page(folder: Path, text: str) -> Page:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path, root=folder)


def sh(commands: str, mark: str = "") -> str:
    return f"{mark}\n```sh\n{commands}\n```\n"


def text(output: str) -> str:
    return f"\n```text\n{output}\n```\n"


# --- the pages


@pytest.mark.parametrize("path", guide_pages(), ids=lambda path: path.name)
def test_every_page_can_be_followed(path):
    """Every block is of a known kind, and either run or marked with a reason why not."""
    found = read_page(path)

    assert any(not step.not_run for step in found.steps)
    assert all(step.not_run == "" or len(step.not_run) > 10 for step in found.steps)


@pytest.mark.parametrize("path", guide_pages(), ids=lambda path: path.name)
def test_every_file_that_a_page_uses_is_there(path):
    for step in read_page(path).steps:
        named = re.findall(r"(?:runtimes|samples|kustomize)/[\w./-]+", step.commands)
        for name in named:
            assert (ROOT / name).exists(), f"{path.name}:{step.line} names {name}"


@pytest.mark.parametrize("path", guide_pages(), ids=lambda path: path.name)
def test_every_page_that_makes_something_also_removes_it(path):
    steps = [step for step in read_page(path).steps if not step.not_run]
    makes = [step for step in steps if re.search(r"kubectl (create|apply)", step.commands)]

    assert not makes or any(step.is_clean_up for step in steps)


def test_every_page_is_followed_by_a_test():
    tests = (ROOT / "tests/cluster/guide/test_pages.py").read_text(encoding="utf-8")

    followed = set(re.findall(r'follow_page\("([^"]+)"\)', tests))
    assert followed == {path.name for path in GUIDE.glob("*")}


@pytest.mark.req("M93", "M103", "M104", "M106", "M107", "M108")
def test_the_job_of_the_guide_is_the_one_of_the_mission():
    text = (ROOT / "samples/fsdp/trainjob.yaml").read_text(encoding="utf-8")
    job, code = yaml.safe_load_all(text)
    (override,) = job["spec"]["podTemplateOverrides"]
    trainer, pod = job["spec"]["trainer"], override["spec"]
    *_, script = trainer["command"]

    assert job["metadata"] == {"name": "t5-large"}
    assert job["spec"]["runtimeRef"] == {"name": "torch-distributed"}
    assert override["targetJobs"] == [{"name": "node"}]
    assert pod["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "g6e.48xlarge",
        "topology.kubernetes.io/zone": "ap-northeast-2a",
    }
    assert {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}} in pod["volumes"]
    assert {"name": "dshm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, "auto")
    gpus = {"nvidia.com/gpu": "8"}
    assert trainer["resourcesPerNode"] == {"limits": gpus, "requests": gpus}
    for line in (
        "pip install -r requirements.txt",
        "export MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=${PET_MASTER_PORT:-29500}",
    ):
        assert line in script.splitlines()
    assert "\ncd /workspace/scripts #" in script
    assert code["data"].keys() == {"t5-fsdp.py", "requirements.txt"}
    assert script.replace("\\\n", "").split("exec ")[1].split() == [
        "torchrun", "--nproc_per_node=8", "--rdzv_id=elastic-job", "--rdzv_backend=c10d",
        "--rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT", "t5-fsdp.py",
        '--model_id="google-t5/t5-large"', "--epochs=10", "--save_path=/checkpoints",
    ]  # fmt: skip


def test_no_sample_clones_a_repository_that_is_not_published():
    manifests = [*ROOT.glob("samples/**/*.yaml"), *ROOT.glob("kustomize/**/*.yaml")]

    assert [path for path in manifests if "https://github.com/" in path.read_text("utf-8")] == []


@pytest.mark.req("M88", "M91", "M107", "M109", "M112", "M118")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("legacy-training-operator.md", "`kubeflow-training[huggingface]`"),
        ("legacy-training-operator.md", "kubectl logs -f -n karpenter -l app.kubernetes.io/name=karpenter"),
        ("resilient-training.md", "`nodeSelector` with one zone"),
        ("resilient-training.md", "backslash"),
        ("resilient-training.md", "pending for some minutes is normal"),
        ("resilient-training.md", "torchrun --max-restarts=3"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_on_a_small_cluster_is_said(name, said):
    assert said in (GUIDE / name).read_text(encoding="utf-8")


# --- reading a page


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("nothing but words\n", "no block that is run"),
        ("```console\nls\n```\n" + sh("ls"), "unknown kind 'console'"),
        ("```\nls\n```\n" + sh("ls"), "unknown kind ''"),
        (sh("ls", "<!-- not run -->"), "too much or too little"),
        (sh("ls", "<!-- not run: because -->"), "no block that is run"),
        (sh("ls", "<!-- fails: often -->"), "too much or too little"),
        (sh("ls", "<!-- dont run -->"), "a mark 'dont run'"),
        (sh("ls") + "<!-- fails -->\n" + text("x"), "not directly above"),
        (sh("ls") + "```sh\nls\n", "does not end"),
        (sh("ls") + "see <!-- fails -->\n", "has not the line to itself"),
        (text("x") + sh("ls"), "must follow the sh block"),
        (sh("ls") + text("x") + text("y"), "must follow the sh block"),
        (sh("ls", "<!-- not run: x -->") + text("x") + sh("ls"), "nothing prints this"),
        (sh("ls") + "```yaml\na: 1\n```\n", "yaml block without"),
        (sh("ls") + sh(""), "an empty block"),
    ],
)
def test_a_page_that_leaves_the_path_is_refused(tmp_path, content, problem):
    with pytest.raises(GuideError, match=problem):
        page(tmp_path, content)


def test_an_excerpt_that_is_no_longer_in_its_file_is_refused(tmp_path):
    (tmp_path / "job.yaml").write_text("a: 1\nb:\n  c: 2\n", encoding="utf-8")
    start = sh("ls") + "<!-- from: job.yaml -->\n```yaml\n"

    page(tmp_path, start + "b:\n  c: 2\n```\n")
    for changed in ("b:\n  c: 3\n", "c: 2\n"):
        with pytest.raises(GuideError, match=r"is not an excerpt of job\.yaml"):
            page(tmp_path, f"{start}{changed}```\n")


# --- comparing outputs


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("NAME   AGE\njob    <age>", "NAME     AGE\njob      2m3s   \n"),
        ("job-node-0-0-<suffix>   0/1", "job-node-0-0-x7k2p 0/1\n"),
        ("a\n…\nz", "a\nb\nc\nz\n"),
        ("a\n…\nz", "a\nz\n"),
        ("…", ""),
        ("Error: …no such thing…", "Error: sorry, no such thing here\n"),
        ("GPU: <none>", "GPU: <none>\n"),
        ("a (b) [c] $d", "a (b) [c] $d"),
    ],
)
def test_an_output_of_the_expected_form_is_accepted(expected, actual):
    assert difference(f"{expected}\n", actual) == ""


@pytest.mark.parametrize(
    ("expected", "actual", "named"),
    [
        ("a\nb", "a\n", "b"),
        ("a\nb", "b\na\n", "a"),
        ("a", "a\nb\n", "more than was expected"),
        ("a\n…\nz", "a\nb\n", "z"),
        ("…\nlast", "last\nafter it\n", "more than was expected"),
        ("job <age>", "job soon\n", "job <age>"),
        ("job-<suffix>", "job-x7k2p9\n", "job-<suffix>"),
        ("node count: 2", "node count: 22\n", "node count: 2"),
        ("<nome>", "<none>\n", "<nome>"),
        ("two words", "twowords\n", "two words"),
    ],
)
def test_another_output_is_noticed_with_the_first_line_that_differs(expected, actual, named):
    assert named in difference(f"{expected}\n", actual)


# --- following a page


def test_a_true_page_is_followed_in_one_shell(tmp_path):
    content = (
        sh("name=world\ncd /") + sh("echo hello $name; pwd; echo oops >&2") + text("hello world\n/\noops")
        + sh("false", "<!-- fails -->") + sh("cat") + sh("echo $name > /dev/null")
        + sh("exit 3", "<!-- not run: it would end the shell -->")
    )  # fmt: skip
    follow(page(tmp_path, content), ENV, tmp_path / "run", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (sh("false\ntrue"), "ended with code 1"),
        (sh("exit 7"), "ended with code 7"),
        (sh("echo yes", "<!-- fails -->"), "should fail, and did not"),
        (sh("echo yes") + text("no"), "not found, or not where it should be: no"),
        (sh("kill -9 $$"), "ended with code -9"),
    ],
)
def test_a_page_that_is_not_true_fails_and_is_cleaned_up(tmp_path, content, message):
    content = sh("touch made") + content + sh("rm made; echo removed >> log", "<!-- clean up -->")

    with pytest.raises(AssertionError, match=message) as caught:
        follow(page(tmp_path, content), ENV, tmp_path / "run", root=tmp_path, look="ls")

    assert not (tmp_path / "made").exists()
    assert (tmp_path / "log").read_text() == "removed\n" * 2, "before and after"
    assert any("made" in note for note in caught.value.__notes__), "seen before the clean-up"


def test_what_an_earlier_run_has_left_is_removed_first(tmp_path):
    (tmp_path / "made").mkdir()
    content = sh("mkdir made") + sh("rmdir made", "<!-- clean up -->")

    follow(page(tmp_path, content), ENV, tmp_path / "run", root=tmp_path)

    assert not (tmp_path / "made").exists()
