"""The administrator's file on a server: offered, held to, and refused at the start when it is wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from astrago_trainer.core.errors import InvalidRequest
from tests.server.serving import JOBS, PATIENCE, a_request, a_site

FILE = """
frameworks:
  pytorch:
    runtime: pytorch-runtime
    image: registry.example.org/torch:2.8
    images: [registry.example.org/torch:2.8, registry.example.org/torch:nightly]
presets:
  - {name: tiny, cpu: 500m, memory: 1Gi}
allowed_host_paths: [/mnt/data]
limits: {nodes: 2, gpus_per_node: 1}
defaults: {ttl_seconds: 60, max_restarts: 1}
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "platform.yaml"
    path.write_text(FILE)
    return path


@pytest.mark.req("X23", "M83")
def test_what_the_file_decides_is_offered_and_held_to(tmp_path, file):
    async def story():
        async with a_site(tmp_path / "data", platform=file) as site:
            offers = (await site.client.get("/api/v1/offers")).json()
            assert offers["presets"] == [
                {"name": "tiny", "gpus": 0, "cpu": "500m", "memory": "1Gi"}
            ]
            torch, tensorflow, _ = offers["frameworks"]
            assert torch == {
                "name": "pytorch",
                "runtime": "pytorch-runtime",
                "image": "registry.example.org/torch:2.8",
                "images": ["registry.example.org/torch:2.8", "registry.example.org/torch:nightly"],
            }
            assert (tensorflow["runtime"], tensorflow["images"]) == ("tensorflow-distributed", [])
            assert (offers["max_nodes"], offers["max_gpus_per_node"]) == (2, 1)
            assert (offers["default_ttl_seconds"], offers["default_max_restarts"]) == (60, 1)

            plan = (await site.client.post(f"{JOBS}:preview", json=a_request())).json()
            assert "registry.example.org/torch:2.8" in str(plan)
            assert "git-clone" in str(plan)  # of that runtime
            for wrong in ({"nodes": 3}, {"resources": {"gpus": 2}}):
                answer = await site.client.post(JOBS, json=a_request(**wrong))
                assert answer.status_code == 422, answer.text
                assert "on this platform" in answer.text
            volume = {"name": "data", "mount_path": "/data"}
            for path, status in (("/mnt/data/x", 201), ("/etc", 422)):
                wanted = a_request(volumes=[{**volume, "host_path": path}])
                answer = await site.client.post(JOBS, json=wanted)
                assert answer.status_code == status, answer.text

    asyncio.run(story())


def test_a_server_does_not_open_with_a_bad_file(tmp_path, file):
    file.write_text("limits: {node: 2}\nframeworks: {pytorch: {runtime: nowhere}}\n")

    async def story():
        async with a_site(tmp_path / "data", platform=file):
            pass

    with pytest.raises(InvalidRequest, match=r"limits\.node: .*Did you mean nodes\?"):
        asyncio.run(story())


def test_the_program_ends_with_every_problem_and_makes_nothing(tmp_path, file):
    file.write_text("limits: {node: 2}\npresets: [{name: a, cpu: 1}]\n")
    done = subprocess.run(
        [sys.executable, "-m", "astrago_trainer", "up", "--port", "0", "--data", tmp_path / "data"],
        env={"ASTRAGO_PLATFORM": str(file)}, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{file}: limits.node" in done.stderr
    assert f"{file}: presets[0].memory" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "astrago.db").exists()
