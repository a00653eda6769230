"""The image that the cluster runs is the one that the Dockerfile makes: same name, same start, same user."""

from __future__ import annotations

import json

from cluster.server_image import server_image
from tests.cluster.install.conftest import Installed
from tests.install.test_dockerfile import rests

from astrago_trainer.install.manifests import IMAGE, NAMESPACE


def test_it_is_named_and_started_as_the_dockerfile_says():
    image = server_image()
    assert image.name == IMAGE
    assert list(image.entry) == json.loads(rests("ENTRYPOINT")[0])
    assert image.user == rests("USER")[0]


def test_the_running_pod_is_nobody_and_cannot_write_its_root(installed: Installed):
    def run(*command: str) -> str:
        return installed.kubectl("-n", NAMESPACE, "exec", "deployment/astrago", "--", *command)

    assert run("id", "-u").strip() == "65532"
    tried = "touch /opt/astrago/x 2>&1 || true; touch /data/x && rm /data/x && echo writable"
    said = run("sh", "-c", tried)
    assert "Read-only file system" in said
    assert "writable" in said
    status = run("cat", "/proc/self/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
