"""Judges the facts of this machine. Pure: facts to findings, one function for each line."""

from __future__ import annotations

from astrago_trainer.doctor.findings import Finding, counted, ok, warning, wrong
from astrago_trainer.doctor.machine_facts import FRAMEWORKS, MachineFacts

_GIB = 2**30
LITTLE_DISK, LEAST_DISK = 10 * _GIB, 1 * _GIB
"""A checkpoint of a small model is hundreds of MB."""
ENOUGH_FILES = 6144
"""Connections of a busy server and its own files, as `server.settings.open_file_limit` asks for them."""


def check_machine(facts: MachineFacts) -> list[Finding]:
    return [
        check_python(facts),
        check_settings(facts),
        *check_frameworks(facts),
        check_isolation(facts),
        check_groups(facts),
        check_amounts(facts),
        check_gpus(facts),
        check_disk(facts),
        check_database(facts),
        check_port(facts),
        check_open_files(facts),
    ]


def check_python(facts: MachineFacts) -> Finding:
    return ok("Python", f"{facts.python} with astrago {facts.version}: {facts.executable}")


def check_settings(facts: MachineFacts) -> Finding:
    if facts.settings_trouble:
        return wrong("settings", facts.settings_trouble)
    if facts.users_are_trusted:
        return warning(
            "settings",
            "ASTRAGO_LOCAL_USERS=trusted: the jobs of every user can read the files and tokens of all others",
            "export ASTRAGO_ENGINE=kubernetes",
        )
    return ok("settings", "variables that begin with ASTRAGO_ can all be read")


def check_frameworks(facts: MachineFacts) -> list[Finding]:
    if facts.environments_trouble:
        return [wrong("environments", facts.environments_trouble)]
    ready = [title for title, is_ready in facts.provided.items() if is_ready]
    later = [title for title, is_ready in facts.provided.items() if not is_ready]
    texts = [f"{', '.join(ready)}: ready"] * bool(ready)
    texts += [f"{', '.join(later)}: installed when the first job needs it"] * bool(later)
    return [
        *(_frameworks_of(place, found) for place, found in facts.frameworks.items()),
        ok("environments", "; ".join(texts)),
    ]


def _frameworks_of(place: str, found: tuple[str, ...]) -> Finding:
    if found:
        return ok("environments", f"{' and '.join(found)} in {place}")
    return warning(
        "environments",
        f"neither {' nor '.join(FRAMEWORKS)} in {place}: scripts that import them fail there",
        f"{place.partition(':')[0]}/python -m pip install torch",
        "export ASTRAGO_ENVIRONMENTS='*=/path/to/environment'",
    )


def check_isolation(facts: MachineFacts) -> Finding:
    if facts.system != "linux":
        return warning(
            "isolation", "this is no Linux: pods share the machine's files and host name"
        )
    if facts.isolation_trouble:
        return warning(
            "isolation",
            f"no namespaces can be made ({facts.isolation_trouble}): pods share files and host name, and paths "
            "of a job are mapped",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
        )
    return ok("isolation", "each pod has its own view of files, processes and host name")


def check_groups(facts: MachineFacts) -> Finding:
    if facts.groups_trouble:
        return warning(
            "control groups",
            f"none can be made ({facts.groups_trouble}): CPU and memory of jobs are counted, but not held to",
            "systemd-run --user --scope -p Delegate=yes astrago up",
        )
    return ok("control groups", "CPU, memory and processes of jobs are held to their limits")


def check_amounts(facts: MachineFacts) -> Finding:
    return ok("machine", f"{facts.cpus:g} CPU, {facts.memory / _GIB:.1f} GiB of memory")


def check_gpus(facts: MachineFacts) -> Finding:
    if facts.gpus:
        return ok("GPUs", counted(facts.gpus, "GPU"))
    if facts.has_driver:
        return warning(
            "GPUs",
            "the kernel has NVIDIA's driver, but its library libnvidia-ml.so.1 names no GPU",
            "nvidia-smi",
            "export ASTRAGO_LOCAL_GPUS=N",
        )
    if facts.refuses_larger:
        return ok("GPUs", "none; jobs that ask for one are refused (ASTRAGO_LOCAL_OVERSIZE=refuse)")
    return ok("GPUs", "none; jobs that ask for one run on CPU")


def check_disk(facts: MachineFacts) -> Finding:
    if facts.data_trouble:
        return wrong("data folder", facts.data_trouble, "export ASTRAGO_DATA=FOLDER")
    room = f"{facts.disk_free / _GIB:.1f} GiB free in {facts.data}"
    if facts.disk_alarm:
        return wrong("data folder", f"{room}: {_ALARMS[facts.disk_alarm]}", *_freeing(facts))
    if facts.disk_free < LEAST_DISK:
        return wrong("data folder", f"{room}: too little for logs", f"du -xsh {facts.data}/*")
    if facts.disk_free < LITTLE_DISK:
        return warning("data folder", f"{room}: little for checkpoints", f"du -xsh {facts.data}/*")
    return ok("data folder", room)


_ALARMS = {
    "DiskNearlyFull": "nearly full; soon no logs are written (ASTRAGO_DISK_RESERVE_BYTES)",
    "LogsNotWritten": "less than ASTRAGO_DISK_RESERVE_BYTES, so logs of jobs are not written",
    "DiskFull": "full; no job is accepted, and only deletion works",
}


def _freeing(facts: MachineFacts) -> tuple[str, ...]:
    return ("astrago delete JOB", f"du -xsh {facts.data}/*")


def check_database(facts: MachineFacts) -> Finding:
    if facts.database_trouble:
        return wrong("database", facts.database_trouble)
    if not facts.database_version:
        return ok("database", f"made at the first start: {facts.database}")
    if facts.database_version != facts.newest_version:
        return warning(
            "database",
            f"{facts.database} has the schema {facts.database_version}, this program {facts.newest_version}: "
            "the next start upgrades it",
            "astrago db backup FILE",
        )
    return ok("database", f"schema {facts.database_version}: {facts.database}")


def check_port(facts: MachineFacts) -> Finding:
    if not facts.port_trouble:
        return ok("port", f"{facts.address} is free")
    if facts.answering.startswith("astrago"):
        return ok("port", f"{facts.answering} answers at {facts.address}")
    return wrong(
        "port",
        f"{facts.address} cannot be used: {facts.port_trouble}",
        "astrago up --port 0",
    )


def check_open_files(facts: MachineFacts) -> Finding:
    if facts.open_files < ENOUGH_FILES:
        return warning(
            "open files",
            f"a process may have {facts.open_files} at most, a busy server wants {ENOUGH_FILES}",
            f"ulimit -Hn {ENOUGH_FILES}",
        )
    return ok("open files", f"{facts.open_files} at most")
