"""What this machine must have, asked before anything is touched."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import time
from ipaddress import ip_network
from pathlib import Path

from cluster.build import check_go, go_folders
from cluster.cache import cache_folder
from cluster.errors import ClusterError
from cluster.holder import link_owner
from cluster.layout import HOST_LINK, LINK_NETWORK, POD_NETWORK, SERVICE_NETWORK, Layout

DEBIAN_PACKAGES = {
    "busybox": "busybox-static",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "ctr": "containerd",
    "debootstrap": "debootstrap",
    "gcc": "gcc",
    "git": "git",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "runc": "runc",
    "sysctl": "procps",
    "unshare": "util-linux",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/usr/lib/x86_64-linux-gnu/libc.a": "libc6-dev",
}
"""Program or file -> the package that has it."""
NEEDED_GB = 20
"""For sources, build results, images and pods of all profiles."""
APT_SECONDS = 300.0
"""Another apt-get, say that of a machine which has just started, is waited for this long."""


def check_machine(layout: Layout) -> None:
    """Raises ClusterError for the first thing that is in the way; nothing has been changed then."""
    system = f"{platform.system()} on {platform.machine()}"
    if system != "Linux on x86_64":
        raise ClusterError(
            f"a cluster needs Linux on x86_64, and this is {system}.", "Use another machine."
        )
    if os.geteuid() != 0:
        raise ClusterError(
            "a cluster needs root: it makes namespaces and runs containers.", "Run it with sudo."
        )
    check_go()
    own = {"ASTRAGO_CLUSTER": layout.root, "ASTRAGO_CACHE": cache_folder()}
    for variable, folder in {**own, **go_folders()}.items():
        _check_folder(folder, variable)


def _check_folder(folder: Path, variable: str) -> None:
    """It need not exist yet: then the folder it will be made in counts."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise ClusterError(
            f"{there} cannot be written.",
            f"Make it writable, or name another folder: {variable}=/path.",
        )
    free = shutil.disk_usage(there).free
    if free < NEEDED_GB * 10**9:
        raise ClusterError(
            f"{free / 10**9:.1f} GB are free at {there}, and {NEEDED_GB} are needed.",
            f"Free some room, or name a folder on another disk: {variable}=/path.",
        )


def install_packages() -> None:
    """Debian's packages that are missing; on other systems the message says what is needed."""
    missing = _missing()
    if not missing:
        return
    packages = sorted(set(missing.values()))
    if shutil.which("apt-get") is None:
        raise ClusterError(
            f"these are missing: {', '.join(missing)}.",
            f"Install them with your package manager; Debian's packages are {', '.join(packages)}.",
        )
    print(f"installing {' '.join(packages)}", flush=True)
    told = apt_install(packages)
    if still := _missing():
        raise ClusterError(
            f"{', '.join(still)} are missing after apt-get install {' '.join(packages)}: {told.strip()[-500:]}",
            "Install them by hand, and see that they are found on PATH.",
        )


def _missing() -> dict[str, str]:
    return {
        program: package
        for program, package in DEBIAN_PACKAGES.items()
        if not (Path(program).exists() if program.startswith("/") else shutil.which(program))
    }


def apt_install(packages: list[str]) -> str:
    """What apt-get had to say, if it failed. Its lists are fetched only where the present ones do not do."""
    install = ["install", "-y", "-qq", "--no-install-recommends", *packages]
    if _apt_get(install).returncode == 0:
        return ""
    return _apt_get(["update", "-qq"]).stderr + _apt_get(install).stderr


def _apt_get(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Waits for another one to end. `DPkg::Lock::Timeout` does not: `update` takes a lock that it does not know."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    end = time.monotonic() + APT_SECONDS
    while True:
        done = subprocess.run(
            ["apt-get", *arguments], capture_output=True, text=True, env=environment
        )
        if "Could not get lock" not in done.stderr or time.monotonic() > end:
            return done
        time.sleep(1)


def check_network() -> None:
    """Link and addresses must be free. They are all that can clash: ports are in a network of the cluster's own."""
    own = str(Layout.default().root)
    owner = link_owner()
    if owner == "":
        raise ClusterError(
            f"there is a network link {HOST_LINK}, and it is not that of a cluster.",
            f"Rename it, or remove it: ip link del {HOST_LINK}",
        )
    if owner not in (own, None):
        raise ClusterError(
            f"another cluster runs on this machine, that of {owner}; this one is of {own}.",
            f"End it first: ASTRAGO_CLUSTER={owner} make clean-cluster",
        )
    routes = subprocess.run(
        ["ip", "-4", "-json", "route", "show", "table", "all"], capture_output=True, check=True
    )
    for route in json.loads(routes.stdout):
        if route.get("dev") != HOST_LINK:
            _check_route(route)


def _check_route(route: dict[str, str]) -> None:
    """Any overlap counts, also with a wider network, whose hosts could not be reached any more."""
    if route["dst"] == "default":
        return
    target = ip_network(route["dst"], strict=False)
    for network in (LINK_NETWORK, POD_NETWORK, SERVICE_NETWORK):
        # What is wider than any private network is a default route in parts, as VPNs have it.
        if target.prefixlen >= 8 and target.overlaps(ip_network(network)):
            through = route.get("dev") or route.get("type")
            raise ClusterError(
                f"the cluster's network {network} is in use: this machine has a route to {target} ({through}).",
                "Leave that network (a VPN, another cluster) or remove the route while the cluster runs; "
                "`ip route show table all` lists it.",
            )
