"""`python -m cluster up|server|nodes|down|status`; `make cluster` and its siblings call it."""

from __future__ import annotations

import argparse
import shutil
import sys

from cluster.build import binary
from cluster.cache import locked
from cluster.checkout import publish
from cluster.errors import ClusterError
from cluster.frameworks import FRAMEWORKS, environment
from cluster.holder import Holder
from cluster.images import bring
from cluster.layout import NODE_NAME, Layout
from cluster.machine import check_machine, check_network, install_packages
from cluster.nodes import MOST, set_fake_nodes
from cluster.operators import Kubectl, install, install_legacy
from cluster.pins import (
    CONTROL_PLANE,
    COREDNS,
    ETCD,
    KUBERNETES,
    KWOK,
    PROFILES,
    TRAINING_OPERATOR,
    Profile,
    operators,
)
from cluster.pki import make_pki
from cluster.pod_images import pause_image, pod_images
from cluster.server_image import server_image


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster, or use the one that runs")
    up.add_argument("--trainer", choices=PROFILES, default="2.1")
    up.add_argument("--legacy", action="store_true", help="with training-operator for v1 jobs")
    commands.add_parser("server", help="bring the image of this checkout's server")
    nodes = commands.add_parser("nodes", help="make it this many fake GPU nodes")
    nodes.add_argument("count", type=int, choices=range(MOST + 1), metavar=f"0..{MOST}")
    down = commands.add_parser("down", help="end it and everything in it")
    down.add_argument("--all", action="store_true", help="remove its state folder, too")
    commands.add_parser("status", help="say whether it runs")
    options = parser.parse_args()
    layout = Layout.default()
    try:
        with locked(layout.lock, "another `make cluster`"):
            return _COMMANDS[options.command](layout, options)
    except ClusterError as error:
        print(f"cluster: {error}\n       → {error.remedy}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that filled up, say
        print(
            f"cluster: {error}\n       → See that the disk has room and can be written, then start again.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; what was built is kept", file=sys.stderr)
        return 130


def _up(layout: Layout, options: argparse.Namespace) -> int:
    profile = PROFILES[options.trainer]
    holder = Holder(layout)
    kept = layout.run / "profile"
    if not (
        holder.is_up() and kept.exists() and kept.read_text(encoding="utf-8") == options.trainer
    ):
        try:
            _start(layout, holder, profile)
        except KeyboardInterrupt:
            if not kept.exists():  # half a cluster; one that ran before the build is left alone
                holder.stop()
            raise
        kept.write_text(options.trainer, encoding="utf-8")
    bring(holder, pod_images())
    publish(layout)
    legacy = layout.run / "legacy"
    if options.legacy and not legacy.exists():
        install_legacy(holder)
        legacy.touch()
    print(f"Kubernetes {KUBERNETES}, etcd {ETCD}, CoreDNS {COREDNS}, KWOK {KWOK}")
    operator = f", training-operator {TRAINING_OPERATOR}" if legacy.exists() else ""
    print(f"Trainer {profile.trainer}, JobSet {profile.jobset}{operator}")
    print(f"export KUBECONFIG={layout.kubeconfig}")
    return 0


def _start(layout: Layout, holder: Holder, profile: Profile) -> None:
    """From whatever an earlier run has left: that is ended by its own record, once everything new is made."""
    check_machine(layout)
    install_packages()
    check_network()
    for program in (*CONTROL_PLANE, *operators(profile)):
        binary(program)
    for framework in FRAMEWORKS:
        environment(framework)
    pod_images()
    holder.stop()
    make_pki(layout)
    holder.start()
    bring(holder, [pause_image()])
    kubectl = Kubectl(layout.kubeconfig)
    kubectl("wait", "--for=create", f"node/{NODE_NAME}", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=120s")
    install(holder, profile)


def _server(layout: Layout, options: argparse.Namespace) -> int:
    image = server_image()
    bring(Holder(layout), [image])
    print(f"{image.name} is there: astrago install --apply --storage none")
    return 0


def _nodes(layout: Layout, options: argparse.Namespace) -> int:
    set_fake_nodes(Kubectl(layout.kubeconfig), options.count)
    return 0


def _down(layout: Layout, options: argparse.Namespace) -> int:
    Holder(layout).stop()
    if options.all:
        shutil.rmtree(layout.root, ignore_errors=True)
    return 0


def _status(layout: Layout, options: argparse.Namespace) -> int:
    pid = Holder(layout).pid()
    print("not running" if pid is None else f"running, process {pid}, state in {layout.root}")
    return 0 if pid is not None else 1


_COMMANDS = {"up": _up, "server": _server, "nodes": _nodes, "down": _down, "status": _status}

if __name__ == "__main__":
    sys.exit(main())
