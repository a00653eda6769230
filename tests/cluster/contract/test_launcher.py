"""The launcher as process 1 of a container: ranks, the first cause, and a stop that does not wait out the grace."""

from __future__ import annotations

import pytest

from astrago_trainer.catalogue import system_scripts

IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"
FAILS = """
import os, pathlib, time
zero = pathlib.Path("/tmp/rank-0-has-begun")
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "parent", os.getppid(), flush=True)
if os.environ["RANK"] == "1":
    while not zero.exists():
        time.sleep(0.01)
    raise SystemExit("the data is not there")
zero.touch()
time.sleep(1000)
"""
# Waits with sigwait, because a handler could run just before a sleep begins, which would go on. Lives for a while after
# its last line, because containerd may lose what is written at the very end.
STOPS = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
print("rank", os.environ["RANK"], "stops", flush=True)
time.sleep(1)
"""


@pytest.fixture
def pod(space):
    def start(script: str) -> None:
        data = {"launch.py": system_scripts()["launch.py"], "train.py": script}
        space.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "code", "namespace": space.name},
                "data": data,
            }
        )
        container = {
            "name": "node",
            "image": IMAGE,
            "command": ["python", "/shared/launch.py", "--nproc", "2", "--", "/shared/train.py"],
            "volumeMounts": [{"name": "code", "mountPath": "/shared"}],
        }
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 3600,
            "containers": [container],
            "volumes": [{"name": "code", "configMap": {"name": "code"}}],
        }
        metadata = {"name": "launched", "namespace": space.name}
        space.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    return start


def test_the_first_cause_is_the_pods_termination_message(pod, space):
    pod(FAILS)
    ended = space.until_one("pods", "launched", lambda pod: pod["status"].get("phase") == "Failed")
    (status,) = ended["status"]["containerStatuses"]
    state = status["state"]["terminated"]
    log = space.log("launched")

    assert state["exitCode"] == 1
    assert "rank 1" in state["message"].lower()
    assert "the data is not there" in state["message"]
    assert "rank 0 of 2 parent 1" in log
    assert "rank 1 of 2 parent 1" in log


def test_a_stop_reaches_both_ranks_and_ends_with_them(pod, space):
    pod(STOPS)
    space.until_one("pods", "launched", lambda pod: pod["status"].get("phase") == "Running")
    lines = space.follow("launched")
    assert [next(lines), next(lines)] == ["ready", "ready"]
    space.delete("pods", "launched")
    assert set(lines) == {"rank 0 stops", "rank 1 stops"}
    space.until_gone("pods", fieldSelector="metadata.name=launched")
