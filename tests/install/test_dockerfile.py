"""No Docker runs here, so the Dockerfile is read: what it copies exists, and it is the image that the cluster runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cluster.server_image import USER, requirements

from astrago_trainer.install.manifests import Installation, installation_objects

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Name and rest of each, lines joined."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE))
    lines = [line for line in joined.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def rests(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


def test_every_base_image_has_a_tag():
    stages = {rest.split(" AS ")[1] for rest in rests("FROM") if " AS " in rest}
    for rest in rests("FROM"):
        image = rest.split(" AS ")[0]
        assert re.fullmatch(r"[a-z]+:[0-9][\w.-]+", image), image
    copied = {stage for rest in rests("COPY") for stage in re.findall(r"--from=(\S+)", rest)}
    assert copied == stages == {"page", "wheel"}


def test_what_is_copied_exists_and_is_not_ignored():
    kept = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    sources = [
        source for rest in rests("COPY") if "--from" not in rest for source in rest.split()[:-1]
    ]
    assert {"src", "pyproject.toml", "requirements.lock", "web"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in kept, source


def test_the_build_of_the_wheel_gets_all_that_it_reads():
    project = (ROOT / "pyproject.toml").read_text()
    sources = " ".join(rests("COPY"))
    for name in re.findall(r'^(?:readme|license-files) = \[?"([^"]+)"', project, re.MULTILINE):
        assert name in sources


def test_dependencies_are_checked_against_their_hashes_and_come_from_nowhere_else():
    commands = " ".join(rests("RUN"))
    assert "pip download --quiet --require-hashes" in commands
    installs = re.findall(r"pip install [^&]*", commands)
    assert installs
    assert all("--no-index" in each for each in installs)


def test_the_lock_file_has_every_dependency_of_the_server():
    locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert set(requirements()) <= locked
    assert "hatchling" in locked


def test_it_runs_as_nobody_and_as_the_deployment_says():
    assert rests("USER") == [USER]
    assert instructions()[-2:] == [
        ("ENTRYPOINT", '["/opt/astrago/bin/astrago"]'),
        ("CMD", '["up"]'),
    ]
    (deployment,) = [
        each for each in installation_objects(Installation()) if each["kind"] == "Deployment"
    ]
    pod = deployment["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == USER
    assert pod["containers"][0]["args"] == json.loads(rests("CMD")[0])
    assert pod["containers"][0]["ports"][0]["containerPort"] == int(rests("EXPOSE")[0])
