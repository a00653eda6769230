"""The programs of the cluster in the order of their start, with their settings and how each shows that it is ready."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster.build import binary, module_dir
from cluster.checkout import GIT_HOST, ROOT
from cluster.frameworks import FRAMEWORKS, site_packages
from cluster.layout import (
    API_PORT,
    BRIDGE,
    NODE_IP,
    NODE_NAME,
    POD_NETWORK,
    SERVICE_NETWORK,
    Layout,
)
from cluster.pins import CONTROL_PLANE
from cluster.pod_images import PAUSE

DEADLINE_SECONDS = 120.0
"""For one program to become ready; a busy machine needs a tenth of it."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    arguments: list[str]
    is_ready: Callable[[], bool] = lambda: True
    folder: Path | None = None

    def wait_until_ready(self) -> None:
        """Asks again every tenth of a second: these programs have no other way to tell."""
        end = time.monotonic() + DEADLINE_SECONDS
        while not self.is_ready():
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name} is not ready after {DEADLINE_SECONDS:.0f} s")
            time.sleep(0.1)


def plan(root: Path) -> list[Command]:
    """Every program, its configuration files written."""
    layout = Layout(root)
    programs = {program.name: str(binary(program)) for program in CONTROL_PLANE}
    kubectl = [programs["kubectl"], f"--kubeconfig={layout.kubeconfig}"]
    return [
        _containerd(layout),
        _etcd(layout, programs["etcd"]),
        _api_server(layout, programs["kube-apiserver"], kubectl),
        Command(
            "kube-controller-manager",
            [
                programs["kube-controller-manager"],
                f"--kubeconfig={layout.kubeconfig}",
                f"--service-account-private-key-file={layout.pki}/sa.key",
                f"--root-ca-file={layout.pki}/ca.crt",
                "--use-service-account-credentials",
                "--leader-elect=false",
            ],
        ),
        _scheduler(layout, programs["kube-scheduler"]),
        _coredns(layout, programs["coredns"]),
        _kubelet(layout, programs["kubelet"]),
        _kube_proxy(layout, programs["kube-proxy"]),
        Command("git", [sys.executable, "-m", "cluster.checkout", str(root)], folder=ROOT),
        _kwok(layout, programs["kwok"]),
    ]


def _containerd(layout: Layout) -> Command:
    network = {
        "cniVersion": "1.0.0",
        "name": "astrago",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": f"{layout.run}/addresses",
                    "ranges": [[{"subnet": POD_NETWORK}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }
    _write(layout.root / "cni" / "10-astrago.conflist", json.dumps(network))
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE the sandbox's score is refused, and no pod would start
    config = _write(
        layout.root / "containerd.toml",
        f"""\
version = 2
root = "{layout.root}/containerd"
state = "{layout.run}/containerd"
[grpc]
  address = "{layout.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.run}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{_container_spec(layout)}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.root}/cni"
""",
    )
    ready = ["ctr", "-a", str(layout.socket), "version"]
    return Command("containerd", ["containerd", "-c", str(config)], lambda: _succeeds(ready))


def _container_spec(layout: Layout) -> Path:
    """What every container starts from: containerd's own default, with the frameworks and our authority's certificate.

    Mounted here and not in the pods, so that runtimes and jobs run as they are.
    """
    default = subprocess.run(["ctr", "oci", "spec"], capture_output=True, check=True).stdout
    spec = json.loads(default)
    mounts = {f"/frameworks/{name}": site_packages(name) for name in FRAMEWORKS}
    mounts["/etc/ssl/certs/ca-certificates.crt"] = layout.pki / "ca.crt"
    spec["mounts"] += [
        {"destination": there, "type": "bind", "source": str(here), "options": ["rbind", "ro"]}
        for there, here in mounts.items()
    ]
    return _write(layout.root / "container.json", json.dumps(spec))


def _etcd(layout: Layout, program: str) -> Command:
    client = "http://127.0.0.1:2379"
    return Command(
        "etcd",
        [
            program,
            f"--data-dir={layout.root}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",  # a test cluster may lose its memory with the machine
        ],
    )


def _api_server(layout: Layout, program: str, kubectl: list[str]) -> Command:
    pki = layout.pki
    arguments = [
        program,
        "--etcd-servers=http://127.0.0.1:2379",
        f"--advertise-address={NODE_IP}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki}/sa.key",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
    ]
    return Command(
        "kube-apiserver", arguments, lambda: _succeeds([*kubectl, "get", "--raw", "/readyz"])
    )


def _scheduler(layout: Layout, program: str) -> Command:
    """A soft taint decides here, as only the fake nodes have one: no pod is to go there unless it asks for it."""
    tainted = {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 100}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler", "plugins": tainted}],
    }
    path = _write(layout.root / "scheduler.yaml", json.dumps(config))
    return Command("kube-scheduler", [program, f"--config={path}"])


def _coredns(layout: Layout, program: str) -> Command:
    corefile = _write(
        layout.root / "Corefile",
        f"""\
.:53 {{
  bind {NODE_IP}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {layout.kubeconfig}
    pods insecure
  }}
  hosts {{
    {NODE_IP} {GIT_HOST}
    fallthrough
  }}
  cache 5
}}
""",
    )
    return Command("coredns", [program, "-conf", str(corefile)])


def _kubelet(layout: Layout, program: str) -> Command:
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{layout.pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "failSwapOn": False,
        "tlsCertFile": f"{layout.pki}/node.crt",
        "tlsPrivateKeyFile": f"{layout.pki}/node.key",
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "clusterDNS": [NODE_IP],
        "clusterDomain": "cluster.local",
        "evictionHard": {
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "memory.available": "100Mi",
        },
        "localStorageCapacityIsolation": False,
        "volumePluginDir": f"{layout.root}/volume-plugins",
        "imageGCHighThresholdPercent": 100,  # an image that is removed comes from nowhere again
    }
    path = _write(layout.root / "kubelet.yaml", json.dumps(config))
    return Command(
        "kubelet",
        [
            program,
            f"--config={path}",
            f"--kubeconfig={layout.root}/node.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={NODE_IP}",
            f"--root-dir={layout.root}/kubelet",
        ],
    )


def _kube_proxy(layout: Layout, program: str) -> Command:
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig)},
        "mode": "iptables",
        "clusterCIDR": POD_NETWORK,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    path = _write(layout.root / "kube-proxy.yaml", json.dumps(config))
    return Command("kube-proxy", [program, f"--config={path}", f"--hostname-override={NODE_NAME}"])


def _kwok(layout: Layout, program: str) -> Command:
    """Answers for the fake nodes, and for no other."""
    stages = module_dir("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    files = ("node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease",
             "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete")  # fmt: skip
    arguments = [
        program,
        f"--kubeconfig={layout.kubeconfig}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        "--v=WARN",  # else a line for each renewed lease
        *(f"--config={stages / name}.yaml" for name in files),
    ]
    return Command("kwok", arguments)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _succeeds(arguments: list[str]) -> bool:
    return subprocess.run(arguments, capture_output=True).returncode == 0
