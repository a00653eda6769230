"""The ConfigMaps of a job: the platform's scripts and the user's code."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from astrago_trainer.core.platform import SystemScripts
from astrago_trainer.core.spec import Code

Json = dict[str, Any]

MANAGED_BY = {"app.kubernetes.io/managed-by": "astrago-trainer"}
USER_LABEL = "trainer.astrago.io/user"

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def system_configmap(scripts: SystemScripts, namespace: str) -> Json:
    """The platform's scripts in the tenant's namespace, shared by all its jobs (M10)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": scripts.name, "namespace": namespace, "labels": dict(MANAGED_BY)},
        "data": dict(scripts.data),
    }


def code_configmap(
    code: Code, *, name: str, namespace: str, user: str, is_named_by_content: bool
) -> Json:
    """The user's files, which are never rewritten (X4).

    Only a name that stands for the content is immutable: kubelets keep an immutable ConfigMap for some time after its
    last pod, and would give the next one of its name the old files (decision 10).
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**MANAGED_BY, USER_LABEL: user},
        },
        **({"immutable": True} if is_named_by_content else {}),
        "data": {_key(path): text for path, text in sorted(code_files(code).items())},
    }


def code_volume(code: Code, configmap: str) -> Json:
    """The volume source; names each file's place where a path is no ConfigMap key."""
    source: Json = {"name": configmap, "defaultMode": 0o755}
    paths = sorted(code_files(code))
    if any(_key(path) != path for path in paths):
        source["items"] = [{"key": _key(path), "path": path} for path in paths]
    return source


def code_files(code: Code) -> dict[str, str]:
    """Relative path -> text; empty for code from git."""
    if code.inline is not None:
        return {code.entrypoint: code.inline}
    return dict(code.files or {})


def code_digest(code: Code) -> str:
    """A hash of all paths and texts: equal code has an equal digest."""
    text = json.dumps(code_files(code), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _key(path: str) -> str:
    """A key for `path`: itself where Kubernetes allows, else a readable form with a hash."""
    if _KEY.fullmatch(path):
        return path
    readable = re.sub(r"[^-._a-zA-Z0-9]", "_", path)[:200]
    return f"{readable}-{hashlib.sha256(path.encode()).hexdigest()[:10]}"
