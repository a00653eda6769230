"""A pod template and its training container, as far as a job file can say it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from astrago_trainer.core.convert.converted import LAST_APPLIED, Manifest, Path, lost
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.spec.rules import PROGRESS_VOLUME

Json = dict[str, Any]

_SHELLS = (["bash", "-c"], ["sh", "-c"], ["/bin/bash", "-c"], ["/bin/sh", "-c"])
_ARGUMENTS = 'exec -- "$@"'
"""How `render` runs a program without a shell."""
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_CONSTANT = re.compile(r"[A-Z_][A-Z0-9_]*")
_GPU = "nvidia.com/gpu"
_VOLUME_KINDS = {
    "persistentVolumeClaim": ("claim", "claimName"),
    "configMap": ("config_map", "name"),
    "secret": ("secret", "secretName"),
    "hostPath": ("host_path", "path"),
}


def program(
    manifest: Manifest, at: Path, problems: list[Problem], setup: Sequence[str] = ()
) -> Json:
    """`command` for shell text, `argv` for a program; `setup` is what the platform puts before it, in order."""
    known = _variable_names(manifest, at)
    words = [
        _plain(str(word), known, (*at, name, index), problems)
        for name in ("command", "args")
        if isinstance(manifest.see(*at, name), list)
        for index, word in enumerate(manifest.take(*at, name))
    ]
    if not words:
        return {}
    if words[:2] not in _SHELLS or len(words) < 3:
        return {"argv": words}
    text = words[2]
    for part in filter(None, setup):
        if text.startswith(f"{part}\n"):
            text = text.removeprefix(part).lstrip("\n")
    if text == _ARGUMENTS and len(words) > 4:
        return {"argv": words[4:]}
    return {"command": text} if len(words) == 3 else {"argv": words}


def _variable_names(manifest: Manifest, at: Path) -> set[str]:
    return {str(each.get("name")) for _, each in manifest.entries(*at, "env")}


def _plain(text: str, known: set[str], at: Path, problems: list[Problem]) -> str:
    """The text as Kubernetes hands it on: `$$` is a dollar, and `$(NAME)` a variable, which a job has not."""

    def read(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        if name in known or _CONSTANT.fullmatch(name):
            remedy = f"Let a shell expand it: write ${name}."
            why = f"Kubernetes puts the value of {name} there; a job takes the text as it is"
            problems.append(lost(at, why, remedy))
        return match[0]

    return _REFERENCE.sub(read, text)


def variables(manifest: Manifest, at: Path, problems: list[Problem]) -> list[Json]:
    known = {str(each.get("name")) for _, each in manifest.entries(*at)}
    found = []
    for index, entry in manifest.entries(*at):
        here = (*at, index)
        made: Json = {"name": manifest.take(*here, "name")}
        if (value := manifest.take(*here, "value")) is not None:
            made["value"] = _plain(str(value), known, (*here, "value"), problems)
        for field, ref in (("secret", "secretKeyRef"), ("config_map", "configMapKeyRef")):
            if manifest.mapping(*here, "valueFrom", ref):
                place = (*here, "valueFrom", ref)
                made[field] = {
                    "name": manifest.take(*place, "name"),
                    "key": manifest.take(*place, "key"),
                }
        if len(made) == 1 and not entry.get("valueFrom"):
            made["value"] = ""
        if len(made) > 1:
            found.append(made)
    return found


def resources(manifest: Manifest, at: Path) -> Json:
    """GPUs are those of NVIDIA, or of the only other kind that is asked for."""
    found: Json = {}
    for ours, theirs in (("cpu", "cpu"), ("memory", "memory")):
        amount = {
            name: str(value)
            for name, kind in (("request", "requests"), ("limit", "limits"))
            if (value := manifest.take(*at, kind, theirs)) is not None
        }
        if amount:
            found[ours] = amount
    names = dict.fromkeys(
        name
        for kind in ("limits", "requests")
        for name in manifest.mapping(*at, kind)
        if name not in ("cpu", "memory") and "/" in str(name)
    )
    chosen = _GPU if _GPU in names or not names else next(iter(names))
    amounts = [manifest.take(*at, kind, chosen) for kind in ("limits", "requests")]
    gpus = next((each for each in amounts if each is not None), None)
    if gpus is not None:
        found["gpus"] = int(gpus) if str(gpus).isdecimal() else gpus
        if chosen != _GPU:
            found["gpu_resource"] = chosen
    return found


def volumes(manifest: Manifest, volumes_at: Path, mounts_at: Path) -> Iterator[Json]:
    """Each mount with the volume behind it; volumes of other kinds, and what else they say, stay unread."""
    places = {
        each.get("name"): (*volumes_at, index)
        for index, each in manifest.entries(*volumes_at)
        if isinstance(each.get("name"), str)
    }
    for index, mount in manifest.entries(*mounts_at):
        if not isinstance(mount.get("name"), str) or mount["name"] not in places:
            continue
        source = _source(manifest, places[mount["name"]])
        if source is None:
            continue
        here = (*mounts_at, index)
        made = {
            "name": manifest.take(*here, "name"),
            "mount_path": manifest.take(*here, "mountPath"),
            **source,
        }
        if manifest.take(*here, "readOnly"):
            made["read_only"] = True
        if sub_path := manifest.take(*here, "subPath"):
            made["sub_path"] = sub_path
        yield made


def _source(manifest: Manifest, at: Path) -> Json | None:
    for kind, (field, key) in _VOLUME_KINDS.items():
        if manifest.see(*at, kind) is not None:
            if manifest.take(*at, "name") == PROGRESS_VOLUME:  # ours, and left out in the end
                manifest.take(*at, kind, "optional")
            # How a file is made executable is the platform's, and a folder must be there in any case.
            manifest.take(*at, kind, "defaultMode")
            if manifest.see(*at, kind, "type") in ("", "Directory"):
                manifest.take(*at, kind, "type")
            return {field: manifest.take(*at, kind, key)}
    if manifest.see(*at, "emptyDir") is not None:
        manifest.take(*at, "name")
        medium = manifest.take(*at, "emptyDir", "medium")
        size = manifest.take(*at, "emptyDir", "sizeLimit")
        given = {"medium": medium, "size": None if size is None else str(size)}
        return {"empty_dir": {name: value for name, value in given.items() if value}}
    return None


def placement(manifest: Manifest, at: Path) -> Json:
    """Where pods may run, of a pod's spec."""
    found: Json = {}
    if selector := manifest.mapping(*at, "nodeSelector"):
        manifest.take(*at, "nodeSelector")
        found["node_selector"] = dict(selector)
    tolerations = []
    for index, each in manifest.entries(*at, "tolerations"):
        if not each.get("key"):
            continue
        here = (*at, "tolerations", index)
        made = {
            "key": manifest.take(*here, "key"),
            "operator": manifest.take(*here, "operator") or "Equal",
            "value": manifest.take(*here, "value"),
            "effect": manifest.take(*here, "effect"),
            "seconds": manifest.take(*here, "tolerationSeconds"),
        }
        tolerations.append({name: value for name, value in made.items() if value is not None})
    if tolerations:
        found["tolerations"] = tolerations
    return found


def names(manifest: Manifest, at: Path) -> Json:
    """Labels and annotations of a metadata."""
    found: Json = {}
    for field in ("labels", "annotations"):
        given = manifest.mapping(*at, field)
        if given:
            manifest.take(*at, field)
            found[field] = {str(k): str(v) for k, v in given.items() if k != LAST_APPLIED}
    return found
