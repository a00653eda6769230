"""The images that jobs ask for are there under their official names, with what jobs expect in them, and no network."""

from __future__ import annotations

import json

import pytest

RUN = {
    "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime": [
        *("bash", "-c"),
        "python -c 'import torch' && python3 -V && git --version && torchrun --help > /dev/null",
    ],
    "tensorflow/tensorflow:2.15.0-gpu": [
        *("python3", "-c", "import tensorflow as tf; print(tf.__version__)")
    ],
    "horovod/horovod:0.28.1": ["bash", "-c", "mpirun --version && test -x /usr/sbin/sshd"],
    "alpine/git:v2.36.2": ["sh", "-c", "git --version"],
    "busybox": ["sh", "-c", "nslookup kubernetes.default.svc.cluster.local"],
    "alpine:3.10": ["sh", "-c", "nslookup kubernetes.default.svc.cluster.local"],
    # Nothing outside is reached: an address of no network, and a name that the whole world knows.
    "busybox:1.36.1": [
        "sh",
        "-c",
        "! wget -T 3 -q -O - http://192.0.2.1/ && ! nslookup example.org",
    ],
}


@pytest.mark.req("M63", "M65")
@pytest.mark.parametrize("image", RUN)
def test_an_image_has_what_jobs_expect(image, kubectl, namespace):
    container = {
        "name": "one",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": RUN[image],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }

    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pod))

    succeeded = "--for=jsonpath={.status.phase}=Succeeded"
    kubectl("-n", namespace, "wait", succeeded, "pod/one", "--timeout=180s")
