"""Keys and certificates of the control plane, made once per state folder with openssl."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from cluster.checkout import GIT_HOST
from cluster.errors import ClusterError
from cluster.layout import API_PORT, API_SERVICE_IP, NODE_IP, NODE_NAME, Layout

_API_NAMES = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost"
_CERTIFICATES = {
    "apiserver": (
        "/CN=kube-apiserver",
        f"{_API_NAMES},IP:127.0.0.1,IP:{API_SERVICE_IP},IP:{NODE_IP}",
    ),
    "admin": ("/O=system:masters/CN=admin", "DNS:admin"),
    "git": (f"/CN={GIT_HOST}", f"DNS:{GIT_HOST}"),
    "node": (f"/O=system:nodes/CN=system:node:{NODE_NAME}", f"DNS:{NODE_NAME},IP:{NODE_IP}"),
}
_FILES = (
    *("ca.crt", "ca.key", "sa.key", "sa.pub"),
    *(f"{name}.{kind}" for name in _CERTIFICATES for kind in ("crt", "key")),
)
_MADE_FOR = "made-for.json"


def make_pki(layout: Layout) -> None:
    """The set that this version wants; kept if it is there and whole, else made anew as one."""
    if not _is_whole(layout.pki):
        shutil.rmtree(layout.pki, ignore_errors=True)
        unfinished = layout.pki.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True, mode=0o700)
        _make(unfinished)
        unfinished.rename(layout.pki)
    for name, path in (("admin", layout.kubeconfig), ("node", layout.root / "node.kubeconfig")):
        path.touch(mode=0o600)
        path.write_text(_kubeconfig(layout.pki, name), encoding="utf-8")


def _is_whole(pki: Path) -> bool:
    """Made for the same names, and no file lost its content, as it happens when a disk fills up or power is cut."""
    try:
        made_for = (pki / _MADE_FOR).read_text(encoding="utf-8")
        return made_for == json.dumps(_CERTIFICATES) and all(
            (pki / name).stat().st_size for name in _FILES
        )
    except OSError:
        return False


def _make(pki: Path) -> None:
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=astrago-cluster",
             "-keyout", pki / "ca.key", "-out", pki / "ca.crt")  # fmt: skip
    _openssl("genrsa", "-out", pki / "sa.key", "2048")
    _openssl("rsa", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub")
    for name, (subject, names) in _CERTIFICATES.items():
        _certificate(pki, name, subject, names)
    (pki / _MADE_FOR).write_text(json.dumps(_CERTIFICATES), encoding="utf-8")


def _certificate(pki: Path, name: str, subject: str, names: str) -> None:
    extensions = pki / f"{name}.ext"
    extensions.write_text(
        f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n", encoding="utf-8"
    )
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", pki / f"{name}.key",
             "-out", pki / f"{name}.csr")  # fmt: skip
    _openssl("x509", "-req", "-in", pki / f"{name}.csr", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key",
             "-CAcreateserial", "-days", "3650", "-extfile", extensions, "-out", pki / f"{name}.crt")  # fmt: skip


def _kubeconfig(pki: Path, name: str) -> str:
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: astrago
  cluster:
    server: https://{NODE_IP}:{API_PORT}
    certificate-authority: {pki}/ca.crt
users:
- name: {name}
  user:
    client-certificate: {pki}/{name}.crt
    client-key: {pki}/{name}.key
contexts:
- name: astrago
  context: {{cluster: astrago, user: {name}}}
current-context: astrago
"""


def _openssl(*arguments: object) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(
            f"openssl {arguments[0]} failed: {done.stderr.strip()[-500:]}",
            "Start again: the keys are then made anew. `openssl version` must work.",
        )
