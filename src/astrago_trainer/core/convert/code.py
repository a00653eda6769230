"""The code of a job that comes in a ConfigMap beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.core.convert.converted import lost
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.spec.rules import SCRIPTS_PATH

Json = dict[str, Any]


def take_code(job: Json, beside: Sequence[Mapping[str, Any]], problems: list[Problem]) -> None:
    """A ConfigMap of the same file that is mounted as code is the code; any other one is not in the job."""
    for config_map in beside:
        name, texts = config_map["metadata"]["name"], config_map.get("data")
        mounts = [each for each in job.get("volumes") or () if each.get("config_map") == name]
        is_code = [each["mount_path"] for each in mounts] == [SCRIPTS_PATH]
        if is_code and "sub_path" not in mounts[0] and "code" not in job and texts:
            files = dict(texts)
            job["volumes"].remove(mounts[0])
            # What runs is in the command; a script is named so that the code is not taken for data.
            entrypoint = min(files, key=lambda each: (each != "train.py", each[-3:] != ".py", each))
            job["code"] = {"files": files, "entrypoint": entrypoint}
            if config_map.get("binaryData"):
                problems.append(lost((f"ConfigMap {name}", "binaryData"), "code is text"))
            continue
        problems.append(
            lost(
                (f"ConfigMap {name}",),
                f"a job brings one ConfigMap, its code, which is mounted at {SCRIPTS_PATH}",
                "Create it with kubectl first, and leave it out of the file.",
            )
        )
