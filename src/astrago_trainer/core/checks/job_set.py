"""What JobSet's webhook refuses. The Trainer tells nobody: it leaves an event, and the job never starts."""

from __future__ import annotations

import re
from typing import Any

from astrago_trainer.core.errors import Problem

Json = dict[str, Any]

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CODE = "JobSetRefused"
_POD_SUFFIX = 6  # "-" and five random characters


def check_job_set(job_set: Json) -> list[Problem]:
    """Every refusal of the JobSet, which must have its defaults."""
    spec, name = job_set["spec"], job_set["metadata"]["name"]
    jobs = spec.get("replicatedJobs", [])
    problems = []
    if jobs and jobs[0].get("dependsOn"):
        text = "the first replicated job cannot depend on another one."
        problems.append(Problem("runtime…replicatedJobs[0].dependsOn", _CODE, text))
    seen: set[str] = set()
    for index, job in enumerate(jobs):
        seen.add(job["name"])
        path = f"runtime…replicatedJobs[{index}]"
        problems += _check_names(name, job)
        for other in job.get("dependsOn", ()):
            if other.get("name") not in seen:
                text = f"{job['name']} cannot depend on {other.get('name')!r}, which does not come before it."
                problems.append(Problem(f"{path}.dependsOn", _CODE, text))
    for target in spec.get("successPolicy", {}).get("targetReplicatedJobs", ()):
        if target not in seen:
            text = f"there is no replicated job {target!r}."
            problems.append(Problem("runtime…successPolicy.targetReplicatedJobs", _CODE, text))
    subdomain = spec.get("network", {}).get("subdomain")
    if subdomain and (not _LABEL.fullmatch(subdomain) or len(subdomain) > 63):
        text = f"{subdomain!r} is no RFC 1035 label of at most 63 characters."
        problems.append(Problem("runtime…network.subdomain", _CODE, text))
    return problems


def _check_names(job_set_name: str, job: Json) -> list[Problem]:
    """The longest pod name of this job, with its random end, must still be a DNS label."""
    replicas = job.get("replicas", 1)
    pods = job["template"]["spec"].get("completions", 1)
    fixed = f"-{job['name']}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}"
    room = 63 - len(fixed) - _POD_SUFFIX
    if len(job_set_name) <= room:
        return []
    text = (
        f"{len(job_set_name)} characters are too many for {pods} pods of job {job['name']!r}: "
        f"their names ({{name}}{fixed}-xxxxx) may have 63; JobSet refuses the job and it never starts."
    )
    return [Problem("metadata.name", _CODE, text, f"Use at most {room} characters.")]
