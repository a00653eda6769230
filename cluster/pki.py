"""Keys and certificates of the control plane, made once per state folder with openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cluster.layout import API_PORT, API_SERVICE_IP, NODE_IP, NODE_NAME, Layout

_API_NAMES = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost"
_CERTIFICATES = {
    "apiserver": (
        "/CN=kube-apiserver",
        f"{_API_NAMES},IP:127.0.0.1,IP:{API_SERVICE_IP},IP:{NODE_IP}",
    ),
    "admin": ("/O=system:masters/CN=admin", "DNS:admin"),
    "node": (f"/O=system:nodes/CN=system:node:{NODE_NAME}", f"DNS:{NODE_NAME},IP:{NODE_IP}"),
}


def make_pki(layout: Layout) -> None:
    """Whatever is missing; a folder that was left half made is completed."""
    pki = layout.pki
    pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (pki / "ca.crt").exists():
        _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=astrago-cluster",
                 "-keyout", pki / "ca.key", "-out", pki / "ca.crt")  # fmt: skip
    if not (pki / "sa.pub").exists():
        _openssl("genrsa", "-out", pki / "sa.key", "2048")
        _openssl("rsa", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub")
    for name, (subject, names) in _CERTIFICATES.items():
        if not (pki / f"{name}.crt").exists():
            _certificate(pki, name, subject, names)
    for name, path in (("admin", layout.kubeconfig), ("node", layout.root / "node.kubeconfig")):
        path.write_text(_kubeconfig(pki, name), encoding="utf-8")
        path.chmod(0o600)


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
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
