"""`python -m cluster up|down|status`; `make cluster` and `make clean-cluster` call it."""

from __future__ import annotations

import argparse
import shutil
import sys

from cluster.build import binary
from cluster.cache import locked
from cluster.errors import ClusterError
from cluster.holder import Holder
from cluster.images import import_pause
from cluster.layout import NODE_NAME, Layout
from cluster.machine import check_machine, check_network, install_packages
from cluster.operators import Kubectl, install
from cluster.pins import CONTROL_PLANE, COREDNS, ETCD, KUBERNETES, PROFILES, Profile, operators
from cluster.pki import make_pki


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster, or use the one that runs")
    up.add_argument("--trainer", choices=PROFILES, default="2.1")
    down = commands.add_parser("down", help="end it and everything in it")
    down.add_argument("--all", action="store_true", help="remove its state folder, too")
    commands.add_parser("status", help="say whether it runs")
    options = parser.parse_args()
    layout = Layout.default()
    try:
        with locked(layout.lock):
            return _COMMANDS[options.command](layout, options)
    except ClusterError as error:
        print(f"cluster: {error}\n       → {error.remedy}", file=sys.stderr)
        return 1


def _up(layout: Layout, options: argparse.Namespace) -> int:
    profile = PROFILES[options.trainer]
    holder = Holder(layout)
    kept = layout.run / "profile"
    if not (
        holder.is_up() and kept.exists() and kept.read_text(encoding="utf-8") == options.trainer
    ):
        _start(layout, holder, profile)
        kept.write_text(options.trainer, encoding="utf-8")
    print(
        f"Kubernetes {KUBERNETES}, etcd {ETCD}, CoreDNS {COREDNS}, Trainer {profile.trainer}, JobSet {profile.jobset}"
    )
    print(f"export KUBECONFIG={layout.kubeconfig}")
    return 0


def _start(layout: Layout, holder: Holder, profile: Profile) -> None:
    """From whatever an earlier run has left: that is ended first, by its own record."""
    check_machine(layout)
    install_packages()
    for program in (*CONTROL_PLANE, *operators(profile)):
        binary(program)
    if holder.pid() is None and not (layout.run / "init.json").exists():
        check_network()
    holder.stop()
    make_pki(layout)
    holder.start()
    import_pause(holder)
    kubectl = Kubectl(layout.kubeconfig)
    kubectl("wait", "--for=create", f"node/{NODE_NAME}", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=120s")
    install(holder, profile)


def _down(layout: Layout, options: argparse.Namespace) -> int:
    Holder(layout).stop()
    if options.all:
        shutil.rmtree(layout.root, ignore_errors=True)
    return 0


def _status(layout: Layout, options: argparse.Namespace) -> int:
    pid = Holder(layout).pid()
    print("not running" if pid is None else f"running, process {pid}, state in {layout.root}")
    return 0 if pid is not None else 1


_COMMANDS = {"up": _up, "down": _down, "status": _status}

if __name__ == "__main__":
    sys.exit(main())
